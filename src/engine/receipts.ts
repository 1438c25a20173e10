import { type Clock, isThreadlogError } from '../base/index.ts'
import { type Receipt, receiptRecord } from '../continuations/index.ts'
import type { Delivery, Positions, TopicName, TopicRecord, Topics } from '../log/index.ts'

/** The place of one record among those of its partition. */
export interface Place {
  readonly partition: number
  readonly offset: bigint
  readonly key: string
  receipt: Receipt | undefined
}

export interface ReceiptQueueOptions {
  topics: Topics
  topic: TopicName
  group: string
  clock: Clock
  /** Where the group stood when its records were first asked for. */
  saved: Positions
  /** Another member of the group has gone on: nothing more may be published from here. */
  onMoved(): void
  /** A transaction that failed; it is tried again if the error says so. */
  onError(error: unknown): void
  /** The log does not take receipts any more. */
  onFailed(error: unknown): void
}

/** Receipts of one transaction. */
const MAX_BATCH = 500

/**
 * Publishes receipts in the order of the records they answer, each batch in one transaction with the progress behind it, so that every
 * record gets exactly one: progress never passes a record without a receipt, and a second member that handled the same records finds
 * the progress moved and publishes nothing.
 */
export class ReceiptQueue {
  readonly #options: ReceiptQueueOptions
  readonly #waiting = new Map<number, Place[]>()
  readonly #saved: Map<number, bigint>
  #count = 0
  #closing = false
  #closed = false
  #writing: Promise<void> | undefined
  #roomWanted: (() => void)[] = []

  constructor(options: ReceiptQueueOptions) {
    this.#options = options
    this.#saved = new Map(options.saved)
  }

  /** Records without a published receipt. */
  get size(): number {
    return this.#count
  }

  /** Takes the place of a record; records of a partition must come in order. */
  add({ position: { partition, offset }, key }: Delivery): Place {
    const place: Place = { partition, offset, key, receipt: undefined }
    const queue = this.#waiting.get(partition)
    if (queue) queue.push(place)
    else this.#waiting.set(partition, [place])
    // A group without progress stands at its first record.
    if (!this.#saved.has(partition)) this.#saved.set(partition, offset)
    this.#count++
    return place
  }

  finish(place: Place, receipt: Receipt): void {
    place.receipt = receipt
    if (this.#waiting.get(place.partition)?.[0] === place) this.#write()
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

  /** Publishes what is finished, without further tries, and takes nothing more. */
  async close(): Promise<void> {
    this.#closing = true
    await this.#writing
    this.#shut()
  }

  #shut(): void {
    this.#closed = true
    for (const resolve of this.#roomWanted.splice(0)) resolve()
  }

  #write(): void {
    if (this.#writing || this.#closed) return
    const failed = (error: unknown) => {
      this.#options.onFailed(error)
      this.#shut()
    }
    this.#writing = this.#drain()
      .catch(failed)
      .finally(() => {
        this.#writing = undefined
        // Something may have been finished between the last look and now.
        if (this.#finished().length > 0) this.#write()
      })
  }

  async #drain(): Promise<void> {
    // What finishes in the same turn goes into the same transaction.
    await new Promise<void>((resolve) => setImmediate(resolve))
    while (!this.#closed) {
      const batch = this.#finished()
      if (batch.length === 0) return
      if (!(await this.#publish(batch))) return this.#shut()
      for (const { partition } of batch) this.#waiting.get(partition)?.shift()
      this.#count -= batch.length
      for (const resolve of this.#roomWanted.splice(0)) resolve()
    }
  }

  /** The records at the head of each partition that have their receipt. */
  #finished(): Place[] {
    const batch: Place[] = []
    for (const queue of this.#waiting.values()) {
      for (const place of queue) {
        if (!place.receipt || batch.length >= MAX_BATCH) break
        batch.push(place)
      }
    }
    return batch
  }

  /** False when this member must not publish any more. */
  async #publish(batch: Place[]): Promise<boolean> {
    const { topics, topic, group, clock, onMoved, onError, onFailed } = this.#options
    const next = new Map(batch.map(({ partition, offset }) => [partition, offset + 1n]))
    const expect = new Map([...next.keys()].map((partition) => [partition, this.#saved.get(partition) as bigint]))
    const receipts: TopicRecord[] = batch.map(({ key, receipt }) => receiptRecord(key, receipt as Receipt, clock.now()))
    for (let failures = 0; !this.#closed; failures++) {
      try {
        await topics.transact({ publish: { receipts }, progress: { topic, group, next, expect } })
        return this.#advance(next)
      } catch (error) {
        if (isThreadlogError(error, 'progress_moved')) {
          // Perhaps by our own transaction, of which we only heard that it failed.
          if (failures > 0 && (await this.#standsAt(next))) return this.#advance(next)
          onMoved()
          return false
        }
        if (!isThreadlogError(error) || error.disposition !== 'retry') {
          onFailed(error)
          return false
        }
        onError(error)
        if (this.#closing) return false
        await clock.sleep(backoffMs(failures))
      }
    }
    return false
  }

  async #standsAt(next: Positions): Promise<boolean> {
    const { topics, topic, group } = this.#options
    const saved = await topics.progress(topic, group)
    return [...next].every(([partition, offset]) => saved.get(partition) === offset)
  }

  #advance(next: Positions): true {
    for (const [partition, offset] of next) this.#saved.set(partition, offset)
    return true
  }
}

/** Milliseconds before the next try, doubling from 20 to 5,000. */
export const backoffMs = (failures: number): number => Math.min(5000, 20 * 2 ** Math.min(failures, 10))
