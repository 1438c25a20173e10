import type { Kafka } from 'kafkajs'
import { eitherSignal, whenAborted } from '../../base/index.ts'
import { CLOSE_MS, within } from './connection.ts'
import { DirectReader, type Fetched, OFFSET_OUT_OF_RANGE } from './direct.ts'
import { stopped, translate } from './errors.ts'
import { pause } from './sender.ts'

export interface TailOptions {
  kafka: Kafka
  /** Full name of the topic. */
  topic: string
  /** First offset wanted of each partition that is read. */
  from: ReadonlyMap<number, bigint>
  committed: boolean
  /** Milliseconds a broker may hold a request. */
  maxWaitMs?: number
  /** Bytes of one fetch of one partition. */
  maxBytes?: number
  /** What was read, in order; the next fetch of that broker begins when it resolves. What it throws stops the partition. */
  onRecords(batch: Fetched): Promise<void>
  /** A partition is not read on (R6): gap, truncation, or what `onRecords` threw. */
  onStopped(partition: number, error: unknown): void
  /** A fetch failed and is tried again. */
  onTrouble?(error: unknown): void
  /** Before reading again after a failure: the log may be another one by now (R16). Nothing is read until this resolves. */
  onResumed?(): Promise<void>
}

const MAX_WAIT_MS = 200
const MAX_BYTES = 1 << 20

/** Reads partitions of a topic from given offsets, without a group: one loop for each broker that leads some of them. */
export class TopicTail {
  readonly #o: TailOptions
  readonly #reader: DirectReader
  readonly #next: Map<number, bigint>
  readonly #stop = new AbortController()
  #running: Promise<void> | undefined
  #changed = new AbortController()

  constructor(options: TailOptions) {
    this.#o = options
    this.#reader = new DirectReader(options.kafka)
    this.#next = new Map(options.from)
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Partitions read from now on. Those that go on keep their place. */
  assign(from: ReadonlyMap<number, bigint>): void {
    for (const partition of this.#next.keys()) if (!from.has(partition)) this.#next.delete(partition)
    for (const [partition, offset] of from) if (!this.#next.has(partition)) this.#next.set(partition, offset)
    this.#regroup()
  }

  #regroup(): void {
    this.#changed.abort()
    this.#changed = new AbortController()
  }

  async #run(): Promise<void> {
    for (let failures = 0; !this.#stop.signal.aborted; ) {
      const { signal: round, release } = eitherSignal(this.#stop.signal, this.#changed.signal)
      try {
        if (failures > 0) {
          await this.#reader.refresh()
          await this.#o.onResumed?.()
        }
        const asks = [...this.#next.keys()].map((partition) => ({ topic: this.#o.topic, partition }))
        const groups = await this.#reader.byLeader(asks)
        failures = 0
        if (groups.size === 0) await whenAborted(round)
        // One that fails ends the round for all: leaders may have moved.
        const failed = new AbortController()
        const either = eitherSignal(round, failed.signal)
        await Promise.all(
          [...groups].map(([node, led]) =>
            this.#loop(
              node,
              led.map(({ partition }) => partition),
              either.signal,
            ).catch((error: unknown) => {
              failed.abort()
              throw error
            }),
          ),
        ).finally(either.release)
      } catch (error) {
        if (this.#stop.signal.aborted) return
        this.#o.onTrouble?.(translate(error, this.#o.topic))
        await pause(failures++, this.#stop.signal)
      } finally {
        release()
      }
    }
  }

  async #loop(node: string, partitions: readonly number[], signal: AbortSignal): Promise<void> {
    const { topic, committed, maxWaitMs = MAX_WAIT_MS, maxBytes = MAX_BYTES } = this.#o
    while (!signal.aborted) {
      const asks = partitions.flatMap((partition) => {
        const offset = this.#next.get(partition)
        return offset === undefined ? [] : [{ topic, partition, offset }]
      })
      if (asks.length === 0) return this.#regroup()
      const batches = await this.#reader.fetch(node, asks, { maxWaitMs, maxBytes, committed })
      if (signal.aborted) return
      // Partitions do not depend on each other: handed over together, they are stored together.
      await Promise.all(batches.map((batch) => this.#take(batch)))
    }
  }

  async #take(batch: Fetched): Promise<void> {
    const { partition, errorCode } = batch
    if (errorCode === OFFSET_OUT_OF_RANGE) return this.#outOfRange(partition)
    if (errorCode !== 0) throw Object.assign(new Error('a partition was not read'), { type: `error ${errorCode}` })
    const at = this.#next.get(partition)
    if (at === undefined) return
    if (batch.records.length > 0 || batch.next > at) {
      try {
        await this.#o.onRecords(batch)
      } catch (error) {
        return this.#give(partition, error)
      }
      if (this.#next.has(partition)) this.#next.set(partition, batch.next)
    }
  }

  /** R6: what was there is not there any more. */
  async #outOfRange(partition: number): Promise<void> {
    const at = this.#next.get(partition) ?? 0n
    const [first, end] = await Promise.all(
      (['first', 'end'] as const).map(
        async (which) => (await this.#reader.offsets(this.#o.topic, [partition], which)).get(partition)!,
      ),
    )
    const details = { partition, wanted: String(at), first: String(first), end: String(end) }
    const path = `${this.#o.topic}[${partition}]`
    if (at < first!) this.#give(partition, stopped('log_gap', 'The log no longer has the records that come next.', path, details))
    else if (at > end!)
      this.#give(partition, stopped('log_truncated', 'The log is shorter than what was read of it.', path, details))
    // Otherwise it was a passing state of the broker, and the next fetch says so.
  }

  #give(partition: number, error: unknown): void {
    this.#next.delete(partition)
    this.#o.onStopped(partition, error)
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#changed.abort()
    // Ends the request that a broker holds.
    await within(CLOSE_MS, Promise.all([this.#reader.close(), this.#running]))
  }
}
