import { systemIds } from '../../base/index.ts'
import { type Commit, type StreamKey, threadStream } from '../../events/index.ts'
import type { EventLog } from '../../log/index.ts'
import { type Folded, foldStream } from '../../projections/index.ts'
import { decide, runId, unfoldableDraft } from './domain.ts'
import { check, Violation } from './failure.ts'
import { type FaultyLog, faultyLog, type LogFaults } from './faulty-log.ts'
import { checkReader, Found } from './port-checks.ts'
import { PortReader } from './port-reader.ts'
import { type PortAnswer, PortWriter, portCommit, recordsOf } from './port-writer.ts'
import { Random, Weighted } from './random.ts'
import { count, type Tally } from './report.ts'
import { COMMAND_KINDS, type CommandKind } from './steps.ts'

export interface PortModelOptions {
  /** The log under test, opened as often as there are processes; one log may be given for all. */
  open(): Promise<EventLog> | EventLog
  /** Default 1. */
  seed?: number
  /** Default 500. */
  steps?: number
  /** Default 3, 2 and 3. */
  writers?: number
  readers?: number
  streams?: number
  faults?: LogFaults
  /** Milliseconds after which a follower that gives nothing, though there is more, has failed. Default 10,000. */
  patience?: number
}

/** What happened, by name. */
export interface PortReport {
  readonly answers: Tally
  readonly faults: Tally
  readonly commits: { readonly accepted: number; readonly refused: number }
  readonly restarts: number
}

type PortStep = 'command' | 'go' | 'kill' | 'read' | 'forge' | 'poison'

const step = new Weighted<PortStep>([
  ['command', 30],
  ['go', 34],
  ['read', 20],
  ['kill', 3],
  ['forge', 10],
  ['poison', 1],
])
const command = new Weighted<CommandKind>(
  COMMAND_KINDS.map((kind) => [kind, { open: 3, take: 10, work: 30, start: 30, cancel: 26, repair: 4 }[kind]]),
)

/**
 * The protocol model on a real log: writers that each reach it through a {@link faultyLog}, several at a time, readers that stop and start
 * anywhere, commits that no writer would make. At the end, all answers, states and followers are compared with what the log holds.
 * @throws Error with the seed, at the first thing that does not hold
 */
export async function runPortModel(options: PortModelOptions): Promise<PortReport> {
  const model = new PortModel(await options.open(), options)
  try {
    return await model.run(options)
  } catch (error) {
    if (error instanceof Violation) error.message = `${error.code}, seed ${options.seed ?? 1}: ${error.message}`
    throw error
  }
}

class PortModel {
  readonly #log: EventLog
  readonly #random: Random
  readonly #faults: LogFaults
  readonly #streams: readonly StreamKey[]
  readonly #ways: FaultyLog[] = []
  readonly #writers: PortWriter[] = []
  readonly #readers: readonly PortReader[]
  readonly #answers: PortAnswer[] = []
  readonly #refused: Commit[] = []
  /** Commits that were answered past the writers: by id, whether accepted. */
  readonly #forged = new Map<string, { commit: Commit; accepted: boolean }>()
  readonly #runs = new Map<StreamKey, string[]>()
  readonly #report = { answers: {} as Tally, faults: {} as Tally, commits: { accepted: 0, refused: 0 }, restarts: 0 }
  #commands = 0
  #ids = 0

  constructor(
    log: EventLog,
    { seed = 1, writers = 3, readers = 2, streams = 3, faults = {}, patience = 10_000 }: PortModelOptions,
  ) {
    this.#log = log
    this.#random = new Random(seed)
    this.#faults = faults
    const name = systemIds.token()
    this.#streams = Array.from({ length: streams }, (_, n) => threadStream({ application: 'model', user: name, thread: `t${n}` }))
    for (let n = 0; n < writers; n++) this.#writers.push(this.#newWriter(n))
    this.#readers = Array.from({ length: readers }, () => new PortReader(log, patience))
  }

  #newWriter(number: number): PortWriter {
    const log = faultyLog(this.#log, { ...this.#faults, seed: this.#random.below(2 ** 31) })
    this.#ways.push(log)
    return new PortWriter({
      name: `w${number}`,
      log,
      nextId: () => ++this.#ids,
      answered: (answer) => this.#answered(answer),
      refused: (commit) => void this.#refused.push(commit),
    })
  }

  async run({ steps = 500 }: PortModelOptions): Promise<PortReport> {
    for (const reader of this.#readers) await reader.start()
    for (let taken = 0; taken < steps; ) {
      const together = 1 + this.#random.below(4)
      await Promise.all(Array.from({ length: together }, () => this.#step(step.pick(this.#random))))
      taken += together
    }
    await this.#settle()
    await this.#verify()
    return this.#report
  }

  async #step(kind: PortStep): Promise<void> {
    const random = this.#random
    const stream = random.pick(this.#streams)
    const number = random.below(this.#writers.length)
    const writer = this.#writers[number] as PortWriter
    switch (kind) {
      case 'command':
        return this.#command(writer, stream)
      case 'go':
        return this.#go(writer, stream)
      case 'kill':
        return this.#kill(number)
      case 'read':
        this.#report.restarts++
        return random.pick(this.#readers).read(1 + random.below(6))
      case 'forge':
        return this.#forge(stream, random.below(4), random.below(64))
      case 'poison':
        return this.#append(portCommit(stream, await this.#fold(stream), ++this.#ids, 'nobody', [unfoldableDraft]))
    }
  }

  /** Streams on which a writer is at work now; it does one thing at a time on each. */
  readonly #busy = new Set<string>()

  async #go(writer: PortWriter, stream: StreamKey): Promise<void> {
    const key = `${this.#writers.indexOf(writer)} ${stream}`
    if (this.#busy.has(key)) return
    this.#busy.add(key)
    try {
      await writer.go(stream)
    } finally {
      this.#busy.delete(key)
    }
  }

  async #command(writer: PortWriter, stream: StreamKey): Promise<void> {
    if (!writer.isFree(stream)) return
    const random = this.#random
    const folded = await this.#fold(stream)
    if (!writer.isFree(stream)) return
    const [kind, size, pick] = [this.#kind(folded, writer.holds(stream)), 1 + random.below(3), random.below(16)]
    const runs = this.#runs.get(stream) ?? []
    this.#runs.set(stream, runs)
    const id = `k${++this.#commands}`
    writer.take(stream, { id, kind, size, run: runs[pick % Math.max(1, runs.length)] ?? 'none' }, folded.head.version)
    if (kind === 'start') for (let n = 0; n < size; n++) runs.push(runId(id, n))
    await this.#go(writer, stream)
  }

  /** Mostly what the thread's state allows. */
  #kind({ head, quarantine }: Folded, holds: boolean): CommandKind {
    const usual = head.version === 0 ? 'open' : quarantine ? 'repair' : undefined
    if (usual && this.#random.chance(70)) return usual
    const kind = command.pick(this.#random)
    return kind === 'work' && !holds && this.#random.chance(70) ? 'take' : kind
  }

  #kill(number: number): void {
    const writer = this.#writers[number] as PortWriter
    if ([...this.#busy].some((key) => key.startsWith(`${number} `))) return
    const next = this.#newWriter(number)
    this.#writers[number] = next
    this.#report.restarts++
    for (const { stream, command: lost, came } of writer.waiting) if (lost.kind !== 'work') next.take(stream, lost, came, true)
  }

  /** Commits on a stale base, on another event, ahead of the stream, and old ones again. */
  async #forge(stream: StreamKey, how: number, pick: number): Promise<void> {
    const folded = await this.#fold(stream)
    const { version, hash } = folded.head
    const heads = [
      { version: Math.max(0, version - 1), hash: 'e'.repeat(64) },
      { version, hash: 'e'.repeat(64) },
      { version: version + 1 + (pick % 3), hash },
    ]
    const head = heads[how]
    if (head) {
      const draft = { type: 'run.cancel-requested/1', data: { run_id: 'nobody', command_id: null, reason: 'model' } } as const
      return this.#append(portCommit(stream, { ...folded, head }, ++this.#ids, 'nobody', [draft]))
    }
    const old = [...this.#forged.values()][pick % Math.max(1, this.#forged.size)]
    if (old) await this.#append(old.commit)
  }

  async #append(commit: Commit): Promise<void> {
    const { accepted } = await this.#log.append(commit)
    const before = this.#forged.get(commit.id)
    check(!before || before.accepted === accepted, 'answer-contradicted', () => `Commit ${commit.id} got two verdicts.`)
    this.#forged.set(commit.id, { commit, accepted })
  }

  async #answered(answer: PortAnswer): Promise<void> {
    this.#answers.push(answer)
    count(this.#report.answers, answer.outcome)
    const { stream, came, outcome, command: asked, held } = answer
    if (outcome === 'accepted') return
    const records = await recordsOf(this.#log, stream)
    for (let version = came; version <= records.length; version++) {
      const proposal = decide(foldStream(records.slice(0, version)), asked, '', held)
      if ('negative' in proposal && proposal.negative === outcome) return
    }
    throw new Violation('negative-untrue', `${outcome} to ${asked.kind} was so at no moment since the command came.`)
  }

  async #settle(): Promise<void> {
    for (const way of this.#ways) {
      await way.settle()
      for (const [name, times] of Object.entries(way.injected)) count(this.#report.faults, name, times)
    }
    for (const writer of this.#writers) for (const { stream } of writer.waiting) await this.#go(writer, stream)
    for (const writer of this.#writers)
      check(writer.waiting.length === 0, 'undecided', () => 'A command has no answer, though nothing fails any more.')
    const ends = await this.#log.barrier()
    for (const reader of this.#readers) while (reader.isBehind(ends)) await reader.read(64)
  }

  async #verify(): Promise<void> {
    const found = new Found()
    for (const stream of this.#streams) {
      const records = await recordsOf(this.#log, stream)
      found.add(stream, records)
      for (const [n, reader] of this.#readers.entries())
        checkReader(`Reader ${n}`, reader.recordsOf(stream), reader.foldOf(stream), records)
    }
    for (const { id } of this.#refused) found.checkVerdict(id, false)
    for (const { commit, accepted } of this.#forged.values()) found.checkVerdict(commit.id, accepted)
    for (const answer of this.#answers) found.checkAnswer(answer)
    this.#report.commits.accepted += found.accepted.size
    this.#report.commits.refused += this.#refused.length
  }

  async #fold(stream: StreamKey): Promise<Folded> {
    return foldStream(await recordsOf(this.#log, stream))
  }
}
