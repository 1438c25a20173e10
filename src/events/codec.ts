import type { Type } from 'avsc'
import { fatal, type LoadContent, reject, type ThreadlogError } from '../base/index.ts'
import type { Actor, Causation } from './actor.ts'
import type { EventDraft, Outsider } from './catalogue.ts'
import { COMMIT_LIMITS, type Commit, type EncodedEvent } from './commit.ts'
import { type Envelope, type EventHash, envelope as envelopeShape, type LogEvent, type StreamKey } from './envelope.ts'
import { fitOf } from './fit.ts'
import { bindContent } from './payloads.ts'
import { type Cursor, GIVE_UP } from './reader.ts'
import { fileSchemas, type SchemaSource } from './schema-source.ts'
import { type Reader, type TypeOptions, typeTable, type Writer } from './type-table.ts'
import type { Upcast } from './upcast.ts'
import { bodyHash, bufferOf, FRAMING, readSchemaId, undecodable, writeFraming } from './wire.ts'

/** What surrounds the drafts of one commit. */
export interface CommitMeta {
  stream: StreamKey
  base: number
  previous: EventHash
  /** 32 hex digits, UUIDv7. */
  id: string
  /** Epoch milliseconds. */
  time: number
  actor: Actor
  causation?: Causation | null
  run_id?: string | null
  attempt?: number | null
}

/** Events to wire form and back, with the schemas of one source. */
export interface EventCodec {
  /**
   * Numbers, chains and encodes the drafts. Absent values may be null or undefined.
   * @throws ThreadlogError `commit_empty`; `commit_too_large` with `details` unit, limit, found; `event_invalid` with the path
   */
  encodeCommit(meta: CommitMeta, drafts: readonly EventDraft[]): Commit
  /**
   * The draft with its fields as a decoder would give them. It is not fitted again when it is encoded.
   * @param index its place in the commit, for the path of the error
   * @throws ThreadlogError `event_invalid` with the path
   */
  fitDraft<T extends EventDraft>(draft: T, index: number): T
  /**
   * Reads one record; a retired type comes out as its successor, under the hash of what is stored. The result shares no memory with
   * `bytes`, unless they are said to be `lasting`: never changed again. Payloads are not parsed; those that are kept elsewhere get `load`.
   * @throws ThreadlogError `event_undecodable`; `details.reason` is `framing`, `unknown-schema` (a newer version wrote it), `body` or
   *   `upcast` (a retired type whose successor it cannot be)
   */
  decodeEvent(bytes: Uint8Array, lasting?: boolean, load?: LoadContent): LogEvent
  /**
   * Reads only the envelope as it is stored, also of event types this build does not know: whoever wrote them, the envelope only grows at its end.
   * @throws ThreadlogError `event_undecodable` as {@link EventCodec.decodeEvent}, in practice never for `unknown-schema`
   */
  decodeEnvelope(bytes: Uint8Array): Envelope & { hash: EventHash }
}

/** A codec over a schema source; types are built once per schema, at first use. */
export function eventCodec(source: SchemaSource, options: TypeOptions = {}): EventCodec {
  const types = typeTable(source, options)
  const fitEnvelope = fitOf(envelopeShape)
  let scratch: Buffer = Buffer.allocUnsafeSlow(16 * 1024)

  /** Encodes into the scratch buffer, grown as needed, and copies out once. */
  function encode(writer: Writer, value: { envelope: Envelope; data: unknown }): Uint8Array {
    let end = write(writer, value, scratch)
    if (end < 0) {
      const needed = scratch.length - end
      if (needed > COMMIT_LIMITS.bytes) throw tooLarge('bytes', needed)
      scratch = Buffer.allocUnsafeSlow(Math.max(needed, scratch.length * 2))
      end = write(writer, value, scratch)
    }
    writeFraming(scratch, writer.id)
    const bytes = new Uint8Array(end)
    bytes.set(scratch.subarray(0, end))
    return bytes
  }

  function encodeCommit(meta: CommitMeta, drafts: readonly EventDraft[]): Commit {
    const { id, stream, base, previous } = meta
    const size = drafts.length
    if (size === 0) throw reject('commit_empty', 'A commit needs at least one event.')
    if (size > COMMIT_LIMITS.records) throw tooLarge('records', size)
    const common = fitEnvelope(envelopeOf(meta, size), '$.envelope') as Envelope

    const records: EncodedEvent[] = []
    let head = common.previous
    let total = 0
    for (let index = 0; index < size; index++) {
      const draft = drafts[index] as EventDraft
      const writer = writerOf(draft, index)
      const { data } = draft instanceof Fitted ? draft : fitted(writer, draft, index)
      const commit = { ...common.commit, index }
      const origin = draft.by ? outsider(draft.by, meta, index) : common
      const envelope: Envelope = { ...origin, type: draft.type, version: base + index + 1, commit, previous: head }
      const bytes = encode(writer, { envelope, data })
      total += bytes.length
      if (total > COMMIT_LIMITS.bytes) throw tooLarge('bytes', total)
      head = bodyHash(bytes)
      records.push({ version: envelope.version, hash: head, bytes, event: logEvent(envelope, data, head) })
    }
    return { id, stream, base, previous, records }
  }

  function writerOf({ type }: EventDraft, index: number): Writer {
    const writer = types.writer(type)
    if (!writer) throw noSuchType(index)
    return writer
  }

  const fitted = (writer: Writer, { type, data, by }: EventDraft, index: number): Fitted =>
    new Fitted(type, writer.fit(data, `$.events[${index}].data`), by)

  const fitDraft = <T extends EventDraft>(draft: T, index: number): T =>
    draft instanceof Fitted ? draft : (fitted(writerOf(draft, index), draft, index) as unknown as T)

  const outsider = ({ actor, causation }: Outsider, meta: CommitMeta, index: number): Envelope =>
    fitEnvelope(envelopeOf({ ...meta, actor, causation, run_id: null, attempt: null }, 1), `$.events[${index}].by`) as Envelope

  function decodeEvent(bytes: Uint8Array, lasting = false, load?: LoadContent): LogEvent {
    const id = readSchemaId(bytes)
    const reader = types.reader(id)
    if (!reader) throw undecodable('unknown-schema', 'its schema is not known; a newer version may have written it', id)
    const at: Cursor = { bytes, pos: FRAMING, lasting, suspect: false }
    const hash = bodyHash(bytes)
    const quick = readQuickly(at, reader, hash)
    const stored = quick ?? wholeEvent(read(bufferOf(bytes), id, reader.body, reader.bodyResolver, true) as Body, hash)
    if (stored.type !== reader.type) throw mistyped(id)
    const event = reader.upcast ? upcast(reader.upcast, stored, id) : stored
    if (load && (at.suspect || quick === undefined)) bindContent(event, load)
    return event
  }

  function decodeEnvelope(bytes: Uint8Array): Envelope & { hash: EventHash } {
    const id = readSchemaId(bytes)
    const record = bufferOf(bytes)
    const reader = types.reader(id)
    const layout = reader ?? types.anyWriter()
    if (!layout) throw undecodable('unknown-schema', 'the schema source is empty', id)
    const envelope = read(record, id, layout.envelope, reader?.envelopeResolver, false) as Envelope
    if (reader ? envelope.type !== reader.type : types.writer(envelope.type)) throw mistyped(id)
    return { ...envelope, hash: bodyHash(record) }
  }

  return { encodeCommit, fitDraft, decodeEvent, decodeEnvelope }
}

/** A draft whose fields fit its type. */
class Fitted {
  readonly type: string
  readonly data: unknown
  readonly by: Outsider | undefined
  constructor(type: string, data: unknown, by: Outsider | undefined) {
    this.type = type
    this.data = data
    this.by = by
  }
}

/** The envelope of a commit's events, but for what differs from event to event. */
function envelopeOf(meta: CommitMeta, size: number): unknown {
  const { id, stream, base, previous, time, actor, causation, run_id, attempt } = meta
  const commit = { id, base, index: 0, size }
  return { stream, type: '', version: base, commit, previous, time, actor, causation, run_id, attempt, sealing: 'none' }
}

function write(writer: Writer, value: unknown, into: Buffer): number {
  try {
    return writer.body.encode(value, into, FRAMING)
  } catch {
    // The value fits its declaration, so the schema does not. avsc's message would quote the value.
    throw fatal('schema_invalid', `Schema ${writer.id} does not follow from the event catalogue.`, {
      hint: 'Run node scripts/schemas.ts.',
      details: { schema_id: writer.id },
    })
  }
}

interface Body {
  envelope: Envelope
  data: unknown
}

/** What the reader of this build's own layout makes of the record; undefined when avsc must judge it. */
function readQuickly(at: Cursor, { quick }: Reader, hash: EventHash): LogEvent | undefined {
  if (quick === undefined) return undefined
  try {
    const event = quick(at, hash) as LogEvent
    return at.pos === at.bytes.length ? event : undefined
  } catch (reason) {
    if (reason === GIVE_UP) return undefined
    throw reason
  }
}

function read(record: Buffer, id: number, type: Type, resolver: Reader['bodyResolver'], whole: boolean): unknown {
  let result: { value: unknown; offset: number }
  try {
    result = type.decode(record, FRAMING, resolver)
  } catch {
    // avsc's message may quote what it read.
    throw undecodable('body', 'the body does not follow its schema', id)
  }
  if (result.offset < 0) throw undecodable('body', 'the body is cut short', id)
  if (whole && result.offset !== record.length) throw undecodable('body', 'bytes follow the body', id)
  return result.value
}

function logEvent(envelope: Envelope, data: unknown, hash: EventHash): LogEvent {
  const { stream, type, version, commit, previous, time, actor, causation, run_id, attempt, sealing } = envelope
  return { stream, type, version, commit, previous, time, actor, causation, run_id, attempt, sealing, data, hash } as LogEvent
}

const wholeEvent = ({ envelope, data }: Body, hash: EventHash): LogEvent => logEvent(envelope, data, hash)

function upcast({ type, apply }: Upcast, { data, hash, ...envelope }: LogEvent, id: number): LogEvent {
  let fields: unknown
  try {
    fields = apply(data, envelope)
  } catch {
    throw undecodable('upcast', `it cannot be read as ${type}`, id)
  }
  return logEvent({ ...envelope, type }, fields, hash)
}

const mistyped = (id: number): ThreadlogError => undecodable('body', 'it names another type than its schema', id)

const noSuchType = (index: number): ThreadlogError =>
  reject('event_invalid', 'There is no such event type.', {
    path: `$.events[${index}].type`,
    expected: 'a type of the catalogue',
  })

const tooLarge = (unit: 'records' | 'bytes', found: number): ThreadlogError =>
  reject('commit_too_large', `A commit may hold at most ${COMMIT_LIMITS[unit]} ${unit}.`, {
    expected: `at most ${COMMIT_LIMITS[unit]} ${unit}`,
    hint: 'Decide in smaller steps; keep large values outside the event and refer to them by digest.',
    details: { unit, limit: COMMIT_LIMITS[unit], found },
  })

let packaged: EventCodec | undefined
const codec = (): EventCodec => (packaged ??= eventCodec(fileSchemas()))

/** {@link EventCodec.encodeCommit} with the schemas of this package. */
export const encodeCommit: EventCodec['encodeCommit'] = (meta, drafts) => codec().encodeCommit(meta, drafts)
/** {@link EventCodec.fitDraft} with the types of this package. */
export const fitDraft: EventCodec['fitDraft'] = (draft, index) => codec().fitDraft(draft, index)
/** {@link EventCodec.decodeEvent} with the schemas of this package. */
export const decodeEvent: EventCodec['decodeEvent'] = (bytes, lasting, load) => codec().decodeEvent(bytes, lasting, load)
/** {@link EventCodec.decodeEnvelope} with the schemas of this package. */
export const decodeEnvelope: EventCodec['decodeEnvelope'] = (bytes) => codec().decodeEnvelope(bytes)
