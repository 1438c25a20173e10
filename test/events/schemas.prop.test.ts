import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { definitions } from '../../src/events/avro-schema.ts'
import {
  catalogue,
  decodeEvent,
  type EdgeType,
  edgeCodec,
  edges,
  encodeCommit,
  eventTypes,
  fileSchemas,
  type LogEvent,
} from '../../src/events/index.ts'
import { inMemory, valuesFrom, vanilla } from '../support/avro-vanilla.ts'
import { drafts, metas, plain, valuesOf } from '../support/event-arbitraries.ts'

// zod and .avsc agree in both directions, judged by avsc without any of our value kinds: what zod allows, plain avsc reads back as the
// same value; what the .avsc file allows (counts non-negative, bytes JSON), zod accepts after decoding.

const source = fileSchemas()
const schemaOf = (type: string) => source.schema(source.id(type) as number)!

describe.each(eventTypes)('%s', (type) => {
  const { id, avro } = schemaOf(type)
  const independent = vanilla(avro)
  const names = definitions(avro)

  test('what zod allows is what plain avsc reads', () => {
    const property = fc.property(metas(), drafts(type), (meta, draft) => {
      const { bytes, event } = encodeCommit(meta, [draft]).records[0]!
      const { data, hash: _, ...envelope } = event
      const read = inMemory(avro, independent.fromBuffer(Buffer.from(bytes.subarray(5))), names)
      expect(read).toEqual({ envelope, ...(plain(data) as object) })
    })
    fc.assert(property, { numRuns: 15 })
  })

  test('what the file allows is what zod accepts', () => {
    const property = fc.property(valuesFrom(avro, names), (value) => {
      const flat = value as { envelope: { type: string } }
      flat.envelope.type = type
      const body = independent.toBuffer(flat)
      const event: LogEvent = decodeEvent(Buffer.concat([Buffer.from([0, 0, 0, 0, id]), body]))
      expect((catalogue[type] as z.ZodType).safeParse(event.data).error).toBeUndefined()
      const { data, hash: _, ...envelope } = event
      expect({ envelope, ...(plain(data) as object) }).toEqual(inMemory(avro, flat, names))
    })
    fc.assert(property, { numRuns: 15 })
  })
})

describe.each(Object.keys(edges) as EdgeType[])('edge message %s', (type) => {
  const { id, avro } = schemaOf(type)
  const independent = vanilla(avro)
  const names = definitions(avro)
  const codec = edgeCodec(source)

  test('what zod allows is what plain avsc reads', () => {
    const property = fc.property(valuesOf(edges[type]), (value) => {
      const bytes = codec.encode(type, value as object)
      expect([...bytes.subarray(0, 5)]).toEqual([0, 0, 0, id >> 8, id & 0xff])
      const read = inMemory(avro, independent.fromBuffer(Buffer.from(bytes.subarray(5))), names)
      expect(plain(codec.decode(type, bytes))).toEqual(read)
      expect(edges[type].safeParse(codec.decode(type, bytes)).error).toBeUndefined()
    })
    fc.assert(property, { numRuns: 60 })
  })

  test('what the file allows is what zod accepts', () => {
    const property = fc.property(valuesFrom(avro, names), (value) => {
      const body = independent.toBuffer(value)
      const read = codec.decode(type, Buffer.concat([Buffer.from([0, 0, 0, 0, id]), body]))
      expect(edges[type].safeParse(read).error).toBeUndefined()
      expect(plain(read)).toEqual(inMemory(avro, value, names))
    })
    fc.assert(property, { numRuns: 60 })
  })
})
