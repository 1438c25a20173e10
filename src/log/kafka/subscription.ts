import type { Kafka } from 'kafkajs'
import { retryLater } from '../../base/index.ts'
import type { Delivery, Positions, TopicName } from '../ports.ts'
import type { DirectReader, RawRecord } from './direct.ts'
import { translate } from './errors.ts'
import { fromKafkaHeaders } from './headers.ts'
import { extentOf, isRemade, type Origin } from './origin.ts'
import { PROGRESS_HEADER } from './progress.ts'
import { TopicTail } from './tail.ts'
import { range } from './topic-plan.ts'

export interface KafkaTopicsOptions {
  kafka: Kafka
  prefix: string
  partitions: number
  /** Partitions a group's members read here; absent: all. Called whenever that may have changed, see {@link KafkaTopics.reassign}. */
  assigned?(): ReadonlySet<number> | undefined
  onTrouble?(error: unknown): void
}

/** Batches a subscriber may be behind before reading pauses. */
const BEHIND = 4

export interface SubscriptionOptions {
  group: string | undefined
  from: Positions | undefined
  saved(): Promise<Positions>
  /** Where a partition began when `saved` was last asked; undefined if it had no record, or nobody watches that. */
  origin(partition: number): Origin | undefined
}

/** One reader of a topic: of all partitions, or, for a group, of those this process has. */
export class Subscription {
  readonly #o: KafkaTopicsOptions
  readonly #reader: DirectReader
  readonly #topic: { topic: TopicName; name: string }
  readonly #s: SubscriptionOptions
  readonly #batches: Delivery[][] = []
  #wake = () => {}
  readonly #crowd = new Set<() => void>()
  #tail: TopicTail | undefined
  #failure: { error: unknown } | undefined
  #reading: ReadonlySet<number> = new Set()
  /** Where each partition of a group began, and how far it was read: others may make the topic anew meanwhile. */
  readonly #read = new Map<number, { origin: Origin; next: bigint }>()

  constructor(o: KafkaTopicsOptions, reader: DirectReader, topic: { topic: TopicName; name: string }, s: SubscriptionOptions) {
    this.#o = o
    this.#reader = reader
    this.#topic = topic
    this.#s = s
  }

  async *run(signal: AbortSignal): AsyncGenerator<Delivery[]> {
    const stop = () => {
      this.#wake()
      this.#room()
    }
    signal.addEventListener('abort', stop, { once: true })
    try {
      this.#tail = await this.#open()
      if (signal.aborted) return
      this.#tail.start()
      // The share may have changed while the places were looked up.
      this.reassign()
      while (!signal.aborted) {
        const batch = this.#batches.shift()
        this.#room()
        if (batch) {
          // What was fetched of a partition that is no longer ours is for its new owner.
          const mine = batch.filter(({ position }) => this.#reading.has(position.partition))
          if (mine.length > 0) yield mine
        } else if (this.#failure) throw this.#failure.error
        else await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    } catch (error) {
      // Closed while it looked up where to begin.
      if (!signal.aborted) throw error
    } finally {
      signal.removeEventListener('abort', stop)
      this.#batches.length = 0
      this.#room()
      await this.#tail?.close()
    }
  }

  #room(): void {
    for (const resolve of this.#crowd) resolve()
    this.#crowd.clear()
  }

  #wanted(): ReadonlySet<number> {
    return (this.#s.group === undefined ? undefined : this.#o.assigned?.()) ?? new Set(range(this.#o.partitions))
  }

  async #open(): Promise<TopicTail> {
    this.#reading = this.#wanted()
    const { name } = this.#topic
    return new TopicTail({
      kafka: this.#o.kafka,
      topic: name,
      from: await this.#places(this.#reading, this.#s.from),
      committed: true,
      ...(this.#o.onTrouble && { onTrouble: this.#o.onTrouble }),
      onStopped: (_, error) => {
        this.#refuseRemade().then(
          () => this.#fail(error),
          // Either it was made anew, or nobody knows yet: the reader looks again when it begins again.
          (remade: unknown) => this.#fail(translate(remade, name)),
        )
      },
      onResumed: () => this.#refuseRemade(),
      onRecords: async ({ partition, records }) => {
        const [head] = records
        if (!head) return
        const origin = this.#read.get(partition)?.origin ?? this.#s.origin(partition) ?? head
        this.#read.set(partition, { origin, next: records.at(-1)!.offset + 1n })
        while (this.#batches.length >= BEHIND) await new Promise<void>((resolve) => this.#crowd.add(resolve))
        this.#batches.push(records.map((record) => deliveryOf(this.#topic.topic, partition, record)))
        this.#wake()
      },
    })
  }

  /** @throws ThreadlogError `topic_remade` (retry) when a partition is not the one that was read here (R16) */
  async #refuseRemade(): Promise<void> {
    if (this.#s.group === undefined) return
    for (const [partition, { origin, next }] of this.#read) {
      const path = `${this.#topic.name}[${partition}]`
      if (!isRemade(origin, await extentOf(this.#reader, this.#topic.name, partition), next)) continue
      const error = retryLater('topic_remade', 'The topic was made anew while it was read.', {
        path,
        details: { partition, next: String(next) },
        hint: 'It is read again from its first record.',
      })
      this.#fail(error)
      throw error
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
    this.#wake()
  }

  /** Where each partition is read from: as asked, else the group's saved place, else its first record. */
  async #places(partitions: ReadonlySet<number>, from: Positions | undefined): Promise<Map<number, bigint>> {
    const { name } = this.#topic
    const saved = await this.#s.saved()
    const firsts = await this.#reader
      .patiently(() => this.#reader.offsets(name, [...partitions], 'first'))
      .catch((error: unknown) => {
        throw translate(error, name)
      })
    return new Map(
      [...partitions].map((partition) => {
        const wanted = from?.get(partition) ?? saved.get(partition) ?? 0n
        const first = firsts.get(partition)!
        return [partition, wanted < first ? first : wanted]
      }),
    )
  }

  reassign(): void {
    if (this.#s.group === undefined || !this.#tail) return
    const wanted = this.#wanted()
    const gained = new Set([...wanted].filter((partition) => !this.#reading.has(partition)))
    this.#reading = new Set([...wanted].filter((partition) => !gained.has(partition)))
    const kept = new Map([...this.#reading].map((partition) => [partition, 0n]))
    this.#tail.assign(kept)
    if (gained.size === 0) return
    this.#places(gained, undefined)
      .then((places) => {
        const now = this.#wanted()
        this.#reading = new Set([...wanted].filter((partition) => now.has(partition)))
        this.#tail?.assign(new Map([...kept, ...places].filter(([partition]) => this.#reading.has(partition))))
      })
      .catch((error: unknown) => this.#fail(error))
  }
}

export function deliveryOf(topic: TopicName, partition: number, { offset, key, value, headers, time }: RawRecord): Delivery {
  const { [PROGRESS_HEADER]: _, ...others } = headers
  return {
    topic,
    position: { partition, offset },
    key: key === null ? '' : Buffer.from(key).toString(),
    value: value === null ? new Uint8Array() : new Uint8Array(value),
    ...(Object.keys(others).length > 0 && { headers: fromKafkaHeaders(others) }),
    time,
  }
}
