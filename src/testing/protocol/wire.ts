import { type EventDraft, type EventHash, type LogEvent, type StreamKey, ZERO_HASH } from '../../events/index.ts'
import type { ArbitrationRecord, Head, RecordedEvent } from '../../log/index.ts'

/** A record as a node sees it: what arbitration looks at, and what is folded if it is accepted. */
export interface ModelRecord extends ArbitrationRecord {
  readonly recorded: RecordedEvent
}

/** What is sent; it has no place yet. `bytes` in `encoded` runs, else a record whose offset means nothing. */
export type Parcel = Uint8Array | ModelRecord

/** A commit as its writer made it. */
export interface ModelCommit {
  readonly id: string
  /** Number of the stream. */
  readonly stream: number
  readonly base: number
  readonly size: number
  /** Head of the stream if it is accepted. */
  readonly head: Head
  readonly parcels: readonly Parcel[]
}

export interface CommitParts {
  readonly stream: number
  readonly on: Head
  readonly commandId: string
  readonly drafts: readonly EventDraft[]
}

/** `misnumbered`: an index beyond its commit; `misversioned`: another version than follows from its base; `unchained`: names another event before it. */
export type Forgery = 'misnumbered' | 'misversioned' | 'unchained'

/** How commits become records, and records become readable. Ids, times and hashes count up, so a run repeats exactly. */
export interface Wire {
  readonly keys: readonly StreamKey[]
  commit(parts: CommitParts): ModelCommit
  /** The commit with its last event made unreadable for this build. Its envelope stays readable. */
  undecodable(parts: CommitParts): ModelCommit
  /** A record of the commit, changed. */
  forged(commit: ModelCommit, index: number, how: Forgery): Parcel
  /** A record without an envelope. */
  garbage(): Parcel
  /** A whole commit of one record, of a stream that is none of `keys`. */
  stray(): Parcel
  /** A record of the partition, as a node that reads it there sees it. */
  place(parcel: Parcel, offset: number): ModelRecord
  /** What was sent to make this record. */
  parcel(record: ModelRecord): Parcel
  /** Reads a placed record again, as another process would. */
  reread(record: ModelRecord): ModelRecord
}

/** Stands for a record whose envelope cannot be read, or names a stream of another partition (decision 0010): it belongs to nobody and interrupts whatever is open. */
export const NO_ENVELOPE = {
  stream: '',
  version: 0,
  commit: { id: '', base: 0, index: 0, size: 0 },
  previous: ZERO_HASH,
  hash: '',
}

/** Who writes, in every event of the model. */
export const ACTOR = { kind: 'library', id: 'model', source: 'model' }
/** A hash no event has. */
export const OTHER_HASH: EventHash = 'f'.repeat(64)
const DEFECT = { code: 'event_undecodable', message: 'The record cannot be read.' }

/** A record without its event. */
export const placedAt = (stream: StreamKey, version: number, hash: EventHash, bytes: Uint8Array, offset: number) => ({
  stream,
  version,
  hash,
  position: { partition: 0, offset: BigInt(offset) },
  bytes,
})

/** The record with its event, or with the reason why it has none. */
export const withEvent = (placed: Omit<RecordedEvent, 'event' | 'defect'>, event: LogEvent | undefined): RecordedEvent =>
  event ? { ...placed, event } : { ...placed, defect: DEFECT }

/** A record of which nothing can be read. */
export const unreadable = (bytes: Uint8Array, offset: number): RecordedEvent =>
  withEvent(placedAt('', 0, '', bytes, offset), undefined)
