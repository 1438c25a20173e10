import { type Commit, decodeEnvelope, type EncodedEvent, type StreamKey } from '../../events/index.ts'
import { type Arbitration, type ArbitrationRecord, arbitrate, fateOf } from '../arbitration.ts'
import type { Appended, RecordedEvent, StreamHead } from '../ports.ts'
import type { Connection } from './connection.ts'
import type { Heads, StoredHead } from './heads.ts'
import { Recent } from './recent.ts'
import { bodyHash, type EventRow, fromEncoded, fromRow, keyBytes, PARTITION, type StoredEvent } from './records.ts'
import type { Participant } from './writer.ts'

/** Bytes of event values one page of a read aims at. */
const PAGE_BYTES = 4_000_000
const PAGE_ROWS = { first: 128, most: 1_000 }

interface Candidate extends ArbitrationRecord {
  readonly encoded: EncodedEvent
}

/** The events table: decides and stores commits inside the writer's transaction, reads outside of it. */
export class EventStore implements Participant {
  readonly #connection: Connection
  readonly #heads: Heads
  /** The newest events of this process, so its followers need not read them back. */
  readonly #recent = new Recent()
  /** `events.id` of the next record; follows the transaction. */
  #next = 1
  #committedNext = 1
  #dataVersion = -1
  #accepted: RecordedEvent[] = []

  constructor(connection: Connection, heads: Heads) {
    this.#connection = connection
    this.#heads = heads
  }

  begin(dataVersion: number): void {
    if (dataVersion !== this.#dataVersion) {
      this.#committedNext = this.end()
      this.#dataVersion = dataVersion
    }
    this.#next = this.#committedNext
  }

  committed(): void {
    this.#committedNext = this.#next
    this.#recent.push(this.#accepted)
    this.#accepted = []
  }

  rolledBack(): void {
    this.#accepted = []
  }

  /** Decides a commit and stores it if accepted. Only inside the writer's transaction. `events` are what was stored now. */
  append(commit: Commit): Appended & { events: readonly RecordedEvent[] } {
    const outcome = this.#arbitrate(commit)
    if (outcome?.accepted === undefined) return { ...this.#standing(commit), events: [] }
    const sid = this.#heads.get(commit.stream)?.sid ?? this.#newStream(commit.stream)
    const insert = this.#connection.prepare('INSERT INTO events(id, stream, version, value) VALUES (?, ?, ?, ?)')
    const events = outcome.accepted.map(({ offset, encoded }) => {
      insert.run(offset, sid, encoded.version, encoded.bytes)
      return fromEncoded(commit.stream, offset, encoded)
    })
    const last = outcome.accepted[outcome.accepted.length - 1] as Candidate
    const head = { sid, version: last.version, hash: last.hash, id: last.offset }
    this.#heads.set(commit.stream, head)
    this.#next = last.offset + 1
    for (const event of events) this.#accepted.push(event)
    return { accepted: true, head: portHead(head), events }
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

  /** The fate of a commit that is void now: accepted if an earlier copy of it was, refused otherwise. */
  #standing(commit: Commit): Appended {
    const head = this.#heads.get(commit.stream)
    const first = head === undefined ? undefined : this.#at(head.sid, commit.base + 1)
    if (fateOf(commit.id, commitIdOf(first)) !== 'accepted') return { accepted: false, head: head && portHead(head) }
    const version = commit.base + commit.records.length
    const last = this.#at(head!.sid, version)
    return { accepted: true, head: last ? portHead({ version, hash: bodyHash(last.value), id: last.id }) : portHead(head!) }
  }

  #at(sid: number, version: number): EventRow | undefined {
    return this.#connection.get<EventRow>('SELECT id, version, value FROM events WHERE stream = ? AND version = ?', sid, version)
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
      `SELECT e.id, e.version, e.value FROM streams s JOIN events e ON e.stream = s.id
        WHERE s.key = ? AND e.version > ? ORDER BY e.version LIMIT ?`,
      keyBytes(stream),
      after,
      limit,
    )
    return rows.map(([id, version, value]) => fromRow(stream, id, version, value))
  }

  /** Events of all streams from `id` on, in log order. Empty at the end of the log. */
  slice(id: number, limit: number): RecordedEvent[] {
    const recent = this.#recent.from(id, limit)
    if (recent !== undefined) return recent
    // Since the last transaction of this process nobody else has written: its end is the end of the log.
    if (id >= this.#committedNext && this.#dataVersion === this.#connection.dataVersion()) return []
    const rows = this.#connection.lists<[key: StreamKey, ...StoredEvent]>(
      `SELECT lower(hex(s.key)), e.id, e.version, e.value FROM events e JOIN streams s ON s.id = e.stream
        WHERE e.id >= ? ORDER BY e.id LIMIT ?`,
      id,
      limit,
    )
    return rows.map(([key, id, version, value]) => fromRow(key, id, version, value))
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
  position: { partition: PARTITION, offset: BigInt(head.id) },
})

export const FIRST_PAGE = PAGE_ROWS.first

/** Rows of the next page, so that its values stay around {@link PAGE_BYTES}. */
export function nextLimit(page: readonly RecordedEvent[]): number {
  const bytes = page.reduce((sum, event) => sum + event.bytes.length, 0)
  const average = Math.max(1, bytes / Math.max(1, page.length))
  return Math.max(16, Math.min(PAGE_ROWS.most, Math.floor(PAGE_BYTES / average)))
}
