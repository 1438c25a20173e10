import { fatal } from './errors.ts'
import { isJsonObject, type JsonValue } from './json.ts'
import { jsonParse } from './json-parse.ts'

/** A value in a content store (R17): lower-case hex SHA-256 of its bytes, their number, and what they are. */
export interface ContentRef {
  readonly digest: string
  readonly size: number
  readonly media_type: string
}

/** The event that refers to a content: what an error names. */
export interface ContentPlace {
  readonly stream: string
  readonly version: number
}

/** @throws ThreadlogError `content_missing`, `content_corrupt`, naming stream and version */
export type LoadContent = (ref: ContentRef, at: ContentPlace) => Uint8Array

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** How the wire form of a reference begins: keys stand in canonical order. */
export const REFERENCE_MARK = '{"$content":{"digest":"'
const MARK = encoder.encode(REFERENCE_MARK)
/** Longest reference, in bytes. */
const MOST = 512

/** The wire form of a reference. */
export const referenceBytes = ({ digest, size, media_type }: ContentRef): Uint8Array =>
  encoder.encode(`${REFERENCE_MARK}${digest}","media_type":${JSON.stringify(media_type)},"size":${size}}}`)

/** The reference that these bytes are the wire form of, if they are one. Nearly every payload is told by its third byte. */
export function referenceIn(bytes: Uint8Array): ContentRef | undefined {
  if (bytes[2] !== MARK[2] || bytes.length > MOST || MARK.some((byte, i) => bytes[i] !== byte)) return undefined
  const value = parsePayload(bytes)
  const ref = isJsonObject(value) ? value['$content'] : undefined
  if (!isJsonObject(ref)) return undefined
  const { digest, media_type, size } = ref
  if (typeof digest !== 'string' || typeof media_type !== 'string' || typeof size !== 'number') return undefined
  const found = { digest, size, media_type }
  // Only what this package would write counts; whatever else begins so is a value like any other.
  return /^[0-9a-f]{64}$/.test(digest) && Buffer.compare(referenceBytes(found), bytes) === 0 ? found : undefined
}

/** A value that stands elsewhere. What was loaded is shared as long as somebody uses it. */
export class Kept {
  readonly ref: ContentRef
  readonly wire: Uint8Array
  #load: LoadContent | undefined
  #at: ContentPlace | undefined
  #bytes: WeakRef<Uint8Array> | undefined
  #value: WeakRef<object> | undefined

  constructor(ref: ContentRef, bytes?: Uint8Array, value?: JsonValue, wire?: Uint8Array) {
    this.ref = ref
    this.wire = wire ?? referenceBytes(ref)
    this.#bytes = bytes && new WeakRef(bytes)
    if (typeof value === 'object' && value !== null) this.#value = new WeakRef(value)
  }

  get at(): ContentPlace | undefined {
    return this.#at
  }

  loadFrom(load: LoadContent, at: ContentPlace): void {
    this.#load = load
    this.#at = at
  }

  get bytes(): Uint8Array {
    const known = this.#bytes?.deref()
    if (known) return known
    if (!this.#load || !this.#at) throw fatal('content_unbound', 'A kept value was looked at before its log was known.')
    const bytes = this.#load(this.ref, this.#at)
    this.#bytes = new WeakRef(bytes)
    return bytes
  }

  get value(): JsonValue {
    const known = this.#value?.deref()
    if (known) return known as JsonValue
    const value = parsePayload(this.bytes)
    if (typeof value === 'object' && value !== null) this.#value = new WeakRef(value)
    return value
  }
}

/** @throws ThreadlogError `payload_undecodable` */
export function parsePayload(bytes: Uint8Array): JsonValue {
  try {
    return jsonParse(decoder.decode(bytes)) as JsonValue
  } catch {
    // The parser's message quotes the text.
    throw fatal('payload_undecodable', 'A payload does not hold JSON.', { details: { size: bytes.length } })
  }
}
