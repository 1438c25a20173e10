import { isThreadlogError } from '../../base/index.ts'
import {
  decodeEnvelope,
  decodeEvent,
  type EventDraft,
  type EventHash,
  encodeCommit,
  type LogEvent,
  type StreamKey,
  threadStream,
  ZERO_HASH,
} from '../../events/index.ts'
import type { ArbitrationRecord, Head, RecordedEvent } from '../../log/index.ts'
import type { ProtocolRecords } from './steps.ts'

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

/** How commits become records, and records become readable. Ids, times and hashes count up, so a run repeats exactly. */
export interface Wire {
  readonly keys: readonly StreamKey[]
  commit(parts: CommitParts): ModelCommit
  /** The commit with its last event made unreadable for this build. Its envelope stays readable. */
  undecodable(parts: CommitParts): ModelCommit
  /** A record of the commit, changed: `misnumbered` has an index beyond its commit, `unchained` names another event before it. */
  forged(commit: ModelCommit, index: number, how: 'misnumbered' | 'unchained'): Parcel
  /** A record without an envelope. */
  garbage(): Parcel
  /** A record of the partition, as a node that reads it there sees it. */
  place(parcel: Parcel, offset: number): ModelRecord
  /** What was sent to make this record. */
  parcel(record: ModelRecord): Parcel
  /** Reads a placed record again, as another process would. */
  reread(record: ModelRecord): ModelRecord
}

/** Stands for a record whose envelope cannot be read: it belongs to nobody and interrupts whatever is open. */
const NO_ENVELOPE = { stream: '', version: 0, commit: { id: '', base: 0, index: 0, size: 0 }, previous: ZERO_HASH, hash: '' }

export const wireOf = (records: ProtocolRecords, streams: number): Wire =>
  records === 'light' ? new LightWire(streams) : new EncodedWire(streams)

const NO_BYTES = new Uint8Array()
const ACTOR = { kind: 'library', id: 'model', source: 'model' }
/** A hash no event has. */
export const OTHER_HASH: EventHash = 'f'.repeat(64)
const COMMIT_ID_BYTES = 16
const DEFECT = { code: 'event_undecodable', message: 'The record cannot be read.' }

/** Records that are never bytes. A hash names the event and nothing else. */
class LightWire implements Wire {
  readonly keys: readonly StreamKey[]
  #commits = 0

  constructor(streams: number) {
    this.keys = Array.from({ length: streams }, (_, n) => `s${n}`)
  }

  commit({ stream, on, commandId, drafts }: CommitParts): ModelCommit {
    const id = `c${++this.#commits}`
    const base = on.version
    const causation = { command_id: commandId, source: null }
    const key = this.keys[stream] as StreamKey
    const size = drafts.length
    let previous = on.hash
    const parcels: ModelRecord[] = []
    for (let index = 0; index < size; index++) {
      const { type, data } = drafts[index] as EventDraft
      const version = base + index + 1
      const hash = `${id}:${version}`
      const commit = { id, base, index, size }
      const event = {
        stream: key,
        type,
        version,
        commit,
        previous,
        time: version,
        actor: ACTOR,
        causation,
        run_id: null,
        attempt: null,
        sealing: 'none',
        data,
        hash,
      } as LogEvent
      const recorded = { stream: key, version, hash, position: { partition: 0, offset: 0n }, bytes: NO_BYTES, event }
      parcels.push({ stream: key, version, commit, previous, hash, offset: 0, recorded })
      previous = hash
    }
    return { id, stream, base, size, head: { version: base + size, hash: previous }, parcels }
  }

  undecodable(parts: CommitParts): ModelCommit {
    const commit = this.commit(parts)
    const last = commit.parcels[commit.size - 1] as ModelRecord
    const recorded = { ...last.recorded, event: undefined, defect: DEFECT }
    return { ...commit, parcels: [...commit.parcels.slice(0, -1), { ...last, recorded }] }
  }

  forged({ parcels, size }: ModelCommit, index: number, how: 'misnumbered' | 'unchained'): Parcel {
    const record = parcels[index] as ModelRecord
    return how === 'misnumbered' ? { ...record, commit: { ...record.commit, index: size } } : { ...record, previous: OTHER_HASH }
  }

  garbage(): Parcel {
    return { ...NO_ENVELOPE, offset: 0, recorded: unreadable(NO_BYTES, 0) }
  }

  place(parcel: Parcel, offset: number): ModelRecord {
    const { stream, version, commit, previous, hash, recorded } = parcel as ModelRecord
    const placed = placedAt(stream, version, hash, NO_BYTES, offset)
    return { stream, version, commit, previous, hash, offset, recorded: withEvent(placed, recorded.event) }
  }

  parcel(record: ModelRecord): Parcel {
    return record
  }

  reread(record: ModelRecord): ModelRecord {
    return record
  }
}

/** Records as they are stored: encoded by the catalogue, decoded by every node for itself. */
class EncodedWire implements Wire {
  readonly keys: readonly StreamKey[]
  #commits = 0

  constructor(streams: number) {
    this.keys = Array.from({ length: streams }, (_, n) => threadStream({ application: 'model', user: 'u', thread: `t${n}` }))
  }

  commit({ stream, on, commandId, drafts }: CommitParts): ModelCommit {
    const meta = {
      stream: this.keys[stream] as StreamKey,
      base: on.version,
      previous: on.hash,
      id: (++this.#commits).toString(16).padStart(32, '0'),
      time: this.#commits,
      actor: ACTOR,
      causation: { command_id: commandId, source: null },
    }
    const { id, base, records } = encodeCommit(meta, drafts)
    const last = records[records.length - 1] as { version: number; hash: EventHash }
    return {
      id,
      stream,
      base,
      size: records.length,
      head: { version: last.version, hash: last.hash },
      parcels: records.map((r) => r.bytes),
    }
  }

  undecodable(parts: CommitParts): ModelCommit {
    const commit = this.commit(parts)
    const bytes = Buffer.from(commit.parcels[commit.size - 1] as Uint8Array)
    const { type } = decodeEnvelope(bytes)
    // A type of this length that nobody knows, under a schema that nobody knows: what a newer version would write.
    bytes.write('z'.repeat(type.length), bytes.indexOf(type), 'latin1')
    bytes.writeUInt32BE(0x7fffffff, 1)
    const { version, hash } = decodeEnvelope(bytes)
    return { ...commit, head: { version, hash }, parcels: [...commit.parcels.slice(0, -1), new Uint8Array(bytes)] }
  }

  forged({ parcels, size, base, id }: ModelCommit, index: number, how: 'misnumbered' | 'unchained'): Parcel {
    const bytes = Buffer.from(parcels[index] as Uint8Array)
    const place = bytes.indexOf(Buffer.from(id, 'hex')) + COMMIT_ID_BYTES
    if (how === 'misnumbered') bytes[place + varintBytes(base)] = 2 * size
    else Buffer.from(OTHER_HASH, 'hex').copy(bytes, place + varintBytes(base) + varintBytes(index) + varintBytes(size))
    return new Uint8Array(bytes)
  }

  garbage(): Parcel {
    return new TextEncoder().encode('not an event')
  }

  place(parcel: Parcel, offset: number): ModelRecord {
    const bytes = parcel as Uint8Array
    const head = attempt(() => decodeEnvelope(bytes))
    if (!head) return { ...NO_ENVELOPE, offset, recorded: unreadable(bytes, offset) }
    const { stream, version, commit, previous, hash } = head
    const recorded = withEvent(
      placedAt(stream, version, hash, bytes, offset),
      attempt(() => decodeEvent(bytes)),
    )
    return { stream, version, commit, previous, hash, offset, recorded }
  }

  parcel({ recorded }: ModelRecord): Parcel {
    return recorded.bytes
  }

  reread({ recorded, offset }: ModelRecord): ModelRecord {
    return this.place(recorded.bytes, offset)
  }
}

/** Bytes of a small non-negative number in Avro. */
const varintBytes = (value: number): number => (value < 64 ? 1 : value < 8192 ? 2 : 3)

const placedAt = (stream: StreamKey, version: number, hash: EventHash, bytes: Uint8Array, offset: number) => ({
  stream,
  version,
  hash,
  position: { partition: 0, offset: BigInt(offset) },
  bytes,
})

const withEvent = (placed: Omit<RecordedEvent, 'event' | 'defect'>, event: LogEvent | undefined): RecordedEvent =>
  event ? { ...placed, event } : { ...placed, defect: DEFECT }

const unreadable = (bytes: Uint8Array, offset: number): RecordedEvent => withEvent(placedAt('', 0, '', bytes, offset), undefined)

function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (isThreadlogError(error, 'event_undecodable')) return undefined
    throw error
  }
}
