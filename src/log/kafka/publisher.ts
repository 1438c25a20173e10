import { eitherSignal, isThreadlogError } from '../../base/index.ts'
import type { StreamKey } from '../../events/index.ts'
import type { RecordedEvent } from '../ports.ts'
import { type Connection, contentLoader, fromRow, placeOf, type StoredEvent, type Wakeups } from '../store/index.ts'
import type { Outbox, Outgoing } from './outbox.ts'
import { pause } from './sender.ts'
import type { KafkaTopics } from './topics.ts'

export interface PublisherOptions {
  connection: Connection
  wakeups: Wakeups
  topics: KafkaTopics
  /** Saved place of a partition: everything before it has been published. */
  saved(partition: number): Promise<bigint>
  outbox: Outbox
  onTrouble(error: unknown): void
}

/** Name of the progress. */
export const PUBLISHER = 'publisher'
/** Milliseconds from one transaction to the next while nobody waits for what is to be published: requests go at once. */
const LINGER_MS = 200
/** Events of one transaction, about. */
const EVENTS = 256

const NEXT = `SELECT e.id, e.version, e.value, e.place, lower(hex(s.key)) FROM events e JOIN streams s ON s.id = e.stream
  WHERE e.place >= ? AND e.place < ? ORDER BY e.place LIMIT ?`

/**
 * Publishes what follows from the accepted events of the partitions of this process (requests, checkpoints), each batch in one transaction
 * with the place behind it. Whoever owned a partition before is fenced by the transactional id (design §7).
 */
export class Publisher {
  readonly #o: PublisherOptions
  readonly #running = new Map<number, { stop: AbortController; done: Promise<void> }>()

  constructor(options: PublisherOptions) {
    this.#o = options
  }

  /** Publishes these partitions from now on, and no others. */
  assign(partitions: ReadonlySet<number>): void {
    for (const [partition, { stop }] of this.#running) if (!partitions.has(partition)) stop.abort()
    for (const partition of partitions) {
      const current = this.#running.get(partition)
      if (current && !current.stop.signal.aborted) continue
      const stop = new AbortController()
      const done = (current?.done ?? Promise.resolve()).then(() => this.#run(partition, stop.signal))
      this.#running.set(partition, { stop, done })
    }
  }

  async #run(partition: number, signal: AbortSignal): Promise<void> {
    const { outbox } = this.#o
    for (let failures = 0; !signal.aborted; ) {
      try {
        let saved = await this.#o.saved(partition)
        let next = saved
        let begun = Number.NEGATIVE_INFINITY
        while (!signal.aborted && !this.#o.wakeups.closed) {
          const outgoing = outbox.take(partition, next) ?? this.#read(partition, next)
          if (outgoing.next === next) {
            await this.#o.wakeups.wait('events', signal)
            continue
          }
          const left = begun + LINGER_MS - performance.now()
          if (left > 0 && outgoing.more && !outgoing.publish.requests) {
            await this.#linger(left, signal)
            continue
          }
          begun = performance.now()
          next = outgoing.next
          // A stretch without records moves the place only in memory: read again, it publishes nothing again.
          if (await this.#publish(partition, { saved, next }, outgoing.publish)) saved = next
          outbox.done(partition, next)
          failures = 0
        }
      } catch (error) {
        if (signal.aborted || this.#o.wakeups.closed) return
        this.#o.onTrouble(error)
        // Overtaken: whoever did it goes on, unless the share says that it is us again.
        await pause(isThreadlogError(error, 'progress_moved') ? 5 : failures++, signal)
      }
    }
  }

  /** Until there may be more to publish, or for so long. */
  async #linger(ms: number, signal: AbortSignal): Promise<void> {
    const enough = new AbortController()
    const { signal: either, release } = eitherSignal(signal, enough.signal)
    const timer = setTimeout(() => enough.abort(), ms)
    await this.#o.wakeups.wait('events', either)
    clearTimeout(timer)
    release()
  }

  /** As of the outbox, for what it does not have. */
  #read(partition: number, next: bigint): Outgoing {
    const events = this.#next(partition, next)
    return events.length > 0 ? this.#o.outbox.derive(events) : { publish: {}, next }
  }

  /** The next whole commits of a partition. */
  #next(partition: number, from: bigint): RecordedEvent[] {
    const { connection } = this.#o
    const range = [placeOf(partition, from), placeOf(partition + 1, 0)] as const
    const rows = connection.look(() => connection.lists<[...StoredEvent, key: StreamKey]>(NEXT, ...range, EVENTS))
    const events = rows.map(([id, version, value, place, key]) =>
      fromRow(contentLoader(connection), key, [id, version, value, place]),
    )
    if (rows.length < EVENTS) return events
    // The last commit of a full page may go on behind it.
    const last = events.at(-1)?.event?.commit
    const whole = last && last.index < last.size - 1 ? events.filter(({ event }) => event?.commit.id !== last.id) : events
    return whole.length > 0 ? whole : events
  }

  /** True if there was something to publish. */
  async #publish(partition: number, place: { saved: bigint; next: bigint }, publish: Outgoing['publish']): Promise<boolean> {
    if (Object.keys(publish).length === 0) return false
    const [next, expect] = [place.next, place.saved].map((offset) => new Map([[partition, offset]]))
    await this.#o.topics.transact({ publish, progress: { topic: 'events', group: PUBLISHER, next: next!, expect: expect! } })
    return true
  }

  async close(): Promise<void> {
    for (const { stop } of this.#running.values()) stop.abort()
    await Promise.all([...this.#running.values()].map(({ done }) => done))
  }
}
