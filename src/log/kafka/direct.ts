import type { Kafka } from 'kafkajs'
import { CLOSE_MS, METADATA_MS, within } from './connection.ts'
import { closed, isHopeless, isKind } from './errors.ts'
import { clusterKey } from './inside.ts'

// Reading at an offset without a group, and asking for offsets: kafkajs 2.2.4 does both inside and offers neither. This file and
// inside.ts are all that knows its inside (test/log/kafka/inside.kafka.test.ts holds them to that).

/** A record as a broker gave it. */
export interface RawRecord {
  readonly offset: bigint
  readonly key: Uint8Array | null
  /** Null on compacted topics: a tombstone. */
  readonly value: Uint8Array | null
  readonly headers: Readonly<Record<string, string>>
  /** Epoch milliseconds. */
  readonly time: number
  /** Leader epoch of its batch. */
  readonly epoch: number
}

export interface Ask {
  readonly topic: string
  readonly partition: number
  /** First offset wanted. */
  readonly offset: bigint
}

export interface Fetched {
  readonly topic: string
  readonly partition: number
  /** Without control records and, read committed, without those of aborted transactions. */
  readonly records: readonly RawRecord[]
  /** Where to go on: behind the last record or marker of the answer. */
  readonly next: bigint
  /** First offset the partition still has. */
  readonly start: bigint
  /** End of what may be read. */
  readonly end: bigint
  /** Protocol error code of this partition; 0 = none. */
  readonly errorCode: number
}

/** Milliseconds a question is repeated. */
const PATIENCE_MS = 8_000

/** Protocol error codes that are looked at. */
export const OFFSET_OUT_OF_RANGE = 1

export interface FetchOptions {
  /** Milliseconds a broker may hold the request while there is nothing. */
  maxWaitMs: number
  /** Bytes of one partition, about. */
  maxBytes: number
  committed: boolean
}

interface InnerMessage {
  offset: string
  key: Buffer | null
  value: Buffer | null
  headers?: Record<string, Buffer | (Buffer | undefined)[] | undefined>
  timestamp: string
  isControlRecord?: boolean
  batchContext: { partitionLeaderEpoch: number; producerId: string; inTransaction: boolean; isControlBatch?: boolean }
}

interface InnerPartition {
  partition: number
  errorCode: number
  highWatermark: string
  lastStableOffset: string
  lastStartOffset: string
  abortedTransactions: { producerId: string; firstOffset: string }[]
  messages: InnerMessage[]
}

interface InnerBroker {
  fetch(request: object): Promise<{ responses: { topicName: string; partitions: InnerPartition[] }[] }>
  listOffsets(request: object): Promise<{
    responses: { topic: string; partitions: { partition: number; offset: string; errorCode: number }[] }[]
  }>
}

interface InnerCluster {
  connect(): Promise<void>
  disconnect(): Promise<void>
  isConnected(): boolean
  addTargetTopic(topic: string): Promise<void>
  refreshMetadata(): Promise<void>
  refreshMetadataIfNecessary(): Promise<void>
  findTopicPartitionMetadata(topic: string): { partitionId: number; leader: number }[]
  findLeaderForPartitions(topic: string, partitions: number[]): Record<string, number[]>
  findBroker(o: { nodeId: string }): Promise<InnerBroker>
}

/** A connection of its own to the cluster, for reading at given offsets. */
export class DirectReader {
  readonly #kafka: Kafka
  #cluster: InnerCluster | undefined
  #connecting: Promise<InnerCluster> | undefined
  #closed = false

  constructor(kafka: Kafka) {
    this.#kafka = kafka
  }

  /** Number of partitions of a topic. @throws when there is none */
  async partitions(topic: string): Promise<number> {
    const cluster = await this.#open()
    await cluster.addTargetTopic(topic)
    await cluster.refreshMetadataIfNecessary()
    return cluster.findTopicPartitionMetadata(topic).length
  }

  /** Looks up leaders anew. */
  async refresh(): Promise<void> {
    const cluster = await this.#open()
    if (!cluster.isConnected()) {
      await this.#drop()
      return
    }
    await cluster.refreshMetadata()
  }

  /** Asks again, leaders looked up anew, while brokers are busy becoming what they are asked as; for at most `ms`. */
  async patiently<T>(ask: () => Promise<T>, ms = PATIENCE_MS): Promise<T> {
    const deadline = performance.now() + ms
    for (let tries = 0; ; tries++) {
      try {
        return await ask()
      } catch (error) {
        if (this.#closed || performance.now() > deadline || isHopeless(error)) throw error
        await new Promise((resolve) => setTimeout(resolve, Math.min(400, 20 * 2 ** tries)))
        await this.refresh().catch(() => {})
      }
    }
  }

  /** Groups asks by the broker that leads their partitions, so that each can be asked by a loop of its own. */
  async byLeader<T extends { topic: string; partition: number }>(asks: readonly T[]): Promise<Map<string, T[]>> {
    const cluster = await this.#open()
    const groups = new Map<string, T[]>()
    for (const topic of new Set(asks.map((ask) => ask.topic))) {
      await cluster.addTargetTopic(topic)
      const mine = asks.filter((ask) => ask.topic === topic)
      const leaders = cluster.findLeaderForPartitions(
        topic,
        mine.map((ask) => ask.partition),
      )
      for (const [node, partitions] of Object.entries(leaders)) {
        const led = new Set(partitions.map(Number))
        groups.set(node, [...(groups.get(node) ?? []), ...mine.filter((ask) => led.has(ask.partition))])
      }
    }
    return groups
  }

  /** One fetch from one broker. */
  async fetch(node: string, asks: readonly Ask[], { maxWaitMs, maxBytes, committed }: FetchOptions): Promise<Fetched[]> {
    const cluster = await this.#open()
    const broker = await cluster.findBroker({ nodeId: node })
    const request = {
      topics: byTopic(asks, ({ partition, offset }) => ({ partition, fetchOffset: String(offset), maxBytes })),
      maxWaitTime: maxWaitMs,
      minBytes: 1,
      maxBytes: Math.max(maxBytes, 8 * 1024 * 1024),
      isolationLevel: committed ? 1 : 0,
    }
    let responses: Awaited<ReturnType<InnerBroker['fetch']>>['responses']
    try {
      responses = (await broker.fetch(request)).responses
    } catch (error) {
      return [outOfRange(error)]
    }
    const from = new Map(asks.map((ask) => [`${ask.topic} ${ask.partition}`, ask.offset]))
    return responses.flatMap(({ topicName, partitions }) =>
      partitions.map((partition) =>
        fetched(topicName, partition, from.get(`${topicName} ${partition.partition}`) ?? 0n, committed),
      ),
    )
  }

  /** One fetch of one partition from whoever leads it. @throws when that broker does not give it */
  async fetchOne(ask: Ask, options: FetchOptions): Promise<Fetched> {
    const [[node] = []] = await this.byLeader([ask])
    const [batch] = node === undefined ? [] : await this.fetch(node, [ask], options)
    if (batch?.errorCode === 0) return batch
    throw Object.assign(new Error('the partition was not read'), { type: 'LEADER_NOT_AVAILABLE' })
  }

  /**
   * First or end offsets of partitions.
   * @param which `committed`: behind the last record a read-committed consumer may see; `since`: the first record of that time
   * (epoch milliseconds) or later, -1 when there is none
   */
  async offsets(
    topic: string,
    partitions: readonly number[],
    which: 'first' | 'end' | 'committed' | { since: number },
  ): Promise<Map<number, bigint>> {
    const timestamp = typeof which === 'object' ? String(which.since) : which === 'first' ? '-2' : '-1'
    const groups = await this.byLeader(partitions.map((partition) => ({ topic, partition })))
    const found = new Map<number, bigint>()
    for (const [node, led] of groups) {
      const broker = await (await this.#open()).findBroker({ nodeId: node })
      const { responses } = await broker.listOffsets({
        replicaId: -1,
        isolationLevel: which === 'committed' ? 1 : 0,
        topics: [{ topic, partitions: led.map(({ partition }) => ({ partition, timestamp })) }],
      })
      for (const { partitions: answers } of responses)
        for (const { partition, offset } of answers) found.set(partition, BigInt(offset))
    }
    if (found.size < partitions.length)
      throw Object.assign(new Error('not all partitions answered'), { type: 'LEADER_NOT_AVAILABLE' })
    return found
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#drop()
  }

  async #open(): Promise<InnerCluster> {
    if (this.#closed) throw closed()
    if (this.#cluster) return this.#cluster
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined
    })
    return this.#connecting
  }

  async #connect(): Promise<InnerCluster> {
    const cluster = createCluster(this.#kafka)
    await cluster.connect()
    if (this.#closed) {
      // Closed meanwhile: a connection left open would keep the process up.
      await cluster.disconnect().catch(() => {})
      throw new Error('closed')
    }
    this.#cluster = cluster
    return cluster
  }

  async #drop(): Promise<void> {
    const cluster = this.#cluster
    this.#cluster = undefined
    await within(CLOSE_MS, cluster?.disconnect())
  }
}

function createCluster(kafka: Kafka): InnerCluster {
  const create = (kafka as unknown as Record<symbol, (options: object) => InnerCluster>)[clusterKey(kafka)]!
  return create.call(kafka, {
    metadataMaxAge: METADATA_MS,
    allowAutoTopicCreation: false,
    isolationLevel: 0,
    maxInFlightRequests: null,
  })
}

function byTopic<T>(asks: readonly Ask[], of: (ask: Ask) => T): { topic: string; partitions: T[] }[] {
  const topics = new Map<string, T[]>()
  for (const ask of asks) topics.set(ask.topic, [...(topics.get(ask.topic) ?? []), of(ask)])
  return [...topics].map(([topic, partitions]) => ({ topic, partitions }))
}

function fetched(topic: string, answer: InnerPartition, from: bigint, committed: boolean): Fetched {
  const { partition, errorCode, messages } = answer
  const last = messages.at(-1)
  const records = (committed ? withoutAborted(answer) : messages.filter((message) => !isControl(message)))
    // A batch is sent whole, also when only its end was asked for.
    .filter((message) => BigInt(message.offset) >= from)
    .map(recordOf)
  return {
    topic,
    partition,
    records,
    next: last ? max(from, BigInt(last.offset) + 1n) : from,
    start: BigInt(answer.lastStartOffset),
    end: BigInt(committed ? answer.lastStableOffset : answer.highWatermark),
    errorCode,
  }
}

/** kafkajs throws for the whole answer what a broker said of one partition. @throws everything else */
function outOfRange(error: unknown): Fetched {
  const { topic, partition } = error as { topic?: string; partition?: number }
  if (!isKind(error, 'KafkaJSOffsetOutOfRange') || topic === undefined || partition === undefined) throw error
  return { topic, partition, records: [], next: 0n, start: 0n, end: 0n, errorCode: OFFSET_OUT_OF_RANGE }
}

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)

const isControl = (message: InnerMessage): boolean =>
  message.isControlRecord === true || message.batchContext.isControlBatch === true

/**
 * Drops what aborted transactions wrote: the broker lists them with their first offsets, a control record of the same producer ends each
 * (KIP-98). Unlike kafkajs, which drops by the key of a record, this looks at the batch.
 */
function withoutAborted({ messages, abortedTransactions }: InnerPartition): InnerMessage[] {
  const pending = [...(abortedTransactions ?? [])].sort((a, b) => (BigInt(a.firstOffset) < BigInt(b.firstOffset) ? -1 : 1))
  const aborted = new Set<string>()
  return messages.filter((message) => {
    const { producerId, inTransaction } = message.batchContext
    while (pending[0] && BigInt(pending[0].firstOffset) <= BigInt(message.offset)) aborted.add(pending.shift()!.producerId)
    if (isControl(message)) {
      aborted.delete(producerId)
      return false
    }
    return !(inTransaction && aborted.has(producerId))
  })
}

function recordOf({ offset, key, value, headers = {}, timestamp, batchContext }: InnerMessage): RawRecord {
  const texts: Record<string, string> = {}
  for (const [name, given] of Object.entries(headers)) {
    const one = Array.isArray(given) ? given[0] : given
    if (one !== undefined && one !== null) texts[name] = Buffer.from(one).toString()
  }
  return { offset: BigInt(offset), key, value, headers: texts, time: Number(timestamp), epoch: batchContext.partitionLeaderEpoch }
}
