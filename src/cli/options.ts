import { type Command, InvalidArgumentError, Option } from 'commander'
import { isThreadlogError } from '../base/index.ts'
import { type CommonOptions, Context } from './context.ts'
import type { Io } from './io.ts'

/** What runs a command: its streams, and the signal that asks it to stop. */
export interface Session {
  readonly io: Io
  /** Aborts on SIGINT and SIGTERM. */
  readonly interrupt: AbortSignal
  /** The exit code, once the command has one. */
  code: number
}

/** Adds the options all commands share; they may stand before the command's name and behind it. */
export const globalOptions = (program: Command): Command =>
  program
    .addOption(
      new Option('--log <address>', 'the log: sqlite:<file> or kafka://<host:port>/<prefix>')
        .env('THREADLOG_LOG')
        .default('sqlite:./threadlog.db'),
    )
    .addOption(
      new Option('-o, --output <format>', 'text, one JSON document, or one JSON record a line (default: text)').choices([
        'text',
        'json',
        'jsonl',
      ]),
    )
    .option('--json', 'short for -o json; for -o jsonl where records stream')
    .addOption(
      new Option('--color <when>', 'colour in text; auto heeds NO_COLOR, FORCE_COLOR and TERM')
        .choices(['auto', 'always', 'never'])
        .default('auto'),
    )

/** Adds `--time`, for commands whose text shows times. */
export const showsTimes = (command: Command): Command =>
  command.addOption(new Option('--time <form>', 'times in text (default: ISO 8601 in UTC)').choices(['iso', 'local', 'relative']))

/** Adds `--payloads`, for commands that show what others wrote. */
export const showsPayloads = (command: Command, otherwise = 'preview in text, full in JSON'): Command =>
  command.addOption(
    new Option(
      '--payloads <how>',
      `how much to show of what agents, tools and people wrote: nothing, 120 characters, all (default: ${otherwise})`,
    ).choices(['none', 'preview', 'full']),
  )

type Handler<O, A extends unknown[]> = (context: Context, options: O & CommonOptions, ...args: A) => Promise<number | void>

/** Runs a handler as the action of a command; what it returns is the exit code, 0 unless it says otherwise. */
export function action<O, A extends unknown[]>(
  command: Command,
  session: Session,
  handler: Handler<O, A>,
  o: { records?: boolean } = {},
): Command {
  return command.action(async (...given: unknown[]) => {
    const options = command.optsWithGlobals<O & CommonOptions>()
    session.io.color = options.color
    const context = new Context(session, options, o.records)
    session.code = (await handler(context, options, ...(given.slice(0, -2) as A))) ?? 0
  })
}

/** Turns a parser that throws usage errors into one commander reports with the option's name. */
export const parsed =
  <T>(parse: (text: string) => T) =>
  (text: string): T => {
    try {
      return parse(text)
    } catch (error) {
      if (isThreadlogError(error))
        throw new InvalidArgumentError([error.message, error.expected].filter(Boolean).join(' Expected: '))
      throw error
    }
  }

/** A whole number from `least` on. */
export const count =
  (least: number) =>
  (text: string): number => {
    if (/^\d{1,15}$/.test(text) && Number(text) >= least) return Number(text)
    throw new InvalidArgumentError(`Expected: a whole number from ${least} on.`)
  }

/** Names separated by commas. */
export const names = (text: string): string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
