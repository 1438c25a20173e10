import type { StreamKey } from '../../events/index.ts'
import type { Connection } from './connection.ts'
import { bodyHash, type EventRow, keyBytes } from './records.ts'
import type { Participant } from './writer.ts'

/** Where a stream stands: its integer id and its newest event. */
export interface StoredHead {
  /** `streams.id` */
  readonly sid: number
  readonly version: number
  readonly hash: string
  /** `events.id` and `events.place` of the newest event. */
  readonly id: number
  readonly place: number | null
}

const MAX_HEADS = 20_000

const NEWEST = `SELECT s.id AS sid, e.id, e.version, e.value, e.place FROM streams s JOIN events e ON e.stream = s.id
  WHERE s.key = ? ORDER BY e.version DESC LIMIT 1`

/** Heads of the streams used last. Dropped as a whole when another connection has written; changes count once committed. */
export class Heads implements Participant {
  readonly #connection: Connection
  readonly #known = new Map<StreamKey, StoredHead>()
  readonly #changed = new Map<StreamKey, StoredHead>()
  #dataVersion = -1

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** The head as this transaction sees it, or, outside of one, as committed; call {@link refresh} first there. */
  get(stream: StreamKey): StoredHead | undefined {
    const head = this.#changed.get(stream) ?? this.#known.get(stream)
    return head ?? this.#load(stream)
  }

  /** Records a new head within the transaction. */
  set(stream: StreamKey, head: StoredHead): void {
    this.#changed.set(stream, head)
  }

  refresh(dataVersion = this.#connection.dataVersion()): void {
    if (dataVersion === this.#dataVersion) return
    this.#known.clear()
    this.#dataVersion = dataVersion
  }

  begin(dataVersion: number): void {
    this.refresh(dataVersion)
  }

  committed(): void {
    for (const [stream, head] of this.#changed) this.#keep(stream, head)
    this.#changed.clear()
  }

  rolledBack(): void {
    this.#changed.clear()
  }

  #load(stream: StreamKey): StoredHead | undefined {
    const row = this.#connection.get<EventRow & { sid: number }>(NEWEST, keyBytes(stream))
    if (row === undefined) return undefined
    const head = { sid: row.sid, version: row.version, hash: bodyHash(row.value), id: row.id, place: row.place }
    // Inside a transaction nobody else writes, so what was read is committed state unless this transaction wrote it: then it is in #changed.
    this.#keep(stream, head)
    return head
  }

  #keep(stream: StreamKey, head: StoredHead): void {
    this.#known.delete(stream)
    this.#known.set(stream, head)
    if (this.#known.size > MAX_HEADS) this.#known.delete(this.#known.keys().next().value as StreamKey)
  }
}
