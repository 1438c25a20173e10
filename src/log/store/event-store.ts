import type { LoadContent } from '../../base/index.ts'
import { type Commit, decodeEnvelope, type EncodedEvent, type StreamKey } from '../../events/index.ts'
import { type Arbitration, type ArbitrationRecord, arbitrate, type Fate, fateOf } from '../arbitration.ts'
import type { Appended, RecordedEvent, StreamHead } from '../ports.ts'
import type { Connection } from './connection.ts'
import { contentLoader } from './content.ts'
import type { Heads, StoredHead } from './heads.ts'
import { pageOf } from './page.ts'
import { Recent } from './recent.ts'
import { bodyHash, type EventRow, fromRow, keyBytes, positionOf, type StoredEvent } from './records.ts'
import type { Participant } from './writer.ts'

/** Bytes of event values one page of a read aims at. */
const PAGE_BYTES = 4_000_000
const PAGE_ROWS = { first: 128, most: 1_000 }
const MAX_KEYS = 10_000

interface Candidate extends ArbitrationRecord {
  readonly encoded: EncodedEvent
}

/** An accepted event to be stored. */
export type Stored = Omit<RecordedEvent, 'stream' | 'position'> & {
  /** Where it stands in the log a replica follows; null in a log. */
  readonly place: number | null
}

/** Consecutive events of all streams. */
export interface Slice {
  readonly events: RecordedEvent[]
  /** `events.id` behind the last one. */
  readonly next: number
}

/** The events table: decides and stores commits inside the writer's transaction, reads outside of it. */
export class EventStore implements Participant {
  readonly #connection: Connection
  readonly #heads: Heads
  readonly #load: LoadContent
  /** The newest events of this process, so its followers need not read them back. */
  readonly #recent = new Recent()
  /** Stream keys by `streams.id`. */
  readonly #keys = new Map<number, StreamKey>()
  /** `events.id` of the next record; follows the transaction. */
  #next = 1
  #committedNext = 1
  #dataVersion = -1
  #accepted: RecordedEvent[] = []

  constructor(connection: Connection, heads: Heads) {
    this.#connection = connection
    this.#heads = heads
    this.#load = contentLoader(connection)
  }

  begin(dataVersion: number): void {
    if (dataVersion !== this.#dataVersion) {
      this.#committedNext = this.end()
      this.#dataVersion = dataVersion
    }
    this.#next = this.#committedNext
  }

  committed(): void {
    this.#recent.push(this.#committedNext, this.#accepted)
    this.#committedNext = this.#next
    this.#accepted = []
  }

  rolledBack(): void {
    this.#accepted = []
    // The id of a stream that was not committed may be given again.
    this.#keys.clear()
  }

  /** Decides a commit and stores it if accepted. Only inside the writer's transaction. `events` are what was stored now. */
  append(commit: Commit): Appended & { events: readonly RecordedEvent[] } {
    const outcome = this.#arbitrate(commit)
    if (outcome?.accepted === undefined) return { ...this.standing(commit), events: [] }
    const events = this.store(
      commit.stream,
      outcome.accepted.map(({ encoded }) => ({ ...encoded, place: null })),
    )
    return { accepted: true, head: headOf(events[events.length - 1] as RecordedEvent), events }
  }

  /** Stores events that were accepted behind the head of their stream. Only inside the writer's transaction. */
  store(stream: StreamKey, accepted: readonly Stored[]): RecordedEvent[] {
    const sid = this.#heads.get(stream)?.sid ?? this.#newStream(stream)
    const insert = this.#connection.prepare('INSERT INTO events(id, stream, version, value, place) VALUES (?, ?, ?, ?, ?)')
    const events = accepted.map(({ place, ...event }) => {
      const id = this.#next++
      insert.run(id, sid, event.version, event.bytes, place)
      this.#heads.set(stream, { sid, version: event.version, hash: event.hash, id, place })
      return { stream, ...event, position: positionOf({ id, place }) }
    })
    for (const event of events) this.#accepted.push(event)
    return events
  }

  #arbitrate(commit: Commit): Arbitration<Candidate> | undefined {
    let step: Arbitration<Candidate> | undefined
    for (const [i, encoded] of commit.records.entries()) {
      const { version, commit: place, previous } = encoded.event
      const record = {
        stream: commit.stream,
        version,
        commit: place,
        previous,
        hash: encoded.hash,
        offset: this.#next + i,
        encoded,
      }
      step = arbitrate(step?.open, record, (stream) => this.#heads.get(stream))
    }
    return step
  }

  /** How a commit stands: with its own last event if it, or an earlier copy of it, was accepted, else with the newest event. */
  standing(commit: Commit): Appended {
    const head = this.#heads.get(commit.stream)
    if (this.fate(commit) !== 'accepted') return { accepted: false, head: head && portHead(head) }
    const version = commit.base + commit.records.length
    const last = this.#at(head!.sid, version)
    return { accepted: true, head: last ? portHead({ ...last, hash: bodyHash(last.value) }) : portHead(head!) }
  }

  /** What became of a commit, by its id. As committed, or inside the writer's transaction as it sees it. */
  fate({ id, stream, base }: Pick<Commit, 'id' | 'stream' | 'base'>): Fate {
    const sid = this.#heads.get(stream)?.sid
    return fateOf(id, sid === undefined ? undefined : commitIdOf(this.#at(sid, base + 1)))
  }

  #at(sid: number, version: number): EventRow | undefined {
    return this.#connection.get<EventRow>(
      'SELECT id, version, value, place FROM events WHERE stream = ? AND version = ?',
      sid,
      version,
    )
  }

  #newStream(stream: StreamKey): number {
    const known = this.#connection.get<{ id: number }>('SELECT id FROM streams WHERE key = ?', keyBytes(stream))
    return (
      known?.id ?? Number(this.#connection.prepare('INSERT INTO streams(key) VALUES (?)').run(keyBytes(stream)).lastInsertRowid)
    )
  }

  /** The newest accepted event of a stream, as committed. */
  head(stream: StreamKey): StreamHead | undefined {
    this.#heads.refresh()
    const head = this.#heads.get(stream)
    return head && portHead(head)
  }

  /** One page of a stream's events with version above `after`; `limit` rows, see {@link nextLimit}. */
  page(stream: StreamKey, after: number, limit: number): RecordedEvent[] {
    const rows = this.#connection.lists<StoredEvent>(
      `SELECT e.id, e.version, e.value, e.place FROM streams s JOIN events e ON e.stream = s.id
        WHERE s.key = ? AND e.version > ? ORDER BY e.version LIMIT ?`,
      keyBytes(stream),
      after,
      limit,
    )
    return rows.map((row) => fromRow(this.#load, stream, row))
  }

  /** Events of all streams with ids from `id` on, in order, and the id to go on with. Empty at the end. */
  slice(id: number, limit: number): Slice {
    const recent = this.#recent.from(id, limit)
    if (recent !== undefined) return { events: recent, next: id + recent.length }
    // Since the last transaction of this process nobody else has written: its end is the end of the log.
    if (id >= this.#committedNext && this.#dataVersion === this.#connection.dataVersion()) return { events: [], next: id }
    const rows = pageOf(this.#connection, id, limit)
    const events: RecordedEvent[] = []
    for (const row of rows) {
      const key = this.#keyOf(row[4])
      if (key !== undefined) events.push(fromRow(this.#load, key, row, false))
    }
    return { events, next: (rows.at(-1)?.[0] ?? id - 1) + 1 }
  }

  /** Asked once for each stream: joined to every event it would be a third of the cost of reading. */
  #keyOf(sid: number): StreamKey | undefined {
    let key = this.#keys.get(sid)
    if (key !== undefined) return key
    key = this.#connection.get<{ key: StreamKey }>('SELECT lower(hex(key)) AS key FROM streams WHERE id = ?', sid)?.key
    if (this.#keys.size >= MAX_KEYS) this.#keys.clear()
    if (key !== undefined) this.#keys.set(sid, key)
    return key
  }

  /** `events.id` of the next event stored in this transaction. */
  get next(): number {
    return this.#next
  }

  /** `events.id` the next record of the log will have. */
  end(): number {
    return this.#connection.get<{ next: number }>('SELECT ifnull(max(id), 0) + 1 AS next FROM events')!.next
  }
}

function commitIdOf(row: EventRow | undefined): string | undefined {
  if (row === undefined) return undefined
  try {
    return decodeEnvelope(row.value).commit.id
  } catch {
    return ''
  }
}

const portHead = (head: Omit<StoredHead, 'sid'>): StreamHead => ({
  version: head.version,
  hash: head.hash,
  position: positionOf(head),
})

const headOf = ({ version, hash, position }: RecordedEvent): StreamHead => ({ version, hash, position })

export const FIRST_PAGE = PAGE_ROWS.first

/** Rows of the next page, so that its values stay around {@link PAGE_BYTES}. */
export function nextLimit(page: readonly RecordedEvent[]): number {
  const bytes = page.reduce((sum, event) => sum + event.bytes.length, 0)
  const average = Math.max(1, bytes / Math.max(1, page.length))
  return Math.max(16, Math.min(PAGE_ROWS.most, Math.floor(PAGE_BYTES / average)))
}
