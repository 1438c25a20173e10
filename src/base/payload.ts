import { fatal } from './errors.ts'
import { sha256Hex } from './hash.ts'
import { canonicalForm, type JsonValue } from './json.ts'
import { jsonParse } from './json-parse.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * A free-form JSON value that travels as bytes of canonical JSON and is parsed only when somebody looks (design §9).
 * The value is shared: treat it as read-only, copy before changing (`structuredClone`).
 */
export class Payload {
  #bytes: Uint8Array | undefined
  #value: JsonValue | undefined
  #digest: string | undefined

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

  get bytes(): Uint8Array {
    if (this.#bytes === undefined) {
      const { text, copy } = canonicalForm(this.#value as JsonValue)
      this.#bytes = encoder.encode(text)
      // From here on what is read is what was written, whatever becomes of the value it was made of.
      this.#value = copy
    }
    return this.#bytes
  }

  /** @throws ThreadlogError `payload_undecodable` when foreign bytes are not JSON */
  get value(): JsonValue {
    if (this.#value === undefined) this.#value = parse(this.#bytes as Uint8Array)
    return this.#value
  }

  /** Lower-case hex SHA-256 of the canonical bytes. */
  get digest(): string {
    this.#digest ??= sha256Hex(this.bytes)
    return this.#digest
  }

  toJSON(): JsonValue {
    return this.value
  }
}

function parse(bytes: Uint8Array): JsonValue {
  try {
    return jsonParse(decoder.decode(bytes)) as JsonValue
  } catch {
    // The parser's message quotes the text.
    throw fatal('payload_undecodable', 'A payload does not hold JSON.', { details: { size: bytes.length } })
  }
}
