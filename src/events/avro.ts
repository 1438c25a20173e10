import avsc, { type Type } from 'avsc'
import { Payload } from '../base/index.ts'
import { type AvroRecord, type AvroSchema, fullName, isNamed } from './avro-schema.ts'

// How the field kinds of the catalogue stand in memory. avsc 5.7.9 reads and writes through `_read(tap)` and `_write(tap, value)`;
// the kinds below define these two, so a hash costs one copy and a hostile length is refused before anything is allocated.

/** avsc's cursor. A position behind the end marks the whole read or write as failed. */
interface Tap {
  buf: Buffer
  pos: number
  readLong(): number
  writeLong(value: number): void
}
type Reading = { _read(tap: Tap): unknown }
type Writing = { _write(tap: Tap, value: unknown): void }
type Resolving = { _read?: (tap: Tap) => unknown }

/** A kind of value with its own form in memory, resolved from the same kind only. */
abstract class Kind extends avsc.types.LogicalType {
  constructor(name: string, underlying: object) {
    super({ ...underlying, logicalType: name } as never, {})
  }
  abstract _read(tap: Tap): unknown
  abstract _write(tap: Tap, value: unknown): void
  abstract _check(value: unknown, flags?: unknown, hook?: (value: unknown, type: Type) => void): boolean

  _update(resolver: Resolving, writer: Type): void {
    if ((writer as unknown) === this) resolver._read = (tap) => this._read(tap)
  }
}

/** Fixed bytes as lower-case hex. */
export class Hex extends Kind {
  readonly size: number
  readonly #pattern: RegExp

  constructor(name: string, size: number) {
    super(name, { type: 'fixed', name, size })
    this.size = size
    this.#pattern = new RegExp(`^[0-9a-f]{${size * 2}}$`)
  }
  _read(tap: Tap): string {
    const start = tap.pos
    tap.pos += this.size
    return tap.buf.toString('hex', start, tap.pos)
  }
  _write(tap: Tap, value: string): void {
    const start = tap.pos
    tap.pos += this.size
    if (tap.pos <= tap.buf.length) tap.buf.write(value, start, 'hex')
  }
  _check(value: unknown): boolean {
    return typeof value === 'string' && this.#pattern.test(value)
  }
}

/** Non-negative integers below 2^53. */
export class Count extends Kind {
  _read(tap: Tap): number {
    const value = tap.readLong()
    if (!(value >= 0 && value <= Number.MAX_SAFE_INTEGER)) throw new Error('not a count')
    return value
  }
  _write(tap: Tap, value: number): void {
    tap.writeLong(value)
  }
  _check(value: unknown): boolean {
    return Number.isSafeInteger(value) && (value as number) >= 0
  }
}

/** Bytes of canonical JSON, copied out of the record and parsed only when somebody looks. */
export class Json extends Kind {
  _read(tap: Tap): Payload {
    const length = tap.readLong()
    const start = tap.pos
    if (!(length >= 1 && start + length <= tap.buf.length)) throw new Error('not a payload')
    tap.pos += length
    const bytes = new Uint8Array(length)
    bytes.set(tap.buf.subarray(start, tap.pos))
    return Payload.fromBytes(bytes)
  }
  _write(tap: Tap, value: Payload): void {
    const { wire } = value
    tap.writeLong(wire.length)
    const start = tap.pos
    tap.pos += wire.length
    if (tap.pos <= tap.buf.length) tap.buf.set(wire, start)
  }
  _check(value: unknown): boolean {
    return value instanceof Payload
  }
}

/** Text that is UTF-8 indeed: plain avsc reads broken bytes as replacement characters, so that two ids may come out as one. */
class Utf8 extends Kind {
  _read(tap: Tap): string {
    const length = tap.readLong()
    const start = tap.pos
    if (!(length >= 0 && start + length <= tap.buf.length)) throw new Error('not a text')
    tap.pos += length
    return strictUtf8.decode(tap.buf.subarray(start, tap.pos))
  }
  _write(tap: Tap, value: string): void {
    const bytes = Buffer.from(value)
    tap.writeLong(bytes.length)
    const start = tap.pos
    tap.pos += bytes.length
    if (tap.pos <= tap.buf.length) tap.buf.set(bytes, start)
  }
  _check(value: unknown): boolean {
    return typeof value === 'string' && value.isWellFormed()
  }
}
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A list; its length is checked against the bytes that are left, as avsc does not (every item takes at least one). */
export class List extends Kind {
  readonly items: Type

  constructor(items: Type) {
    super('list', { type: 'array', items: 'null' })
    this.items = items
  }
  _read(tap: Tap): unknown[] {
    return readList(tap, this.items as unknown as Reading)
  }
  /** A reader without the field passes over it; the underlying type, whose items take no bytes, would not. */
  _skip(tap: Tap): void {
    this._read(tap)
  }
  _write(tap: Tap, value: unknown[]): void {
    if (value.length > 0) {
      tap.writeLong(value.length)
      for (const item of value) (this.items as unknown as Writing)._write(tap, item)
    }
    tap.writeLong(0)
  }
  _check(value: unknown): boolean {
    return Array.isArray(value) && value.every((item) => this.items.isValid(item))
  }
  override _update(resolver: Resolving, writer: Type): void {
    if (!(writer instanceof List)) return
    const items = this.items.createResolver(writer.items) as unknown as Reading
    resolver._read = (tap) => readList(tap, items)
  }
}

function readList(tap: Tap, items: Reading): unknown[] {
  const out: unknown[] = []
  for (let size = tap.readLong(); size !== 0; size = tap.readLong()) {
    if (size < 0) {
      size = -size
      tap.readLong()
    }
    if (!(size <= tap.buf.length - tap.pos)) throw new Error('not a list')
    for (; size > 0; size--) out.push(items._read(tap))
  }
  return out
}

const hash = new Hex('threadlog.events.Hash', 32)
const commitId = new Hex('threadlog.events.CommitId', 16)
const count = new Count('count', { type: 'long' })
const json = new Json('json', { type: 'bytes' })
const utf8 = new Utf8('utf8', { type: 'string' })

function kindOf(schema: AvroSchema, make: (schema: AvroSchema) => Type): Type | undefined {
  if (Array.isArray(schema)) return undefined
  if (schema === 'long' || (typeof schema === 'object' && schema.type === 'long')) return count
  if (schema === 'bytes') return json
  const name = typeof schema === 'string' ? schema : isNamed(schema) ? fullName(schema) : ''
  if (name === 'threadlog.events.Hash') return hash
  if (name === 'threadlog.events.CommitId') return commitId
  if (typeof schema === 'object' && schema.type === 'array') return new List(make(schema.items))
  return undefined
}

/** The avsc types of one event schema. */
export interface BodyTypes {
  /** First part of the body. */
  readonly envelope: Type
  /** The whole body, as `{envelope, data}`: on the wire the same as the flat record. */
  readonly body: Type
}

/** Builds the types of a self-contained event record. `envelopes` lets event types with an equal envelope share its reader. */
export function bodyTypes(schema: AvroRecord, envelopes: Map<string, Type> = new Map()): BodyTypes {
  const [header, ...fields] = schema.fields
  const key = JSON.stringify(header!.type)
  const envelope = envelopes.get(key) ?? build(header!.type, {})
  envelopes.set(key, envelope)
  const registry: Record<string, Type> = {}
  for (const type of within(envelope)) if (type.name !== undefined) registry[type.name] = type
  const name = fullName(schema)
  const data: AvroRecord = { type: 'record', name, fields }
  const body = {
    type: 'record',
    name: `${name}Body`,
    fields: [
      { name: 'envelope', type: envelope },
      { name: 'data', type: data },
    ],
  }
  return { envelope, body: build(body as AvroSchema, registry) }
}

/** Builds the type of a self-contained message that strangers write: as {@link bodyTypes}, and broken UTF-8 is refused. */
export const messageType = (schema: AvroRecord): Type => build(schema, {}, (inner) => (inner === 'string' ? utf8 : undefined))

function build(
  schema: AvroSchema,
  registry: Record<string, Type>,
  more: (inner: unknown) => Type | undefined = () => undefined,
): Type {
  const make = (part: AvroSchema): Type =>
    avsc.Type.forSchema(part as never, { registry, wrapUnions: 'never', typeHook, omitRecordMethods: true })
  const typeHook = (inner: unknown): Type | undefined => more(inner) ?? kindOf(inner as AvroSchema, make)
  const type = make(schema)
  // Records as plain objects: a decoded event equals a literal with the same fields.
  for (const inner of within(type))
    if (inner instanceof avsc.types.RecordType) inner.recordConstructor.prototype = Object.prototype
  return type
}

function within(type: Type, into = new Set<Type>()): Set<Type> {
  if (into.has(type)) return into
  into.add(type)
  if (type instanceof avsc.types.RecordType) for (const field of type.fields) within(field.type, into)
  else if (type instanceof avsc.types.UnwrappedUnionType) for (const branch of type.types) within(branch, into)
  else if (type instanceof List) within(type.items, into)
  return into
}
