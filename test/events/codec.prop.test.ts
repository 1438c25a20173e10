import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isThreadlogError, Payload, sha256Hex } from '../../src/base/index.ts'
import { decodeEnvelope, decodeEvent, type EventDraft, encodeCommit, eventTypes } from '../../src/events/index.ts'
import { drafts, metas, plain } from '../support/event-arbitraries.ts'

describe('round trip', () => {
  test.each(eventTypes)('%s', (type) => {
    const property = fc.property(metas(), drafts(type), (meta, draft) => {
      const [record] = encodeCommit(meta, [draft]).records
      const decoded = decodeEvent(record!.bytes)
      expect(plain(decoded)).toStrictEqual(plain(record!.event))
      expect(isDeepStrictEqual(decoded, record!.event)).toBe(true)
      expect(plain(decoded.data)).toEqual(plain(withNulls(draft.data)))
      const again = encodeCommit(meta, [{ type, data: decoded.data } as EventDraft])
      expect(again.records[0]!.bytes).toEqual(record!.bytes)
    })
    fc.assert(property, { numRuns: 40 })
  })
})

/** What a draft says, absent values spelled out. */
const withNulls = (data: object): object => Object.fromEntries(Object.entries(data).map(([key, value]) => [key, fill(value)]))
const fill = (value: unknown): unknown => {
  if (value === undefined) return null
  if (Array.isArray(value)) return value.map(fill)
  return typeof value === 'object' && value !== null && !(value instanceof Payload) ? withNulls(value) : value
}

test('a commit is a chain: versions rise by one, each previous is the hash before', () => {
  const property = fc.property(
    metas({ base: 7, previous: 'ab'.repeat(32) }),
    fc.array(drafts(), { minLength: 1, maxLength: 6 }),
    (meta, list) => {
      const commit = encodeCommit(meta, list)
      let head = meta.previous
      for (const [index, { version, hash, bytes, event }] of commit.records.entries()) {
        expect(hash).toBe(sha256Hex(bytes.subarray(5)))
        expect(event).toMatchObject({ version, hash, previous: head, stream: meta.stream, type: list[index]!.type })
        expect(event.commit).toEqual({ id: meta.id, base: 7, index, size: list.length })
        expect(version).toBe(8 + index)
        const { data: _, ...envelope } = event
        expect(decodeEnvelope(bytes)).toStrictEqual(envelope)
        head = hash
      }
    },
  )
  fc.assert(property, { numRuns: 60 })
})

test('a decoded event shares no memory with the record', () => {
  const property = fc.property(metas(), drafts('tool.settled/1', 'run.suspended/1', 'thread.opened/1'), (meta, draft) => {
    const { bytes, event } = encodeCommit(meta, [draft]).records[0]!
    const reused = Uint8Array.from(bytes)
    const decoded = decodeEvent(reused)
    reused.fill(0xff)
    encodeCommit(meta, [draft, draft])
    expect(plain(decoded)).toStrictEqual(plain(event))
  })
  fc.assert(property, { numRuns: 50 })
})

test('a view into a larger buffer decodes alike', () => {
  const property = fc.property(metas(), drafts(), fc.nat({ max: 40 }), (meta, draft, before) => {
    const { bytes, event } = encodeCommit(meta, [draft]).records[0]!
    const large = new Uint8Array(bytes.length + before + 9).fill(0x81)
    large.set(bytes, before)
    expect(plain(decodeEvent(large.subarray(before, before + bytes.length)))).toStrictEqual(plain(event))
  })
  fc.assert(property, { numRuns: 50 })
})

describe('any bytes decode or are refused as event_undecodable', () => {
  const attempt = (bytes: Uint8Array): 'decoded' | 'refused' => {
    const outcomes = [decodeEvent, decodeEnvelope].map((decode) => {
      try {
        decode(bytes)
        return 'decoded'
      } catch (error) {
        if (!isThreadlogError(error, 'event_undecodable')) throw error
        expect(['framing', 'unknown-schema', 'body']).toContain(error.details['reason'])
        return 'refused'
      }
    })
    return outcomes[0] as 'decoded' | 'refused'
  }

  test('random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void attempt(bytes)),
      { numRuns: 500 },
    )
  })

  test('random bodies behind every schema id', () => {
    const property = fc.property(
      fc.integer({ min: 0, max: eventTypes.length + 3 }),
      fc.uint8Array({ maxLength: 300 }),
      (id, body) => {
        attempt(Uint8Array.from([0, 0, 0, 0, id, ...body]))
      },
    )
    fc.assert(property, { numRuns: 2000 })
  })

  test('truncated and extended events are always refused', () => {
    const property = fc.property(metas(), drafts(), fc.nat(), (meta, draft, cut) => {
      const { bytes } = encodeCommit(meta, [draft]).records[0]!
      expect(attempt(bytes.subarray(0, cut % bytes.length))).toBe('refused')
      expect(attempt(Uint8Array.from([...bytes, 0]))).toBe('refused')
    })
    fc.assert(property, { numRuns: 300 })
  })

  test('flipped bits; what still decodes has another hash', () => {
    const property = fc.property(metas(), drafts(), fc.array(fc.nat(), { minLength: 1, maxLength: 3 }), (meta, draft, flips) => {
      const { bytes, hash } = encodeCommit(meta, [draft]).records[0]!
      const broken = Uint8Array.from(bytes)
      for (const flip of flips) broken[(flip >> 3) % broken.length]! ^= 1 << (flip & 7)
      if (attempt(broken) === 'decoded' && !isDeepStrictEqual(broken.subarray(5), bytes.subarray(5)))
        expect(decodeEvent(broken).hash).not.toBe(hash)
    })
    fc.assert(property, { numRuns: 1500 })
  })
})
