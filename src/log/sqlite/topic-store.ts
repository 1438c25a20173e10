import { retryLater } from '../../base/index.ts'
import type { Delivery, Positions, TopicName, TopicRecord } from '../ports.ts'
import { type Connection, PARTITION } from '../store/index.ts'

export const TOPICS: readonly TopicName[] = ['requests', 'results', 'receipts', 'checkpoints']

export interface Progress {
  topic: TopicName
  group: string
  next: Positions
  expect?: Positions
}

interface TopicRow {
  offset: number
  key: string | Uint8Array | null
  value: string | Uint8Array
  headers: string | null
  time: number
}

/** Largest offset a table can hold; no position lies above it. */
const END = 2n ** 53n - 1n

/** The topic tables and the groups' progress. Writes only inside the writer's transaction. */
export class TopicStore {
  readonly #connection: Connection
  readonly #now: () => number

  constructor(connection: Connection, now: () => number) {
    this.#connection = connection
    this.#now = now
  }

  /** Appends records and returns the position behind the last one. */
  publish(topic: TopicName, records: readonly TopicRecord[]): Positions {
    const insert = this.#connection.prepare(`INSERT INTO ${topic}(key, value, headers, time) VALUES (?, ?, ?, ?)`)
    const time = this.#now()
    let last: number | bigint | undefined
    for (const { key, value, headers } of records)
      last = insert.run(key, value, headers === undefined ? null : JSON.stringify(headers), time).lastInsertRowid
    return positionsAt(last === undefined ? this.end(topic) : Number(last) + 1)
  }

  /**
   * Saves where a group goes on.
   * @throws ThreadlogError `progress_moved` when `expect` is given and is not what is saved
   */
  advance({ topic, group, next, expect }: Progress): void {
    const wanted = expect?.get(PARTITION)
    const saved = this.saved(topic, group)
    if (wanted !== undefined && wanted !== BigInt(saved ?? 1))
      throw retryLater('progress_moved', 'Another member of the group has gone on meanwhile.', {
        hint: 'Read the saved progress and go on from there.',
        details: { topic, group, expected: Number(wanted), saved: saved ?? 1 },
      })
    const to = next.get(PARTITION)
    if (to === undefined) return
    this.#connection.run(
      'INSERT INTO progress(topic, group_name, next) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET next = excluded.next',
      topic,
      group,
      to,
    )
  }

  /** The saved next offset of a group. */
  saved(topic: TopicName, group: string): number | undefined {
    return this.#connection.get<{ next: number }>('SELECT next FROM progress WHERE topic = ? AND group_name = ?', topic, group)
      ?.next
  }

  /** Records with offset at or above `from`, in order. */
  slice(topic: TopicName, from: bigint, limit: number): Delivery[] {
    const rows = this.#connection.all<TopicRow>(
      `SELECT offset, key, value, headers, time FROM ${topic} WHERE offset >= ? ORDER BY offset LIMIT ?`,
      from > END ? END : from,
      limit,
    )
    return rows.map((row) => delivery(topic, row))
  }

  end(topic: TopicName): number {
    return this.#connection.get<{ next: number }>(`SELECT ifnull(max(offset), 0) + 1 AS next FROM ${topic}`)!.next
  }
}

export const positionsAt = (offset: number): Positions => new Map([[PARTITION, BigInt(offset)]])

function delivery(topic: TopicName, row: TopicRow): Delivery {
  const headers = parseHeaders(row.headers)
  return {
    topic,
    position: { partition: PARTITION, offset: BigInt(row.offset) },
    key: text(row.key),
    value: bytes(row.value),
    ...(headers && { headers }),
    time: row.time,
  }
}

/** Rows are also written by hand, from any language: text and blob both mean their bytes. */
const bytes = (value: string | Uint8Array): Uint8Array => (typeof value === 'string' ? Buffer.from(value) : value)

const text = (value: string | Uint8Array | null): string =>
  typeof value === 'string' ? value : value === null ? '' : Buffer.from(value).toString()

function parseHeaders(value: string | null): Record<string, string> | undefined {
  if (value === null) return undefined
  try {
    const parsed: unknown = JSON.parse(value)
    if (typeof parsed !== 'object' || parsed === null) return undefined
    return Object.fromEntries(Object.entries(parsed).map(([name, item]) => [name, String(item)]))
  } catch {
    return undefined
  }
}
