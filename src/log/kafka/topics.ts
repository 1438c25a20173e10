import type { Message, Producer } from 'kafkajs'
import { eitherSignal, reject, systemClock } from '../../base/index.ts'
import { partitionOf } from '../partition.ts'
import type { Delivery, Positions, TopicName, TopicRecord, Topics } from '../ports.ts'
import { CLOSE_MS, producerOf, within } from './connection.ts'
import { DirectReader } from './direct.ts'
import { closed, isHopeless, isKind, MISSING, translate } from './errors.ts'
import { toKafkaHeaders } from './headers.ts'
import { type Extent, extentOf, isRemade, type Origin } from './origin.ts'
import { CARRIERS, groupProgress, mark, PROGRESS_HEADER } from './progress.ts'
import { pause } from './sender.ts'
import { deliveryOf, type KafkaTopicsOptions, Subscription } from './subscription.ts'
import { range, topicName } from './topic-plan.ts'
import { moved, Transactor } from './transactor.ts'

type Transact = Parameters<Topics['transact']>[0]
/** Progress may also be that of the events, from which records are derived. */
type KafkaTransaction = Pick<Transact, 'publish'> & {
  progress?: Omit<NonNullable<Transact['progress']>, 'topic'> & { topic: TopicName | 'events' }
}

/**
 * Milliseconds from the beginning of a transaction that carries progress to that of the next in the same partition. Each costs five requests,
 * and what comes meanwhile goes with the next; the first after a silence waits for nothing.
 */
const PACE_MS = { results: 100, others: 25 }
const SCAN = { maxWaitMs: 100, maxBytes: 1 << 20, committed: true }
/** Milliseconds after which no request of a producer is under way any more. */
const RETIRE_MS = 15_000
/** Looks for the markers of a transaction, which the cluster writes after it has said that it is committed. */
const MARKER_TRIES = 100

/** The edge topics on Kafka: plain and transactional writes, reads committed. */
export class KafkaTopics implements Topics {
  readonly #o: KafkaTopicsOptions
  readonly #reader: DirectReader
  readonly #transactors = new Map<string, { transactor: Transactor; partition: number | undefined }>()
  /** By topic and partition, the first record of the newest transaction of this process. */
  readonly #written = new Map<string, bigint>()
  /** Where the partitions of `results` began when they were last looked at: others keep that topic, and may make it anew. */
  readonly #origins = new Map<number, Origin>()
  readonly #subscriptions = new Set<Subscription>()
  readonly #stop = new AbortController()
  #producer: Promise<Producer> | undefined
  readonly #retired = new Set<Promise<Producer>>()

  constructor(options: KafkaTopicsOptions) {
    this.#o = options
    this.#reader = new DirectReader(options.kafka)
  }

  #name(topic: TopicName | 'events' | 'content'): string {
    return topicName(this.#o.prefix, topic)
  }

  nameOf(topic: TopicName): string {
    return this.#name(topic)
  }

  /** Partition by partition: one that is not acknowledged is sent again without the others, which would then stand twice. */
  async publish(topic: TopicName | 'content', records: readonly TopicRecord[]): Promise<Positions> {
    const name = this.#name(topic)
    if (records.length === 0) return this.#reader.offsets(name, range(this.#o.partitions), 'committed')
    const groups = new Map<number, Message[]>()
    for (const record of records) {
      const message = this.#message(record)
      const group = groups.get(message.partition as number)
      if (group) group.push(message)
      else groups.set(message.partition as number, [message])
    }
    const ends = [...groups].map(async ([partition, messages]) => [partition, await this.#send(name, messages)] as const)
    return new Map(await Promise.all(ends))
  }

  /** Sends records of one partition until they are acknowledged. Answers with the offset behind them. */
  async #send(name: string, messages: Message[]): Promise<bigint> {
    for (let failures = 0; ; failures++) {
      if (this.#stop.signal.aborted) throw closed()
      const producer = this.#connected()
      try {
        const [answer] = await (await producer).send({ topic: name, acks: -1, messages })
        if (answer?.baseOffset === undefined || answer.partition !== messages[0]?.partition)
          throw new Error('a partition was not acknowledged')
        return BigInt(answer.baseOffset) + BigInt(messages.length)
      } catch (error) {
        this.#discard(producer)
        if (isHopeless(error) || isKind(error, ...MISSING, 'MESSAGE_TOO_LARGE', 'INVALID_RECORD')) throw translate(error, name)
        this.#o.onTrouble?.(translate(error, name))
        await pause(failures, this.#stop.signal)
      }
    }
  }

  #message({ key, value, headers }: TopicRecord, partition = partitionOf(key, this.#o.partitions)): Message {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    return { partition, key, value: bytes, ...(headers && { headers: toKafkaHeaders(headers) }) }
  }

  /**
   * Progress is that of one partition: each has a transactional id of its own, so that taking one over fences nobody else. Resolves when
   * the next transaction there may begin.
   */
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
    const origin = place && progress?.topic === 'results' ? this.#origins.get(place[0]) : undefined
    const marked = progress && place && { [PROGRESS_HEADER]: mark(progress.group, progress.topic, place[1], origin) }
    const messages = Object.entries(publish).map(([topic, records]) => ({
      topic: this.#name(topic as TopicName),
      messages: (records ?? []).map((record) => {
        const message = this.#message(record, place?.[0])
        return marked ? { ...message, headers: { ...message.headers, ...marked } } : message
      }),
    }))
    const begun = performance.now()
    const written = await this.#transactor(id, progress).run({
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
    for (const { topic: name, partition, offset } of written) this.#written.set(`${name} ${partition}`, offset)
    const left = begun + PACE_MS[progress?.topic === 'results' ? 'results' : 'others'] - performance.now()
    if (progress && left > 0) await systemClock.sleep(left, this.#stop.signal)
  }

  /** The cluster may name the place before a transaction of this process for a moment yet. */
  #withOwn(saved: Positions, of: { group: string; topic: string; partitions: Iterable<number> }): Positions {
    const places = new Map(saved)
    for (const partition of of.partitions)
      for (const { transactor } of this.#transactors.values()) {
        const own = transactor.saved(of.group, of.topic, partition)
        if (own !== undefined && own > (places.get(partition) ?? -1n)) places.set(partition, own)
      }
    return places
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
    const asked = [...partitions]
    try {
      const extents = topic === 'results' ? await this.#extents(name, group, asked) : undefined
      const saved = await groupProgress(this.#o.kafka, this.#reader, {
        ...{ group, topic, carriers, partitions: asked },
        saved: { group: this.#group(group), topic: name },
        ...(extents && { extents }),
      })
      return this.#withOwn(saved, { group: this.#group(group), topic: name, partitions: asked })
    } catch (error) {
      throw translate(error, name)
    }
  }

  /** Looks at partitions anew. Of one that is another by now, what this process wrote of the one before is no progress. */
  async #extents(name: string, group: string, partitions: readonly number[]): Promise<Map<number, Extent>> {
    const found = new Map<number, Extent>()
    for (const partition of partitions) {
      const extent = await this.#reader.patiently(() => extentOf(this.#reader, name, partition))
      found.set(partition, extent)
      const before = this.#origins.get(partition)
      for (const { transactor } of this.#transactors.values()) {
        const own = transactor.saved(this.#group(group), name, partition)
        if (before && own !== undefined && isRemade(before, extent, own)) transactor.forget(this.#group(group), name, partition)
      }
      if (extent.origin) this.#origins.set(partition, extent.origin)
      else this.#origins.delete(partition)
    }
    return found
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
        origin: (partition) => (topic === 'results' ? this.#origins.get(partition) : undefined),
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
    const ends = await this.#ends(name, all)
    const firsts = await this.#asked(name, () => this.#reader.offsets(name, all, 'first'))
    let left = options.limit ?? Number.POSITIVE_INFINITY
    for (const partition of all) {
      const end = ends.get(partition)!
      let offset = options.from?.get(partition) ?? 0n
      if (offset < firsts.get(partition)!) offset = firsts.get(partition)!
      while (left > 0 && offset < end) {
        const batch = await this.#asked(name, () => this.#reader.fetchOne({ topic: name, partition, offset }, SCAN))
        const found = batch.records.filter((record) => record.offset < end).slice(0, left)
        if (found.length > 0) yield found.map((record) => deliveryOf(topic, partition, record))
        left -= found.length
        if (batch.next <= offset) return
        offset = batch.next
      }
    }
  }

  /** Where records that may be read end, those of this process's own transactions included. */
  async #ends(name: string, partitions: readonly number[]): Promise<Map<number, bigint>> {
    for (let tries = 0; ; tries++) {
      const ends = await this.#asked(name, () => this.#reader.offsets(name, partitions, 'committed'))
      const hidden = (partition: number) => (this.#written.get(`${name} ${partition}`) ?? -1n) >= ends.get(partition)!
      if (tries === MARKER_TRIES || !partitions.some(hidden)) return ends
      await pause(0, this.#stop.signal)
    }
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
      const producer = producerOf(this.#o.kafka, { idempotent: false, retry: { retries: 0 } })
      await producer.connect()
      return producer
    })()
    return this.#producer
  }

  /** Replaces a producer that failed. Other sends on it may still come to their end, so it is closed when none can be under way. */
  #discard(failed: Promise<Producer>): void {
    if (this.#producer === failed) this.#producer = undefined
    if (this.#retired.has(failed)) return
    this.#retired.add(failed)
    setTimeout(() => void this.#retire(failed), RETIRE_MS).unref()
  }

  async #retire(producer: Promise<Producer>): Promise<void> {
    this.#retired.delete(producer)
    await within(
      CLOSE_MS,
      producer.then((each) => each.disconnect()),
    )
  }

  async close(): Promise<void> {
    this.#stop.abort()
    const producers = [...this.#retired, ...(this.#producer ? [this.#producer] : [])]
    await Promise.all([
      ...[...this.#transactors.values()].map(({ transactor }) => within(CLOSE_MS, transactor.close())),
      ...producers.map((each) => this.#retire(each)),
      this.#reader.close(),
    ])
  }
}
