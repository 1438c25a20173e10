import type { Delivery, Positions, TopicName, TopicRecord, Topics } from '../ports.ts'
import { type Channel, type Connection, live, PARTITION, type Wakeups, type Writer } from '../store/index.ts'
import { positionsAt, TOPICS, type TopicStore } from './topic-store.ts'

/** Records of one page of a topic. */
const PAGE = 256

export interface TopicsParts {
  connection: Connection
  writer: Writer
  store: TopicStore
  wakeups: Wakeups
  /** Notes that records of a channel were written in this transaction. */
  written(channel: Channel): void
}

/** The edge topics of one file, or of memory. */
export class SqliteTopics implements Topics {
  readonly #parts: TopicsParts

  constructor(parts: TopicsParts) {
    this.#parts = parts
  }

  publish(topic: TopicName, records: readonly TopicRecord[]): Promise<Positions> {
    return this.#parts.writer.submit(() => this.#write(topic, records))
  }

  async transact({ publish, progress }: Parameters<Topics['transact']>[0]): Promise<void> {
    await this.#parts.writer.submit(() => {
      if (progress !== undefined) this.#parts.store.advance(progress)
      for (const topic of TOPICS) if (publish[topic] !== undefined) this.#write(topic, publish[topic])
    })
  }

  subscribe(topic: TopicName, options: { group?: string; from?: Positions; signal?: AbortSignal }): AsyncGenerator<Delivery[]> {
    const { connection, store, wakeups } = this.#parts
    let next = options.from?.get(PARTITION)
    const take = (): Delivery[] => {
      next ??= BigInt((options.group === undefined ? undefined : store.saved(topic, options.group)) ?? 1)
      const slice = store.slice(topic, next, PAGE)
      if (slice.length > 0) next = slice[slice.length - 1]!.position.offset + 1n
      return slice
    }
    return live(connection, wakeups, { channel: topic, signal: options.signal, take })
  }

  async *scan(topic: TopicName, options: { from?: Positions; limit?: number } = {}): AsyncGenerator<Delivery[]> {
    const { connection, store } = this.#parts
    const end = BigInt(await connection.query(() => store.end(topic)))
    let next = options.from?.get(PARTITION) ?? 1n
    let left = options.limit ?? Number.POSITIVE_INFINITY
    while (left > 0 && next < end) {
      const page = await connection.query(() => store.slice(topic, next, Math.min(PAGE, left)))
      const found = page.filter((record) => record.position.offset < end)
      if (found.length === 0) return
      yield found
      left -= found.length
      next = found[found.length - 1]!.position.offset + 1n
    }
  }

  progress(topic: TopicName, group: string): Promise<Positions> {
    const { connection, store } = this.#parts
    return connection.query(() => {
      const saved = store.saved(topic, group)
      return saved === undefined ? new Map() : positionsAt(saved)
    })
  }

  #write(topic: TopicName, records: readonly TopicRecord[]): Positions {
    if (records.length > 0) this.#parts.written(topic)
    return this.#parts.store.publish(topic, records)
  }
}
