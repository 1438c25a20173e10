import avsc from 'avsc'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { canonicalJson } from '../../src/base/index.ts'
import { type AvroSchema, definitions } from '../../src/events/avro-schema.ts'
import { catalogue, decodeEvent, encodeCommit, eventTypes, fileSchemas, type LogEvent } from '../../src/events/index.ts'
import { counts, drafts, hex, jsonValues, metas, plain, texts } from '../support/event-arbitraries.ts'

// zod and .avsc agree in both directions, judged by avsc without any of our value kinds: what zod allows, plain avsc reads back as the
// same value; what the .avsc file allows (counts non-negative, bytes JSON), zod accepts after decoding.

const source = fileSchemas()
const schemaOf = (type: string) => source.schema(source.id(type) as number)!
const vanilla = (schema: AvroSchema) => avsc.Type.forSchema(schema as never, { wrapUnions: 'never', omitRecordMethods: true })

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

type Names = ReadonlyMap<string, AvroSchema>

function valuesFrom(schema: AvroSchema, names: Names): fc.Arbitrary<unknown> {
  if (Array.isArray(schema)) return fc.oneof(...schema.map((branch) => valuesFrom(branch, names)))
  if (typeof schema === 'string') {
    const primitive = { null: fc.constant(null), string: texts(), boolean: fc.boolean(), long: counts(), bytes: json() }[schema]
    return primitive ?? valuesFrom(names.get(schema)!, names)
  }
  switch (schema.type) {
    case 'long':
      return counts()
    case 'array':
      return fc.array(valuesFrom(schema.items, names), { maxLength: 3 })
    case 'enum':
      return fc.constantFrom(...schema.symbols)
    case 'fixed':
      return hex(schema.size).map((text) => Buffer.from(text, 'hex'))
    case 'record': {
      const fields = schema.fields.map((field) => [field.name, valuesFrom(field.type, names)] as const)
      return fc.record(Object.fromEntries(fields), { noNullPrototype: true })
    }
  }
}

const json = () => jsonValues(2).map((value) => Buffer.from(canonicalJson(value)))

/** What plain avsc gives, in the form of {@link plain}. */
function inMemory(schema: AvroSchema, value: unknown, names: Names): unknown {
  if (Array.isArray(schema)) return value === null ? null : inMemory(schema.find((branch) => branch !== 'null')!, value, names)
  if (schema === 'bytes') return { $payload: (value as Buffer).toString() }
  if (typeof schema === 'string') return names.has(schema) ? inMemory(names.get(schema)!, value, names) : value
  switch (schema.type) {
    case 'fixed':
      return (value as Buffer).toString('hex')
    case 'array':
      return (value as unknown[]).map((item) => inMemory(schema.items, item, names))
    case 'record': {
      const record = value as Record<string, unknown>
      return Object.fromEntries(schema.fields.map((field) => [field.name, inMemory(field.type, record[field.name], names)]))
    }
    default:
      return value
  }
}
