import { copyFileSync, cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openThreadlog, type Threadlog } from '../../src/index.ts'
import { type LogBackend, openLog } from '../../src/log/index.ts'
import { accepted, type Border, type Outcome, promise, type Rig, refused } from '../kit/border.ts'
import { command } from '../kit/command.ts'
import { assertClean, codeOf } from '../kit/marker.ts'
import { shorterLists } from '../kit/minimise.ts'
import { Random } from '../kit/random.ts'
import { APPLICATION, openShop, type ShopWait, worker } from '../kit/shop.ts'
import { type Damage, damages, inflict } from './damage.ts'

/** A file written by real runs, with or without its write-ahead log, and damaged. */
export interface DatabaseCase {
  wal: boolean
  damages: Damage[]
  noise: string
}

/** Damaged files: looked at, verified, and worked with. */
export const database: Border<DatabaseCase> = {
  name: 'database',
  about: 'a damaged SQLite file: bits, pages, cut files, rows changed past every check; then verify, read, run, submit',
  limitMs: 30_000,
  renewAfter: 1_000,
  open: () => DatabaseRig.open(),
  generate: (random) => ({ wal: random.once(3), damages: damages(random), noise: String(random.bits()) }),
  *simpler(input) {
    for (const list of shorterLists(input.damages)) if (list.length > 0) yield { ...input, damages: list }
    if (input.wal) yield { ...input, wal: false }
  },
}

/** Hashes of the events of each thread, in order. */
type Truth = Map<string, string[]>

class DatabaseRig implements Rig<DatabaseCase> {
  readonly #folder: string
  readonly #truth: Truth
  readonly #waits: ShopWait[]

  private constructor(folder: string, truth: Truth, waits: ShopWait[]) {
    this.#folder = folder
    this.#truth = truth
    this.#waits = waits
  }

  static async open(): Promise<DatabaseRig> {
    const folder = mkdtempSync(join(tmpdir(), 'threadlog-fuzz-damage-'))
    const file = join(folder, 'whole.db')
    const { threads, waits } = await openShop(`sqlite:${file}`)
    for (let i = 0; i < 3; i++) await threads.run(worker, { thread: `thread_${i}`, input: 'Nothing to do' })
    for (const wait of waits.filter(({ tool }) => tool === 'errand').slice(0, 4))
      await threads.submit({ provider: wait.provider, continuation_id: wait.id, result: 'done' })
    const truth = await readAll(threads.backend)
    cpSync(file, join(folder, 'wal.db'))
    cpSync(`${file}-wal`, join(folder, 'wal.db-wal'))
    await threads.close()
    return new DatabaseRig(folder, truth, waits)
  }

  async try(input: DatabaseCase): Promise<Outcome> {
    const place = mkdtempSync(join(this.#folder, 'case-'))
    const file = join(place, 'log.db')
    const from = join(this.#folder, input.wal ? 'wal.db' : 'whole.db')
    copyFileSync(from, file)
    if (input.wal && existsSync(`${from}-wal`)) copyFileSync(`${from}-wal`, `${file}-wal`)
    const random = new Random(input.noise)
    const noise = (length: number) => Uint8Array.from({ length }, () => random.below(256))
    try {
      for (const damage of input.damages) inflict(file, damage, noise)
      const looked = await this.#verify(file, input)
      await this.#work(file)
      await this.#verify(file)
      return looked === undefined ? accepted('intact') : refused(looked)
    } finally {
      rmSync(place, { recursive: true, force: true })
    }
  }

  /** What `threadlog verify --all` says: a code, or undefined when it says that all is well; then it must be. */
  async #verify(file: string, compared?: DatabaseCase): Promise<string | undefined> {
    const { code, out, err, error } = await command(['verify', '--all', '-o', 'jsonl', '--log', `sqlite:${file}`], 10_000)
    assertClean(out.replace(/"thread": ?"[^"]*"/g, '') + err, 'what verify says')
    if (error !== undefined) return codeOf(error, 'verify')
    const reports = out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as { ok: boolean; code?: string }]))
    const fault = reports.find(({ ok }) => !ok)
    promise((code === 0) === (fault === undefined), 'silent', 'the exit code of verify is not its answer')
    if (fault) return fault.code
    await this.#readable(file, compared)
    return undefined
  }

  /** What verifies can be read, and is what was written. */
  async #readable(file: string, compared?: DatabaseCase): Promise<void> {
    const log = await openLog(`sqlite:${file}`, { readOnly: true })
    try {
      if (compared) this.#compare(await readAll(log), compared)
    } catch (error) {
      codeOf(error, 'reading what verifies')
    } finally {
      await log.close()
    }
  }

  /** A write-ahead log cut short is the file as it was some commits ago, all tables together: nothing in it says that there was more. */
  #compare(found: Truth, { wal, damages: all }: DatabaseCase): void {
    const earlier = wal && all.some((each) => each.op !== 'sql')
    for (const [stream, hashes] of this.#truth) {
      const now = found.get(stream) ?? []
      promise(
        earlier || now.length >= hashes.length,
        'silent',
        'verify says nothing of lost events',
        `${now.length} of ${hashes.length}`,
      )
      promise(
        now.every((hash, i) => i >= hashes.length || hashes[i] === hash),
        'silent',
        'verify says nothing of changed events',
      )
    }
  }

  /** Somebody who does not know goes on with the file: whatever cannot be done is refused with a code. */
  async #work(file: string): Promise<void> {
    let threads: Threadlog | undefined
    try {
      threads = await openThreadlog({ log: `sqlite:${file}`, application: APPLICATION, agents: [worker] })
    } catch (error) {
      codeOf(error, 'open')
      return
    }
    const open = threads
    const steps: [string, () => Promise<unknown>][] = [
      ['run a new thread', () => open.run(worker, { thread: 'thread_new', input: 'Nothing to do' })],
      ['run a thread again', () => open.run(worker, { thread: 'thread_1', input: 'Nothing to do' })],
      ['list waits', async () => (await Array.fromAsync(open.waits())).length],
      ['submit', () => open.submit({ provider: 'errands', continuation_id: this.#waits[1]?.id ?? '', result: 1 })],
      [
        'submit another',
        () => open.submit({ provider: 'payouts', continuation_id: this.#waits[0]?.id ?? '', result: { reference: 'r' } }),
      ],
      ['read a state', () => open.thread('thread_work').state()],
      ['read events', async () => (await Array.fromAsync(open.thread('thread_2').events())).length],
    ]
    try {
      for (const [name, step] of steps) await attempt(name, step)
      await withEngine(open)
    } finally {
      await attempt('close', () => open.close())
    }
  }

  close = async () => rmSync(this.#folder, { recursive: true, force: true })
}

async function attempt(name: string, step: () => Promise<unknown>): Promise<void> {
  try {
    await step()
  } catch (error) {
    codeOf(error, name)
  }
}

/** An engine on the file tells of its problems in codes and can be stopped. */
async function withEngine(threads: Threadlog): Promise<void> {
  const problems: { where: string; code: string; message: string }[] = []
  await attempt('serve', async () => {
    const engine = await threads.serve({ onProblem: (problem) => problems.push(problem) })
    await new Promise((resolve) => setTimeout(resolve, 15))
    await engine.close()
  })
  for (const { where, code, message } of problems) {
    assertClean(JSON.stringify([where, message]), 'a problem of the engine')
    promise(code !== 'unexpected', 'uncoded', `the engine has an unexpected problem in ${where.split(' ')[0]}`, message)
  }
}

async function readAll(log: LogBackend): Promise<Truth> {
  const truth: Truth = new Map()
  const keys = log.tables.all<{ key: unknown }>('SELECT key FROM streams ORDER BY id')
  for (const { key } of keys) {
    const stream = key instanceof Uint8Array ? Buffer.from(key).toString('hex') : ''
    const hashes: string[] = []
    for await (const batch of log.events.read(stream)) hashes.push(...batch.map(({ hash }) => hash))
    truth.set(stream, hashes)
  }
  return truth
}
