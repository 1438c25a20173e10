import { type EventDraft, type LogEvent, type StreamKey, ZERO_HASH } from '../../events/index.ts'
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

const NO_BYTES = new Uint8Array()

/** Records that are never bytes. A hash names the event and nothing else. */
export class LightWire implements Wire {
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
    const recorded = { ...last.recorded, event: undefined }
    return { ...commit, parcels: [...commit.parcels.slice(0, -1), { ...last, recorded }] }
  }

  forged({ parcels, size }: ModelCommit, index: number, how: Forgery): Parcel {
    const record = parcels[index] as ModelRecord
    if (how === 'misnumbered') return { ...record, commit: { ...record.commit, index: size } }
    return how === 'misversioned' ? { ...record, version: record.version ^ 1 } : { ...record, previous: OTHER_HASH }
  }

  garbage(): Parcel {
    return { ...NO_ENVELOPE, offset: 0, recorded: unreadable(NO_BYTES, 0) }
  }

  stray(): Parcel {
    const commit = { id: `c${++this.#commits}`, base: 0, index: 0, size: 1 }
    const named = { stream: 'elsewhere', version: 1, commit, previous: ZERO_HASH, hash: `${commit.id}:1` }
    return { ...named, offset: 0, recorded: unreadable(NO_BYTES, 0) }
  }

  place(parcel: Parcel, offset: number): ModelRecord {
    if (!this.keys.includes((parcel as ModelRecord).stream))
      return { ...NO_ENVELOPE, offset, recorded: unreadable(NO_BYTES, offset) }
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
