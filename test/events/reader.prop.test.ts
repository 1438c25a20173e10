import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeEvent, encodeCommit, eventTypes, packagedSchemas } from '../../src/events/index.ts'
import { GIVE_UP } from '../../src/events/reader.ts'
import { fileSchemas } from '../../src/events/schema-source.ts'
import { shortText } from '../../src/events/texts.ts'
import { typeTable } from '../../src/events/type-table.ts'
import { FRAMING, readSchemaId } from '../../src/events/wire.ts'
import { drafts, metas, plain, texts } from '../support/event-arbitraries.ts'

const HASH = 'as given'
const table = typeTable(fileSchemas(packagedSchemas))

/** The value, or undefined for what the quick reader leaves to avsc. */
function quickly(bytes: Uint8Array, lasting = false): unknown {
  const at = { bytes, pos: FRAMING, lasting, suspect: false }
  try {
    const value = table.reader(readSchemaId(bytes))?.quick?.(at, HASH)
    return at.pos === bytes.length ? value : undefined
  } catch (reason) {
    if (reason !== GIVE_UP) throw reason
    return undefined
  }
}

/** What avsc reads, in the form of an event; undefined when it refuses, or bytes are left. */
function slowly(bytes: Uint8Array): unknown {
  try {
    const { value, offset } = table.reader(readSchemaId(bytes))!.body.decode(Buffer.from(bytes), FRAMING)
    const { envelope, data } = value as { envelope: object; data: unknown }
    return offset === bytes.length ? { ...envelope, data, hash: HASH } : undefined
  } catch {
    return undefined
  }
}

const flipped = (bytes: Uint8Array, flips: readonly number[]): Uint8Array => {
  const out = Uint8Array.from(bytes)
  for (const flip of flips) out[FRAMING + ((flip >> 3) % (out.length - FRAMING))]! ^= 1 << (flip & 7)
  return out
}

test('reads every event as avsc does, and leaves none of them to it', () => {
  const property = fc.property(metas(), drafts(), fc.boolean(), (meta, draft, lasting) => {
    const { bytes } = encodeCommit(meta, [draft]).records[0]!
    const value = quickly(bytes, lasting)
    expect(value).toBeDefined()
    expect(plain(value)).toStrictEqual(plain(slowly(bytes)))
  })
  fc.assert(property, { numRuns: 1000 })
})

test('what it takes of broken events, avsc takes for the same', () => {
  const flips = fc.array(fc.nat(), { minLength: 1, maxLength: 4 })
  const property = fc.property(metas(), drafts(), flips, fc.nat({ max: 3 }), (meta, draft, at, cut) => {
    const whole = flipped(encodeCommit(meta, [draft]).records[0]!.bytes, at)
    const bytes = whole.subarray(0, whole.length - cut)
    const value = quickly(bytes)
    if (value !== undefined) expect(plain(value)).toStrictEqual(plain(slowly(bytes)))
  })
  fc.assert(property, { numRuns: 5000 })
})

test('what it takes of any bytes, avsc takes for the same', () => {
  const byte = fc.oneof(fc.nat({ max: 255 }), fc.constantFrom(0, 1, 2, 0x80, 0xff))
  const ids = fc.integer({ min: 1, max: eventTypes.length })
  // Enough zeros behind make short events whole.
  const property = fc.property(ids, fc.array(byte, { maxLength: 160 }), fc.nat({ max: 120 }), (id, body, zeros) => {
    const bytes = Uint8Array.from([0, 0, 0, 0, id, ...body, ...new Array<number>(zeros).fill(0)])
    const value = quickly(bytes)
    if (value !== undefined) expect(plain(value)).toStrictEqual(plain(slowly(bytes)))
  })
  fc.assert(property, { numRuns: 5000 })
})

test('payloads of lasting bytes are the same, and small ones do not hold the record', () => {
  const property = fc.property(metas(), drafts('model.responded/1', 'run.requested/1'), (meta, draft) => {
    const { bytes, event } = encodeCommit(meta, [draft]).records[0]!
    const lasting = decodeEvent(bytes, true)
    expect(plain(lasting)).toStrictEqual(plain(event))
    for (const payload of Object.values(lasting.data) as { bytes?: Uint8Array }[])
      if (payload?.bytes?.buffer === bytes.buffer) expect(payload.bytes.length * 2).toBeGreaterThan(bytes.length)
  })
  fc.assert(property, { numRuns: 200 })
})

test('a text found again is the text of those bytes', () => {
  const some = fc.oneof(
    texts().map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 60 }),
  )
  const property = fc.property(fc.array(some, { maxLength: 20 }), (list) => {
    for (const bytes of [...list, ...list]) expect(shortText(bytes, 0, bytes.length)).toBe(Buffer.from(bytes).toString())
  })
  fc.assert(property, { numRuns: 500 })
})
