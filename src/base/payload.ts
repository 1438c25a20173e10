import { sha256Hex } from './hash.ts'
import { canonicalForm, type JsonValue } from './json.ts'
import { type ContentPlace, type ContentRef, Kept, type LoadContent, parsePayload, referenceIn } from './kept.ts'

const encoder = new TextEncoder()

/**
 * A free-form JSON value that travels as bytes of canonical JSON and is parsed only when somebody looks (design §9).
 * The value is shared: treat it as read-only, copy before changing (`structuredClone`).
 * A kept payload is one whose bytes stand in a content store; it loads them when somebody looks, and does not hold on to them (R17).
 */
export class Payload {
  #bytes: Uint8Array | undefined
  #value: JsonValue | undefined
  #digest: string | undefined
  #kept: Kept | undefined

  private constructor(bytes: Uint8Array | undefined, value: JsonValue | undefined) {
    this.#bytes = bytes
    this.#value = value
  }

  static of(value: JsonValue): Payload {
    return new Payload(undefined, value)
  }

  /** `bytes` must be what {@link Payload.bytes} once gave; they are not checked. */
  static fromBytes(bytes: Uint8Array): Payload {
    return new Payload(bytes, undefined)
  }

  /** What {@link Payload.kept} says of a payload, back again; {@link Payload.loadFrom} must follow before anybody looks. */
  static fromReference(ref: ContentRef): Payload {
    const payload = new Payload(undefined, undefined)
    payload.#kept = new Kept(ref)
    return payload
  }

  /** The canonical JSON of the value. @throws ThreadlogError `content_missing`, `content_corrupt` when it is kept */
  get bytes(): Uint8Array {
    if (this.#kept) return this.#kept.bytes
    if (this.#bytes === undefined) {
      const { text, copy } = canonicalForm(this.#value as JsonValue)
      this.#bytes = encoder.encode(text)
      // From here on what is read is what was written, whatever becomes of the value it was made of.
      this.#value = copy
    }
    return this.#bytes
  }

  /** @throws ThreadlogError `payload_undecodable` when foreign bytes are not JSON; as {@link Payload.bytes} */
  get value(): JsonValue {
    if (this.#kept) return this.#kept.value
    if (this.#value === undefined) this.#value = parsePayload(this.#bytes as Uint8Array)
    return this.#value
  }

  /** Lower-case hex SHA-256 of the canonical bytes. */
  get digest(): string {
    if (this.#kept) return this.#kept.ref.digest
    this.#digest ??= sha256Hex(this.bytes)
    return this.#digest
  }

  /** Number of canonical bytes. */
  get size(): number {
    return this.#kept?.ref.size ?? this.bytes.byteLength
  }

  /** What stands in an event: the canonical bytes, or the reference to them. */
  get wire(): Uint8Array {
    return this.#kept?.wire ?? this.bytes
  }

  /** Where the value is kept, and for which event. Undefined: the payload holds it. */
  get kept(): { readonly ref: ContentRef; readonly at: ContentPlace | undefined } | undefined {
    return this.#kept
  }

  /** From now on the payload is a reference to what was put into a content store. */
  keep(ref: ContentRef): void {
    this.#kept = new Kept(ref, this.#bytes, this.#value)
    this.#bytes = this.#value = this.#digest = undefined
  }

  /** True if its wire form is a reference. */
  get isReference(): boolean {
    return this.#kept !== undefined || (this.#bytes !== undefined && referenceIn(this.#bytes) !== undefined)
  }

  /** Of a payload that is a reference: how to come by the value. Any other is left as it is. */
  loadFrom(load: LoadContent, at: ContentPlace): void {
    if (!this.#kept && this.#bytes) {
      const ref = referenceIn(this.#bytes)
      if (ref) this.#kept = new Kept(ref, undefined, undefined, this.#bytes)
    }
    this.#kept?.loadFrom(load, at)
  }

  toJSON(): JsonValue {
    return this.value
  }
}
