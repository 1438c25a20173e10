import { isThreadlogError } from '../../base/index.ts'
import {
  decodeEnvelope,
  decodeEvent,
  type EventHash,
  encodeCommit,
  type StreamKey,
  threadStream,
  ZERO_HASH,
} from '../../events/index.ts'
import {
  ACTOR,
  type CommitParts,
  type Forgery,
  type ModelCommit,
  type ModelRecord,
  NO_ENVELOPE,
  OTHER_HASH,
  type Parcel,
  placedAt,
  unreadable,
  type Wire,
  withEvent,
} from './wire.ts'

const COMMIT_ID_BYTES = 16

/** Records as they are stored: encoded by the catalogue, decoded by every node for itself. */
export class EncodedWire implements Wire {
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

  forged({ parcels, size, base, id }: ModelCommit, index: number, how: Forgery): Parcel {
    const bytes = Buffer.from(parcels[index] as Uint8Array)
    const place = bytes.indexOf(Buffer.from(id, 'hex')) + COMMIT_ID_BYTES
    // The lowest bit of a number in Avro is its sign.
    if (how === 'misversioned') bytes[place - COMMIT_ID_BYTES - varintBytes(base + index + 1)]! ^= 2
    else if (how === 'misnumbered') bytes[place + varintBytes(base)] = 2 * size
    else Buffer.from(OTHER_HASH, 'hex').copy(bytes, place + varintBytes(base) + varintBytes(index) + varintBytes(size))
    return new Uint8Array(bytes)
  }

  garbage(): Parcel {
    return new TextEncoder().encode('not an event')
  }

  stray(): Parcel {
    const elsewhere = threadStream({ application: 'model', user: 'u', thread: 'elsewhere' })
    const id = (++this.#commits).toString(16).padStart(32, '0')
    const meta = { stream: elsewhere, base: 0, previous: ZERO_HASH, id, time: this.#commits, actor: ACTOR }
    const draft = { type: 'run.cancel-requested/1', data: { run_id: 'nobody', command_id: null, reason: 'model' } } as const
    return encodeCommit(meta, [draft]).records[0]!.bytes
  }

  place(parcel: Parcel, offset: number): ModelRecord {
    const bytes = parcel as Uint8Array
    const head = attempt(() => decodeEnvelope(bytes))
    if (!head || !this.keys.includes(head.stream)) return { ...NO_ENVELOPE, offset, recorded: unreadable(bytes, offset) }
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

function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (isThreadlogError(error, 'event_undecodable')) return undefined
    throw error
  }
}
