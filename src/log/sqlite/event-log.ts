import type { Commit, StreamKey } from '../../events/index.ts'
import { checkCommit } from '../commit-check.ts'
import type { Appended, EventLog, Positions, RecordedEvent, StreamHead } from '../ports.ts'
import {
  type Channel,
  type Connection,
  type EventStore,
  FIRST_PAGE,
  type LogContent,
  live,
  nextLimit,
  PARTITION,
  type Projectors,
  type Wakeups,
  type Writer,
} from '../store/index.ts'
import { positionsAt } from './topic-store.ts'

export interface EventLogParts {
  id: string
  connection: Connection
  writer: Writer
  events: EventStore
  projectors: Projectors
  wakeups: Wakeups
  content: LogContent
  /** Notes that records of a channel were written in this transaction. */
  written(channel: Channel): void
  close(): Promise<void>
}

/** The event log of one file, or of memory. */
export class SqliteEventLog implements EventLog {
  readonly id: string
  readonly partitions = 1
  readonly #parts: EventLogParts

  constructor(parts: EventLogParts) {
    this.id = parts.id
    this.#parts = parts
  }

  partitionOf(): number {
    return PARTITION
  }

  async append(commit: Commit): Promise<Appended> {
    const { events, projectors, writer, written } = this.#parts
    checkCommit(commit)
    return writer.submit(() => {
      const { events: stored, ...appended } = events.append(commit)
      if (stored.length > 0) {
        written('events')
        projectors.apply(stored)
      }
      return appended
    })
  }

  async *read(stream: StreamKey, after = 0): AsyncGenerator<RecordedEvent[]> {
    const { connection, content, events } = this.#parts
    for (let limit = FIRST_PAGE; ; ) {
      const page = await connection.query(() => events.page(stream, after, limit))
      await content.completeFor(page)
      if (page.length > 0) yield page
      if (page.length < limit) return
      after = page[page.length - 1]!.version
      limit = nextLimit(page)
    }
  }

  head(stream: StreamKey): Promise<StreamHead | undefined> {
    return this.#parts.connection.query(() => this.#parts.events.head(stream))
  }

  follow(options: { from?: Positions; partitions?: number[]; signal?: AbortSignal }): AsyncGenerator<RecordedEvent[]> {
    const { connection, events, wakeups } = this.#parts
    const mine = options.partitions?.includes(PARTITION) ?? true
    let next = Number(options.from?.get(PARTITION) ?? connection.look(() => events.end()))
    let limit = FIRST_PAGE
    const take = (): RecordedEvent[] => {
      if (!mine) return []
      const slice = events.slice(next, limit)
      next = slice.next
      if (slice.events.length > 0) limit = nextLimit(slice.events)
      return slice.events
    }
    return live(connection, wakeups, { channel: 'events', signal: options.signal, take })
  }

  /** What is committed is readable at once; projectors of this process are brought up to it. */
  async barrier(): Promise<Positions> {
    const { connection, events, projectors, writer } = this.#parts
    const end = await connection.query(() => events.end())
    if (await connection.query(() => projectors.isBehind())) await writer.submit(() => {})
    return positionsAt(end)
  }

  close(): Promise<void> {
    return this.#parts.close()
  }
}
