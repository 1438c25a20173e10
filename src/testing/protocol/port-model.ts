import { systemIds } from '../../base/index.ts'
import { type Commit, type StreamKey, threadStream } from '../../events/index.ts'
import type { EventLog, RecordedEvent } from '../../log/index.ts'
import { type Folded, foldStream } from '../../projections/index.ts'
import { decide, runId, unfoldableDraft } from './domain.ts'
import { check, Violation } from './failure.ts'
import { type FaultyLog, faultyLog } from './faulty-log.ts'
import { checkReader, Found } from './port-checks.ts'
import { PortReader } from './port-reader.ts'
import type { PortSchedule, PortStep } from './port-steps.ts'
import { type PortAnswer, PortWriter, portCommit, recordsOf } from './port-writer.ts'
import { count, type Tally } from './report.ts'
import type { CommandKind } from './steps.ts'

/** What happened, by name. */
export interface PortReport {
  readonly answers: Tally
  readonly faults: Tally
  readonly commits: { readonly accepted: number; readonly refused: number }
  readonly restarts: number
}

/** Ways to one log: of the model and its readers, of each writer, and of one that reads it all when it is over. */
export interface Logs {
  readonly log: EventLog
  writer(number: number): EventLog
  later(): Promise<EventLog>
}

/** One run of a schedule on a log. */
export class PortModel {
  readonly #log: EventLog
  readonly #logs: Logs
  readonly #schedule: PortSchedule
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

  /** @param patience milliseconds after which a follower that gives nothing, though there is more, has failed */
  constructor(logs: Logs, schedule: PortSchedule, patience: number) {
    const { log } = logs
    this.#log = log
    this.#logs = logs
    this.#schedule = schedule
    const name = systemIds.token()
    const { writers, readers, streams } = schedule
    this.#streams = Array.from({ length: streams }, (_, n) => threadStream({ application: 'model', user: name, thread: `t${n}` }))
    for (let n = 0; n < writers; n++) this.#writers.push(this.#newWriter(n))
    this.#readers = Array.from({ length: readers }, () => new PortReader(log, this.#streams, patience))
  }

  #newWriter(number: number): PortWriter {
    const { faults, seed } = this.#schedule
    const log = faultyLog(this.#logs.writer(number), { ...faults, seed: seed + this.#ways.length })
    this.#ways.push(log)
    return new PortWriter({
      name: `w${number}`,
      log,
      nextId: () => ++this.#ids,
      answered: (answer) => this.#answered(answer),
      refused: (commit) => void this.#refused.push(commit),
    })
  }

  async run(): Promise<PortReport> {
    for (const reader of this.#readers) await reader.start()
    const begun: Promise<void>[] = []
    for (const step of this.#schedule.steps) {
      if (step[1] === 0) await Promise.all(begun.splice(0))
      begun.push(this.#step(step))
    }
    await Promise.all(begun)
    await this.#settle()
    await this.#verify()
    return this.#report
  }

  async #step(step: PortStep): Promise<void> {
    const writer = (n: number) => this.#writers[n % this.#writers.length] as PortWriter
    const stream = (n: number) => this.#streams[n % this.#streams.length] as StreamKey
    switch (step[0]) {
      case 'command':
        return this.#command(writer(step[2]), stream(step[3]), step)
      case 'go':
        return this.#go(writer(step[2]), stream(step[3]))
      case 'kill':
        return this.#kill(step[2] % this.#writers.length)
      case 'read':
        this.#report.restarts++
        return this.#readers[step[2] % this.#readers.length]?.read(step[3])
      case 'forge':
        return this.#forge(stream(step[2]), step[3], step[4])
      case 'poison': {
        const on = await this.#fold(stream(step[2]))
        return this.#append(portCommit(stream(step[2]), on, ++this.#ids, 'nobody', [unfoldableDraft]))
      }
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

  async #command(writer: PortWriter, stream: StreamKey, step: PortStep & { 0: 'command' }): Promise<void> {
    if (!writer.isFree(stream)) return
    const [, , , , given, apt, size, pick] = step
    const folded = await this.#fold(stream)
    if (!writer.isFree(stream)) return
    const kind = (apt === 1 ? called(folded, given, writer.holds(stream)) : undefined) ?? given
    const runs = this.#runs.get(stream) ?? []
    this.#runs.set(stream, runs)
    const id = `k${++this.#commands}`
    writer.take(stream, { id, kind, size, run: runs[pick % Math.max(1, runs.length)] ?? 'none' }, folded.head.version)
    if (kind === 'start') for (let n = 0; n < size; n++) runs.push(runId(id, n))
    await this.#go(writer, stream)
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
    const records = await this.#records(stream)
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
    for (const reader of this.#readers) while (await reader.isBehind()) await reader.read(64)
  }

  async #verify(): Promise<void> {
    const found = new Found()
    const later = await this.#logs.later()
    await later.barrier()
    for (const stream of this.#streams) {
      const records = await recordsOf(later, stream)
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
    return foldStream(await this.#records(stream))
  }

  /** All that the log has of a stream now: a log of its own for each writer may be behind. */
  async #records(stream: StreamKey): Promise<RecordedEvent[]> {
    await this.#log.barrier(this.#log.partitionOf(stream))
    return recordsOf(this.#log, stream)
  }
}

/** What a thread's state calls for, if anything but the command given. */
function called({ head, quarantine }: Folded, given: CommandKind, holds: boolean): CommandKind | undefined {
  if (head.version === 0) return 'open'
  if (quarantine) return 'repair'
  return given === 'work' && !holds ? 'take' : undefined
}
