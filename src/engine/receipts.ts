import { type Clock, isThreadlogError } from '../base/index.ts'
import { type Receipt, receiptRecord } from '../continuations/index.ts'
import type { Delivery, TopicName, TopicRecord, Topics } from '../log/index.ts'

/** The place of one record among those of its partition. */
export interface Place {
  readonly lane: Lane
  readonly offset: bigint
  readonly key: string
  receipt: Receipt | undefined
}

/** One partition's records, from its opening until it is lost. */
interface Lane {
  readonly partition: number
  readonly waiting: Place[]
  /** Where the group stands in it; unknown for a group that has not begun, until its first record. */
  saved: bigint | undefined
  /** Behind the last record added. */
  next: bigint
  /** Nothing more may be published from here. */
  lost: boolean
  writing: Promise<void> | undefined
}

export interface ReceiptQueueOptions {
  topics: Topics
  topic: TopicName
  group: string
  clock: Clock
  /** Another member of the group has gone on in that partition: nothing more is published of it from here. */
  onMoved(partition: number): void
  /** A transaction that failed; it is tried again if the error says so. */
  onError(error: unknown): void
  /** The log does not take receipts any more. */
  onFailed(error: unknown): void
}

/** Receipts of one transaction. */
const MAX_BATCH = 500

/**
 * Publishes receipts, for each partition in the order of the records they answer, each batch in one transaction with the progress behind
 * it, so that every record gets exactly one: progress never passes a record without a receipt, and a second member that handled the
 * same records finds the progress moved and publishes nothing. Partitions do not wait for each other: any may be lost at any time.
 */
export class ReceiptQueue {
  readonly #options: ReceiptQueueOptions
  readonly #lanes = new Map<number, Lane>()
  #count = 0
  #closing = false
  #closed = false
  #roomWanted: (() => void)[] = []

  constructor(options: ReceiptQueueOptions) {
    this.#options = options
  }

  /** Records without a published receipt. */
  get size(): number {
    return this.#count
  }

  /** Behind the last record taken of each partition that goes on. */
  get next(): Map<number, bigint> {
    const going = [...this.#lanes.values()].filter((lane) => !lane.lost)
    return new Map(going.map(({ partition, next, saved = 0n }) => [partition, next > saved ? next : saved]))
  }

  /** False for a record with which its partition has to be opened: the first one, or one that comes again. */
  follows({ position: { partition, offset } }: Delivery): boolean {
    const lane = this.#lanes.get(partition)
    return lane !== undefined && (lane.lost || offset >= lane.next)
  }

  /** Begins a partition, from where its group stands. */
  open(partition: number, saved: bigint | undefined): void {
    this.drop(partition)
    this.#lanes.set(partition, { partition, waiting: [], saved, next: 0n, lost: false, writing: undefined })
  }

  /** Forgets a partition: what waits there is for whoever has it now. */
  drop(partition: number): void {
    const lane = this.#lanes.get(partition)
    this.#lanes.delete(partition)
    if (lane) this.#lose(lane)
  }

  #lose(lane: Lane): void {
    lane.lost = true
    this.#count -= lane.waiting.splice(0).length
    this.#wakeWaiting()
  }

  /** Takes the place of a record of an open partition, in order. Undefined for one that has its receipt, or is not ours to answer. */
  add({ position: { partition, offset }, key }: Delivery): Place | undefined {
    const lane = this.#lanes.get(partition)
    if (!lane || lane.lost || offset < lane.next || offset < (lane.saved ?? 0n)) return undefined
    const place: Place = { lane, offset, key, receipt: undefined }
    lane.waiting.push(place)
    // A group without progress stands at its first record.
    lane.saved ??= offset
    lane.next = offset + 1n
    this.#count++
    return place
  }

  finish(place: Place, receipt: Receipt): void {
    place.receipt = receipt
    if (place.lane.waiting[0] === place) this.#write(place.lane)
  }

  /** Resolves when fewer than `limit` records wait, when the queue is closed or `signal` aborts. */
  async room(limit: number, signal: AbortSignal): Promise<void> {
    if (this.#count < limit) return
    let wake = () => {}
    const look = () => wake()
    signal.addEventListener('abort', look, { once: true })
    while (this.#count >= limit && !this.#closed && !signal.aborted)
      await new Promise<void>((resolve) => {
        wake = resolve
        this.#roomWanted.push(resolve)
      })
    signal.removeEventListener('abort', look)
  }

  #wakeWaiting(): void {
    for (const resolve of this.#roomWanted.splice(0)) resolve()
  }

  /** Publishes what is finished, without further tries, and takes nothing more. */
  async close(): Promise<void> {
    this.#closing = true
    await Promise.all([...this.#lanes.values()].map(({ writing }) => writing))
    this.#shut()
  }

  #shut(): void {
    this.#closed = true
    this.#wakeWaiting()
  }

  #write(lane: Lane): void {
    if (lane.writing || lane.lost || this.#closed) return
    lane.writing = this.#drain(lane)
      .catch((error: unknown) => {
        this.#options.onFailed(error)
        this.#shut()
      })
      .finally(() => {
        lane.writing = undefined
        // Something may have been finished between the last look and now.
        if (lane.waiting[0]?.receipt) this.#write(lane)
      })
  }

  async #drain(lane: Lane): Promise<void> {
    // What finishes in the same turn goes into the same transaction.
    await new Promise<void>((resolve) => setImmediate(resolve))
    while (!this.#closed && !lane.lost) {
      const open = lane.waiting.findIndex(({ receipt }) => !receipt)
      const batch = lane.waiting.slice(0, Math.min(MAX_BATCH, open < 0 ? MAX_BATCH : open))
      if (batch.length === 0) return
      const fate = await this.#publish(lane, batch)
      if (fate === 'stopped') return this.#shut()
      if (fate === 'moved') {
        if (lane.lost) return
        this.#lose(lane)
        this.#options.onMoved(lane.partition)
        return
      }
      if (lane.lost) return
      this.#count -= lane.waiting.splice(0, batch.length).length
      this.#wakeWaiting()
    }
  }

  async #publish(lane: Lane, batch: Place[]): Promise<'published' | 'moved' | 'stopped'> {
    const { topics, topic, group, clock, onError, onFailed } = this.#options
    const { partition } = lane
    const to = (batch.at(-1) as Place).offset + 1n
    const progress = {
      topic,
      group,
      next: new Map([[partition, to]]),
      expect: new Map([[partition, lane.saved as bigint]]),
    }
    const receipts: TopicRecord[] = batch.map(({ key, receipt }) => receiptRecord(key, receipt as Receipt, clock.now()))
    for (let failures = 0; !this.#closed && !lane.lost; failures++) {
      try {
        await topics.transact({ publish: { receipts }, progress })
        lane.saved = to
        return 'published'
      } catch (error) {
        if (isThreadlogError(error, 'progress_moved')) {
          // Perhaps by our own transaction, of which we only heard that it failed.
          if (failures === 0 || (await this.#saved(partition)) !== to) return 'moved'
          lane.saved = to
          return 'published'
        }
        if (!isThreadlogError(error) || error.disposition !== 'retry') {
          onFailed(error)
          return 'stopped'
        }
        onError(error)
        if (this.#closing) return 'stopped'
        await clock.sleep(backoffMs(failures))
      }
    }
    return lane.lost ? 'moved' : 'stopped'
  }

  async #saved(partition: number): Promise<bigint | undefined> {
    const { topics, topic, group } = this.#options
    const progress = await topics.progress(topic, group).catch(() => undefined)
    return progress?.get(partition)
  }
}

/** Milliseconds before the next try, doubling from 20 to 5,000. */
export const backoffMs = (failures: number): number => Math.min(5000, 20 * 2 ** Math.min(failures, 10))
