import type { Kafka, Message, Producer } from 'kafkajs'
import { eitherSignal, reject } from '../../base/index.ts'
import { partitionOf } from '../partition.ts'
import type { Delivery, Positions, TopicName, TopicRecord, Topics } from '../ports.ts'
import { CLOSE_MS, METADATA_MS, within } from './connection.ts'
import { DirectReader, type Fetched, type RawRecord } from './direct.ts'
import { closed, isHopeless, isKind, MISSING, translate } from './errors.ts'
import { CARRIERS, groupProgress, mark, PROGRESS_HEADER } from './progress.ts'
import { pause } from './sender.ts'
import { TopicTail } from './tail.ts'
import { topicName } from './topic-plan.ts'
import { moved, Transactor } from './transactor.ts'

export interface KafkaTopicsOptions {
  kafka: Kafka
  prefix: string
  partitions: number
  /** Partitions a group's members read here; absent: all. Called whenever that may have changed, see {@link KafkaTopics.reassign}. */
  assigned?(): ReadonlySet<number> | undefined
  onTrouble?(error: unknown): void
}

type Transact = Parameters<Topics['transact']>[0]
/** Progress may also be that of the events, from which records are derived. */
type KafkaTransaction = Pick<Transact, 'publish'> & {
  progress?: Omit<NonNullable<Transact['progress']>, 'topic'> & { topic: TopicName | 'events' }
}

/** Batches a subscriber may be behind before reading pauses. */
const BEHIND = 4
const SCAN = { maxWaitMs: 100, maxBytes: 1 << 20, committed: true }

/** The edge topics on Kafka: plain and transactional writes, reads committed. */
export class KafkaTopics implements Topics {
  readonly #o: KafkaTopicsOptions
  readonly #reader: DirectReader
  readonly #transactors = new Map<string, { transactor: Transactor; partition: number | undefined }>()
  readonly #subscriptions = new Set<Subscription>()
  readonly #stop = new AbortController()
  #producer: Promise<Producer> | undefined

  constructor(options: KafkaTopicsOptions) {
    this.#o = options
    this.#reader = new DirectReader(options.kafka)
  }

  #name(topic: TopicName | 'events'): string {
    return topicName(this.#o.prefix, topic)
  }

  nameOf(topic: TopicName): string {
    return this.#name(topic)
  }

  async publish(topic: TopicName, records: readonly TopicRecord[]): Promise<Positions> {
    const name = this.#name(topic)
    if (records.length === 0) return this.#reader.offsets(name, range(this.#o.partitions), 'committed')
    const messages = records.map((record) => this.#message(record))
    for (let failures = 0; ; failures++) {
      if (this.#stop.signal.aborted) throw closed()
      try {
        const answers = await (await this.#connected()).send({ topic: name, acks: -1, messages })
        const ends = new Map(answers.map(({ partition, baseOffset }) => [partition, BigInt(baseOffset ?? -1)]))
        for (const { partition } of messages) {
          const base = ends.get(partition!)
          if (base === undefined || base < 0n) throw new Error('a partition was not acknowledged')
          ends.set(partition!, base + 1n)
        }
        return ends
      } catch (error) {
        this.#discard()
        if (isHopeless(error) || isKind(error, ...MISSING, 'MESSAGE_TOO_LARGE', 'INVALID_RECORD')) throw translate(error, name)
        this.#o.onTrouble?.(translate(error, name))
        await pause(failures, this.#stop.signal)
      }
    }
  }

  #message({ key, value, headers }: TopicRecord, partition = partitionOf(key, this.#o.partitions)): Message {
    return { partition, key, value: Buffer.from(value.buffer, value.byteOffset, value.byteLength), ...(headers && { headers }) }
  }

  /** Progress is that of one partition: each has a transactional id of its own, so that taking one over fences nobody else. */
  async transact({ publish, progress }: KafkaTransaction): Promise<void> {
    const { prefix } = this.#o
    if (progress && progress.next.size !== 1)
      throw reject('progress_partitions', 'A transaction carries the progress of one partition.', {
        path: `progress.next`,
        expected: 'one partition',
        details: { partitions: progress.next.size },
      })
    const [place] = progress ? [...progress.next] : []
    const id = [prefix, progress?.group ?? 'edges', ...(progress ? [progress.topic, place?.[0] ?? 0] : [])].join('.')
    // Who lost a partition must not take its id again: that would stop the new owner.
    if (place && this.#o.assigned?.()?.has(place[0]) === false) throw moved(id)
    // Records stand in the partition whose progress they carry: who owns one owns the other.
    const marked = progress && place && { [PROGRESS_HEADER]: mark(progress.group, progress.topic, place[1]) }
    const messages = Object.entries(publish).map(([topic, records]) => ({
      topic: this.#name(topic as TopicName),
      messages: (records ?? []).map((record) => {
        const message = this.#message(record, place?.[0])
        return marked ? { ...message, headers: { ...message.headers, ...marked } } : message
      }),
    }))
    await this.#transactor(id, progress).run({
      messages,
      ...(progress &&
        place && {
          progress: {
            topic: this.#name(progress.topic),
            group: this.#group(progress.group),
            partition: place[0],
            next: place[1],
            ...(progress.expect?.has(place[0]) && { expect: progress.expect.get(place[0]) as bigint }),
          },
        }),
    })
  }

  #transactor(id: string, progress: KafkaTransaction['progress']): Transactor {
    const known = this.#transactors.get(id)
    if (known) return known.transactor
    const [partition] = progress?.next.keys() ?? []
    const saved = async () =>
      progress && partition !== undefined
        ? (await this.progress(progress.topic, progress.group, [partition])).get(partition)
        : undefined
    const transactor = new Transactor(this.#o.kafka, id, saved)
    this.#transactors.set(id, { transactor, partition })
    return transactor
  }

  #group(group: string): string {
    return `${this.#o.prefix}.${group}`
  }

  /** The group's offsets or what its records say of them, whichever is further. */
  async progress(
    topic: TopicName | 'events',
    group: string,
    partitions: Iterable<number> = range(this.#o.partitions),
  ): Promise<Positions> {
    const name = this.#name(topic)
    const carriers = (CARRIERS[topic] ?? []).map((carrier) => this.#name(carrier))
    try {
      return await groupProgress(this.#o.kafka, this.#reader, {
        ...{ group, topic, carriers, partitions: [...partitions] },
        saved: { group: this.#group(group), topic: name },
      })
    } catch (error) {
      throw translate(error, name)
    }
  }

  async *subscribe(
    topic: TopicName,
    options: { group?: string; from?: Positions; signal?: AbortSignal },
  ): AsyncGenerator<Delivery[]> {
    if (this.#stop.signal.aborted) throw closed()
    const subscription = new Subscription(
      this.#o,
      this.#reader,
      { topic, name: this.#name(topic) },
      {
        group: options.group,
        saved: async () => (options.group === undefined ? new Map() : this.progress(topic, options.group)),
        from: options.from,
      },
    )
    this.#subscriptions.add(subscription)
    const { signal, release } = eitherSignal(this.#stop.signal, ...(options.signal ? [options.signal] : []))
    try {
      yield* subscription.run(signal)
    } finally {
      release()
      this.#subscriptions.delete(subscription)
    }
  }

  /** The partitions of this process have changed: groups go on with those it has now. */
  reassign(): void {
    const mine = this.#o.assigned?.()
    for (const [id, { transactor, partition }] of this.#transactors) {
      if (partition === undefined || mine?.has(partition) !== false) continue
      // Its id is the new owner's; what this process knew of the progress will be old when the partition comes back.
      this.#transactors.delete(id)
      void transactor.close()
    }
    for (const subscription of this.#subscriptions) subscription.reassign()
  }

  async *scan(topic: TopicName, options: { from?: Positions; limit?: number } = {}): AsyncGenerator<Delivery[]> {
    const name = this.#name(topic)
    const all = range(this.#o.partitions)
    const ends = await this.#asked(name, () => this.#reader.offsets(name, all, 'committed'))
    const firsts = await this.#asked(name, () => this.#reader.offsets(name, all, 'first'))
    let left = options.limit ?? Number.POSITIVE_INFINITY
    for (const partition of all) {
      const end = ends.get(partition)!
      let offset = options.from?.get(partition) ?? 0n
      if (offset < firsts.get(partition)!) offset = firsts.get(partition)!
      while (left > 0 && offset < end) {
        const batch = await this.#asked(name, () => this.#fetch(name, partition, offset))
        const found = batch.records.filter((record) => record.offset < end).slice(0, left)
        if (found.length > 0) yield found.map((record) => deliveryOf(topic, partition, record))
        left -= found.length
        if (batch.next <= offset) return
        offset = batch.next
      }
    }
  }

  async #fetch(name: string, partition: number, offset: bigint): Promise<Fetched> {
    for (const [node] of await this.#reader.byLeader([{ topic: name, partition }])) {
      const [batch] = await this.#reader.fetch(node, [{ topic: name, partition, offset }], SCAN)
      if (batch?.errorCode === 0) return batch
    }
    throw Object.assign(new Error('the partition was not read'), { type: 'LEADER_NOT_AVAILABLE' })
  }

  async #asked<T>(name: string, ask: () => Promise<T>): Promise<T> {
    try {
      return await this.#reader.patiently(ask)
    } catch (error) {
      throw translate(error, name)
    }
  }

  #connected(): Promise<Producer> {
    this.#producer ??= (async () => {
      const producer = this.#o.kafka.producer({
        idempotent: false,
        allowAutoTopicCreation: false,
        metadataMaxAge: METADATA_MS,
        createPartitioner:
          () =>
          ({ message }) =>
            message.partition as number,
        retry: { retries: 0 },
      })
      await producer.connect()
      return producer
    })()
    return this.#producer
  }

  #discard(): void {
    void this.#producer?.then((producer) => producer.disconnect()).catch(() => {})
    this.#producer = undefined
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await Promise.all([...this.#transactors.values()].map(({ transactor }) => within(CLOSE_MS, transactor.close())))
    await within(
      CLOSE_MS,
      this.#producer?.then((producer) => producer.disconnect()),
    )
    await this.#reader.close()
  }
}

interface SubscriptionOptions {
  group: string | undefined
  from: Positions | undefined
  saved(): Promise<Positions>
}

/** One reader of a topic: of all partitions, or, for a group, of those this process has. */
class Subscription {
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
        this.#failure ??= { error }
        this.#wake()
      },
      onRecords: async ({ partition, records }) => {
        if (records.length === 0) return
        while (this.#batches.length >= BEHIND) await new Promise<void>((resolve) => this.#crowd.add(resolve))
        this.#batches.push(records.map((record) => deliveryOf(this.#topic.topic, partition, record)))
        this.#wake()
      },
    })
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
      .catch((error: unknown) => {
        this.#failure ??= { error }
        this.#wake()
      })
  }
}

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

function deliveryOf(topic: TopicName, partition: number, { offset, key, value, headers, time }: RawRecord): Delivery {
  const { [PROGRESS_HEADER]: _, ...others } = headers
  return {
    topic,
    position: { partition, offset },
    key: key === null ? '' : Buffer.from(key).toString(),
    value: value === null ? new Uint8Array() : new Uint8Array(value),
    ...(Object.keys(others).length > 0 && { headers: others }),
    time,
  }
}
