import { retryLater } from '../../base/index.ts'
import type { Commit, StreamKey } from '../../events/index.ts'
import type { Appended, EventLog, Positions, RecordedEvent, StreamHead } from '../../log/index.ts'
import { Random } from './random.ts'
import { count, type Tally } from './report.ts'

/** How often, in percent. */
export interface LogFaults {
  /** The commit is written, and the caller hears of a failure. */
  replyLost?: number
  /** The commit is not written, and the caller hears of a failure. */
  requestLost?: number
  /** The caller hears of a failure, and the commit is written some time later. */
  late?: number
  /** The commit is written twice. */
  twice?: number
  /** A read sees no more of the log than the one before. */
  lag?: number
}

export interface FaultyLogOptions extends LogFaults {
  seed: number
}

/** One process's unreliable way to a log. */
export interface FaultyLog extends EventLog {
  /** Faults so far, by kind. */
  readonly injected: Readonly<Tally>
  /** Writes what is late, and fails no more; reads see everything. */
  settle(): Promise<void>
}

/** How often each fault happens unless the options say otherwise. */
const USUAL = { replyLost: 10, requestLost: 5, late: 8, twice: 5, lag: 50 } satisfies Required<LogFaults>

/**
 * Puts faults between a caller and a log. `append` may fail with `append_ambiguous` (disposition `retry`): nobody knows whether the commit is
 * written, and the same commit may be appended again. `read` and `head` lag behind the log, each wrapper for itself, but never behind
 * what it has shown or answered; `barrier` ends the lag. `follow` stops in other places than the log does. The log itself is not harmed.
 */
export const faultyLog = (log: EventLog, options: FaultyLogOptions): FaultyLog => new Wrapper(log, options)

class Wrapper implements FaultyLog {
  readonly injected: Tally = {}
  readonly #log: EventLog
  readonly #random: Random
  readonly #faults: Required<LogFaults>
  /** Next offset, per partition, that reads do not see yet. */
  readonly #visible = new Map<number, bigint>()
  #late: (() => Promise<unknown>)[] = []
  #settled = false

  constructor(log: EventLog, { seed, ...faults }: FaultyLogOptions) {
    this.#log = log
    this.#random = new Random(seed)
    this.#faults = { ...USUAL, ...faults }
  }

  get id(): string {
    return this.#log.id
  }

  get partitions(): number {
    return this.#log.partitions
  }

  partitionOf(stream: StreamKey): number {
    return this.#log.partitionOf(stream)
  }

  async append(commit: Commit): Promise<Appended> {
    await this.#somethingArrives()
    if (this.#happens('requestLost')) throw ambiguous()
    if (this.#happens('late')) {
      this.#late.push(() => this.#log.append(commit))
      throw ambiguous()
    }
    const twice = this.#happens('twice')
    const [first, second] = await Promise.all([this.#log.append(commit), twice ? this.#log.append(commit) : undefined])
    if (this.#happens('replyLost')) throw ambiguous()
    const answer = second ?? first
    // The fate was read from the log, so the log has been read that far.
    if (answer.head) this.#see(answer.head.position.partition, answer.head.position.offset + 1n)
    return answer
  }

  async *read(stream: StreamKey, after?: number): AsyncGenerator<RecordedEvent[]> {
    const end = await this.#look(stream)
    for await (const page of this.#log.read(stream, after)) {
      const seen = page.filter((event) => event.position.offset < end)
      if (seen.length > 0) yield seen
      if (seen.length < page.length) return
    }
  }

  async head(stream: StreamKey): Promise<StreamHead | undefined> {
    const end = await this.#look(stream)
    const head = await this.#log.head(stream)
    if (!head || head.position.offset < end) return head
    let last: RecordedEvent | undefined
    for await (const page of this.#log.read(stream)) last = page.findLast((event) => event.position.offset < end) ?? last
    return last && { version: last.version, hash: last.hash, position: last.position }
  }

  async *follow(options: { from?: Positions; partitions?: number[]; signal?: AbortSignal }): AsyncGenerator<RecordedEvent[]> {
    for await (const page of this.#log.follow(options))
      for (let at = 0; at < page.length; ) {
        const batch = page.slice(at, at + 1 + this.#random.below(page.length - at))
        at += batch.length
        for (const { position } of batch) this.#see(position.partition, position.offset + 1n)
        yield batch
      }
  }

  async barrier(partition?: number): Promise<Positions> {
    await this.#somethingArrives()
    const ends = await this.#log.barrier(partition)
    for (const [of, end] of ends) this.#see(of, end)
    return ends
  }

  async settle(): Promise<void> {
    this.#settled = true
    for (const write of this.#late.splice(0)) await write()
  }

  async close(): Promise<void> {
    await this.settle()
    await this.#log.close()
  }

  #happens(fault: keyof LogFaults): boolean {
    if (this.#settled || !this.#random.chance(this.#faults[fault])) return false
    count(this.injected, fault)
    return true
  }

  async #somethingArrives(): Promise<void> {
    if (this.#late.length === 0 || !this.#random.chance(40)) return
    const [write] = this.#late.splice(this.#random.below(this.#late.length), 1)
    await write?.()
  }

  /** The offset this read sees up to, somewhere between the last one and the end of the log. */
  async #look(stream: StreamKey): Promise<bigint> {
    const partition = this.#log.partitionOf(stream)
    const end = (await this.#log.barrier(partition)).get(partition) ?? 0n
    const seen = this.#visible.get(partition) ?? 0n
    if (end > seen && this.#happens('lag')) return seen
    const ahead = this.#settled ? Number(end - seen) : this.#random.below(Number(end - seen) + 1)
    return this.#see(partition, seen + BigInt(ahead))
  }

  #see(partition: number, end: bigint): bigint {
    const seen = this.#visible.get(partition) ?? 0n
    const now = end > seen ? end : seen
    this.#visible.set(partition, now)
    return now
  }
}

const ambiguous = () =>
  retryLater('append_ambiguous', 'Nobody knows whether the commit was written.', { hint: 'Append the same commit again.' })
