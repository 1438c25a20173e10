import avsc, { type Type } from 'avsc'
import { Payload } from '../base/index.ts'
import { Count, Hex, Json, List } from './avro.ts'
import { hexText, shortText } from './texts.ts'

// Replay spends its time on reading events, so the layouts of this build have readers of their own: straight code for each record type,
// made once from the same avsc types. A reader that meets anything unusual gives up, and avsc judges the record: what is refused, and
// why, is decided in one place.

/** Where a reader stands. */
export interface Cursor {
  readonly bytes: Uint8Array
  pos: number
  /** The bytes never change, so a payload may stay a view of them. */
  readonly lasting: boolean
  /** Set when a payload may be a reference to content. */
  suspect: boolean
}

/** Reads one value, or throws {@link GIVE_UP}. */
export type Read = (at: Cursor) => unknown

/** Thrown, without a stack, for what avsc must judge. */
export const GIVE_UP: unique symbol = Symbol('not for this reader')

const readers = new WeakMap<Type, Read>()

/** The reader of a type; undefined when the type holds something the catalogue has no kind for. */
export function readerOf(type: Type): Read | undefined {
  let read = readers.get(type)
  if (read === undefined && (read = makeReader(type)) !== undefined) readers.set(type, read)
  return read
}

function makeReader(type: Type): Read | undefined {
  if (type instanceof Hex) return (at) => readHex(at, type.size)
  if (type instanceof Count) return readCount
  if (type instanceof Json) return readPayload
  if (type instanceof List) return listReader(readerOf(type.items))
  if (type instanceof avsc.types.RecordType) return recordReader(type)
  if (type instanceof avsc.types.EnumType) return enumReader(type.symbols)
  if (type instanceof avsc.types.UnwrappedUnionType) return optionalReader(type.types)
  if (type instanceof avsc.types.StringType) return readText
  if (type instanceof avsc.types.BooleanType) return (at) => !!at.bytes[at.pos++]
  return undefined
}

/** Reads a whole record: the fields of the envelope, then `data`, in one object, as events are handed out; `hash` is the caller's to set. */
export type ReadEvent = (at: Cursor, hash: string) => unknown

/** The reader of the body of an event; undefined as for {@link readerOf}. */
export function eventReader(body: Type): ReadEvent | undefined {
  const [envelope, data, ...more] = body instanceof avsc.types.RecordType ? body.fields : []
  if (!(envelope?.type instanceof avsc.types.RecordType) || envelope.name !== 'envelope' || more.length > 0) return undefined
  if (data?.name !== 'data') return undefined
  const readData = readerOf(data.type)
  const parts = envelope.type.fields.map(({ name, type }) => [name, readerOf(type)] as const)
  if (readData === undefined || parts.some(([, read]) => read === undefined)) return undefined
  const fields = parts.map(([name], i) => `${JSON.stringify(name)}: read${i}(at)`)
  const code = `return (at, hash) => ({ ${fields.join(', ')}, data: data(at), hash })`
  const names = parts.map((_, i) => `read${i}`)
  return new Function(...names, 'data', code)(...parts.map(([, read]) => read), readData) as ReadEvent
}

/** Straight code, for objects made by one literal are several times cheaper than objects made field by field. */
function recordReader(type: avsc.types.RecordType): Read | undefined {
  const parts: Read[] = []
  for (const field of type.fields) {
    const read = readerOf(field.type)
    if (read === undefined) return undefined
    parts.push(read)
  }
  const fields = type.fields.map(({ name }, i) => `${JSON.stringify(name)}: read${i}(at)`)
  const code = `return (at) => ({ ${fields.join(', ')} })`
  return new Function(...parts.map((_, i) => `read${i}`), code)(...parts) as Read
}

function listReader(item: Read | undefined): Read | undefined {
  return (
    item &&
    ((at) => {
      const out: unknown[] = []
      for (let size = readCount(at); size !== 0; size = readCount(at)) {
        if (size > at.bytes.length - at.pos) throw GIVE_UP
        for (; size > 0; size--) out.push(item(at))
      }
      return out
    })
  )
}

const enumReader =
  (symbols: readonly string[]): Read =>
  (at) => {
    const symbol = symbols[readCount(at)]
    if (symbol === undefined) throw GIVE_UP
    return symbol
  }

/** Of `["null", T]`, the one kind of union in the catalogue. */
function optionalReader([none, some, ...more]: readonly Type[]): Read | undefined {
  const read = some && readerOf(some)
  if (read === undefined || !(none instanceof avsc.types.NullType) || more.length > 0) return undefined
  return (at) => {
    const branch = readCount(at)
    if (branch === 0) return null
    if (branch === 1) return read(at)
    throw GIVE_UP
  }
}

/** Avro's zigzag number of variable length; negative ones have the lowest bit set. Past the end it reads zeros: the caller looks. */
function readCount(at: Cursor): number {
  const { bytes } = at
  let byte = bytes[at.pos++] as number
  if (byte < 0x80) {
    if (byte & 1) throw GIVE_UP
    return byte >> 1
  }
  let twice = byte & 0x7f
  for (let unit = 0x80; byte & 0x80; unit *= 0x80) {
    byte = bytes[at.pos++] as number
    twice += (byte & 0x7f) * unit
  }
  if (twice % 2 !== 0 || twice / 2 > Number.MAX_SAFE_INTEGER) throw GIVE_UP
  return twice / 2
}

/** Moves over `length` bytes; answers where they begin. */
function take(at: Cursor, length: number): number {
  const start = at.pos
  if (start + length > at.bytes.length) throw GIVE_UP
  at.pos = start + length
  return start
}

const readText = (at: Cursor): string => {
  const length = readCount(at)
  return shortText(at.bytes, take(at, length), length)
}

const readHex = (at: Cursor, size: number): string => hexText(at.bytes, take(at, size), size)

/** Memory of a typed array up to this size lies in the heap of the engine, where it costs little. */
const CHEAP_COPY = 64

/** Third byte of the wire form of a reference, and of hardly anything else. */
const DOLLAR = 0x24

function readPayload(at: Cursor): Payload {
  const length = readCount(at)
  if (length === 0) throw GIVE_UP
  const start = take(at, length)
  const { bytes } = at
  if (bytes[start + 2] === DOLLAR) at.suspect = true
  // A view holds the whole record, so it must be most of it.
  if (at.lasting && length > CHEAP_COPY && length * 2 > bytes.length)
    return Payload.fromBytes(new Uint8Array(bytes.buffer, bytes.byteOffset + start, length))
  const copy = new Uint8Array(length)
  if (length > CHEAP_COPY) copy.set(bytes.subarray(start, at.pos))
  else for (let i = 0; i < length; i++) copy[i] = bytes[start + i] as number
  return Payload.fromBytes(copy)
}
