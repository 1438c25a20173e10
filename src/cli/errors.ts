import { CommanderError } from 'commander'
import { type Disposition, type ErrorInfo, isThreadlogError, reject, retryLater, type ThreadlogError } from '../base/index.ts'
import { visible, visibleJson } from './visible.ts'

/** What the command ends with (the whole table: `threadlog --help`). */
export const EXIT = { done: 0, otherAnswer: 1, usage: 2, retry: 3, refused: 4, fatal: 5 } as const

const BY_DISPOSITION: Record<Disposition, number> = { retry: EXIT.retry, reject: EXIT.refused, fatal: EXIT.fatal }

/** Refusals that a better command line cures. */
const USAGE = new Set(['usage', 'ambiguous_prefix', 'thread_reference_invalid', 'log_url_invalid', 'agent_module_invalid'])

type Info = Omit<ErrorInfo, 'disposition' | 'message'>

/** The command was used wrongly: exit 2. */
export const usage = (message: string, info: Info = {}): ThreadlogError => reject('usage', message, info)

/** Time is up: exit 3. */
export const timedOut = (message: string, info: Info = {}): ThreadlogError => retryLater('timeout', message, info)

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage
  if (!isThreadlogError(error)) return EXIT.fatal
  return USAGE.has(error.code) ? EXIT.usage : BY_DISPOSITION[error.disposition]
}

/** True when help was asked for by saying too little: it has been shown, and says enough. */
export const isHelp = (error: unknown): boolean => error instanceof CommanderError && error.code === 'commander.help'

/** The error as standard error shows it: lines of text, or `{"error": {…}}`. */
export function errorText(error: unknown, asJson: boolean): string {
  const described = describe(error)
  if (asJson) return `${visibleJson({ error: described })}\n`
  const { code, message, path, expected, hint } = described
  const facts = Object.entries({ path, expected, hint }).flatMap(([name, value]) =>
    value === undefined ? [] : `  ${name}: ${visible(value)}`,
  )
  const lines = [`error: ${visible(message)} (${code})`, ...facts, ...causeLines(error)]
  return `${lines.join('\n')}\n`
}

interface Described {
  code: string
  disposition: Disposition
  message: string
  path?: string
  expected?: string
  hint?: string
  details?: unknown
}

function describe(error: unknown): Described {
  if (isThreadlogError(error)) return error.toJSON() as unknown as Described
  if (error instanceof CommanderError) {
    const message = withoutValues(error)
      .replace(/^error: /, '')
      .replace(/\n.*$/s, '')
    const suggestion = /\(Did you mean .*\)/.exec(error.message)?.[0].slice(1, -1)
    const hint = [suggestion, 'See threadlog help.'].filter((part) => part !== undefined).join(' ')
    return { code: 'usage', disposition: 'reject', message: `${message}.`.replace(/\.\.$/, '.'), hint, details: {} }
  }
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return { code: 'unexpected', disposition: 'fatal', message, hint: 'This should not happen; please report it.', details: {} }
}

/** Commander repeats what it did not expect; that may be what was to be said to an agent. */
const withoutValues = ({ code, message }: CommanderError): string =>
  code === 'commander.excessArguments'
    ? message.replace(/(but got \d+): .*$/s, '$1')
    : code === 'commander.unknownOption'
      ? message.replace(/('-[^'=]*)=.*'/s, "$1'")
      : message

/** Only a tool's own exception is shown in full: whoever runs the tool wrote it. What is unexpected shows where it came from. */
function causeLines(error: unknown): string[] {
  const shown = isThreadlogError(error, 'tool_threw', 'agent_module_invalid') ? error.cause : isKnown(error) ? undefined : error
  if (!(shown instanceof Error)) return []
  return (shown.stack ?? shown.message)
    .split('\n')
    .slice(0, 6)
    .map((line) => `  ${visible(line.trim())}`)
}

const isKnown = (error: unknown): boolean => isThreadlogError(error) || error instanceof CommanderError
