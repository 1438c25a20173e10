import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { CommanderError } from 'commander'
import { isThreadlogError } from '../../src/base/index.ts'
import { openLog } from '../../src/log/index.ts'
import { indexProjectors } from '../../src/projections/index.ts'
import { cli as runProcess } from '../../test/cli/support/cli.ts'
import { accepted, type Border, Fault, type Outcome, promise, type Rig, refused } from '../kit/border.ts'
import { command, type Ran } from '../kit/command.ts'
import { assertClean, codeOf } from '../kit/marker.ts'
import { shorterLists, shorterTexts } from '../kit/minimise.ts'
import { openShop, placed, type ShopWait, worker } from '../kit/shop.ts'
import { assertVerifies } from '../kit/verify.ts'
import { type CliCase, cliCase, WRITING } from './argv.ts'

/** Command lines on a log of their own, in this process and as processes. */
export const cli: Border<CliCase> = {
  name: 'cli',
  about: 'command lines: every command with hostile arguments, references, option values and payloads',
  limitMs: 15_000,
  renewAfter: 2_000,
  open: () => CliRig.open(),
  generate: cliCase,
  *simpler(input) {
    if (input.process) yield { ...input, process: false }
    for (const args of shorterLists(input.args)) yield { ...input, args }
    for (const [i, arg] of input.args.entries())
      for (const text of shorterTexts(arg)) yield { ...input, args: input.args.with(i, text) }
  },
}

const MODULE = new URL('../kit/agents.ts', import.meta.url).pathname
/** After so long a command that follows or serves is interrupted, in milliseconds. */
const INTERRUPT = 150

class CliRig implements Rig<CliCase> {
  readonly #folder: string
  readonly #stream: string
  readonly #waits: ShopWait[]
  readonly #back: string

  private constructor(folder: string, stream: string, waits: ShopWait[]) {
    this.#folder = folder
    this.#stream = stream
    this.#waits = waits
    this.#back = process.cwd()
    process.chdir(join(folder))
  }

  static async open(): Promise<CliRig> {
    const folder = mkdtempSync(join(tmpdir(), 'threadlog-fuzz-cli-'))
    const { threads, waits } = await openShop(`sqlite:${join(folder, 'whole.db')}`)
    for (let i = 0; i < 3; i++) await threads.run(worker, { thread: `thread_${i}`, input: 'Nothing to do' })
    for (const wait of waits.slice(6, 9))
      await threads.submit({ provider: wait.provider, continuation_id: wait.id, result: 'done' })
    const stream = threads.thread('thread_work').stream
    await threads.close()
    return new CliRig(folder, stream, waits)
  }

  async try(input: CliCase): Promise<Outcome> {
    const log = join(this.#folder, 'log.db')
    copyFileSync(join(this.#folder, 'whole.db'), log)
    const before = contents(log)
    const args = input.args.map((arg) => this.#told(arg, log))
    const ran: Ran = input.process ? await asProcess(args) : await command(args, INTERRUPT)
    const name = input.args.find((arg) => WRITING.has(arg)) ?? ''
    this.#check(ran, args, name, before, log)
    if (name !== '' && contents(log) !== before) await verified(log)
    this.#clear(name)
    return ran.code === 0 || ran.code === 1 ? accepted(`exit ${ran.code}`) : refused(codeText(ran))
  }

  #check(ran: Ran, args: string[], name: string, before: string, log: string): void {
    const { code, out, err, error } = ran
    const line = args.join(' ').slice(0, 500)
    if (error !== undefined && !(error instanceof CommanderError) && !isMisread(error)) codeOf(error, 'a command', true)
    promise(code !== undefined && code >= 0 && code <= 4, 'crash', `exit ${code} on a log that is whole`, `${line}\n${err}`)
    if (!isMisread(error)) assertClean(err, 'what goes to standard error')
    const colored = args.some((arg) => arg.includes('always'))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one
    assertVisible(colored ? out.replace(/\u001b\[\d+m/g, '') : out, 'standard output')
    assertVisible(err, 'standard error')
    if (args.includes('--payloads') && args.includes('none') && !args.includes('--help')) assertSilent(args, out)
    assertForm(args, ran)
    const unchanged = contents(log) === before
    if (name === '') promise(unchanged, 'written', 'a command that only looks has written', line)
    const late = code === 3 || ['run', 'start', 'engine'].includes(name)
    if (code !== 0 && code !== 1 && !late) promise(unchanged, 'written', `a refused ${name} has written`, line)
    if (code === 2) promise(unchanged, 'written', `${name} used wrongly has written`, line)
  }

  #told = (arg: string, log: string): string =>
    placed(arg, this.#waits)
      .replace('@log@', `sqlite:${log}`)
      .replace('@module@', MODULE)
      .replace('@stream@', this.#stream)
      .replace('@prefix@', this.#stream.slice(0, 8))
      .replace(/@(\d+)\.short@/, (_, n: string) => (this.#waits[Number(n)] as ShopWait).id.slice(0, 10))

  /** Nothing is made by a command that only looks. */
  #clear(name: string): void {
    const others = readdirSync(this.#folder).filter((file) => !/^(whole|log)\.db/.test(file))
    for (const file of others) rmSync(join(this.#folder, file), { recursive: true, force: true })
    for (const end of ['-wal', '-shm']) rmSync(join(this.#folder, `log.db${end}`), { force: true })
    promise(name !== '' || others.length === 0, 'written', 'a command that only looks has made a file', others.join(', '))
  }

  async close(): Promise<void> {
    process.chdir(this.#back)
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Payload where an option, a command or a thread is due is no payload any more: it is named. */
const isMisread = (error: unknown): boolean =>
  error instanceof CommanderError
    ? error.code === 'commander.unknownCommand' || (error.code === 'commander.unknownOption' && !error.message.includes('='))
    : isThreadlogError(error) && error.path === 'thread'

async function asProcess(args: string[]): Promise<Ran> {
  // What a system cannot pass on as arguments.
  const sayable = args.map((arg) => arg.toWellFormed().replaceAll('\0', ''))
  const follows =
    sayable.includes('--follow') || sayable.includes('results') || sayable.includes('engine') || sayable.includes('--wait')
  if (follows) return command(args, INTERRUPT)
  const { code, out, err } = await runProcess(sayable, { env: { FORCE_COLOR: '0' } })
  return { code: code ?? undefined, out, err }
}

function codeText({ code, err }: Ran): string {
  return `exit ${code} ${/\(([a-z_]+)\)\n/.exec(err)?.[1] ?? /"code": ?"([a-z_]+)"/.exec(err)?.[1] ?? ''}`.trim()
}

/** Everything that other programs and people see: all rows of the edges and events, and how many threads there are. */
function contents(file: string): string {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 2_000 })
  try {
    const tables = ['events', 'requests', 'results', 'receipts', 'checkpoints', 'threads', 'waits', 'streams']
    return JSON.stringify(tables.map((table) => database.prepare(`SELECT count(*) AS n FROM ${table}`).get()))
  } finally {
    database.close()
  }
}

async function verified(file: string): Promise<void> {
  const log = await openLog(`sqlite:${file}`, { create: false })
  try {
    await log.install(indexProjectors())
    await assertVerifies(log)
  } finally {
    await log.close()
  }
}

/** Controls, bidirectional marks, zero-width characters, lone surrogates; line feeds may stand. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const ACTING = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/

function assertVisible(text: string, where: string): void {
  const pairs = text.replace(/[\ud800-\udbff][\udc00-\udfff]/g, '')
  const found = ACTING.exec(pairs)
  promise(
    found === null,
    'leak',
    `an acting character on ${where}`,
    JSON.stringify(pairs.slice(Math.max(0, (found?.index ?? 0) - 60), (found?.index ?? 0) + 20)),
  )
}

const COVERED = new Set(['show', 'replay', 'wait', 'requests', 'checkpoints'])

function assertSilent(args: string[], out: string): void {
  const at = args.indexOf('--payloads')
  if (args[at + 1] === 'none' && args.lastIndexOf('--payloads') === at && args.some((arg) => COVERED.has(arg)))
    assertClean(out, 'output without payloads')
}

/** JSON where JSON was asked for. */
function assertForm(args: string[], { code, out, err, error }: Ran): void {
  const asked = args.filter((arg) => /^(-o|--output|--json)/.test(arg))
  if (
    asked.length !== 1 ||
    /^(--output=|-o.)/.test(asked[0] ?? '') ||
    args.some((arg) => /^(-h|--help|-V|--version|help)$/.test(arg))
  )
    return
  const form = asked[0] === '--json' ? 'any' : args[args.indexOf(asked[0] as string) + 1]
  if (form !== 'json' && form !== 'jsonl' && form !== 'any') return
  if (error !== undefined && code !== 0) parsed(err.trim().split('\n').at(-1) ?? '', 'an error')
  if (out === '' || error !== undefined) return
  const documents = form === 'json' || (form === 'any' && out.startsWith('{\n')) ? [out] : out.trim().split('\n')
  for (const document of documents)
    promise(parsed(document, 'output')['schema'] === 'threadlog.cli/1', 'silent', 'JSON without its schema')
}

function parsed(text: string, what: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    throw new Fault('silent', `${what} is no JSON where JSON was asked for`, text.slice(0, 300))
  }
}
