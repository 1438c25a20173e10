import avsc from 'avsc'
import fc from 'fast-check'
import { canonicalJson } from '../../src/base/index.ts'
import type { AvroSchema } from '../../src/events/avro-schema.ts'
import { counts, hex, jsonValues, texts } from './event-arbitraries.ts'

// Avro as anybody else's library sees it: without our value kinds.

/** Plain avsc's type of a schema. */
export const vanilla = (schema: AvroSchema) =>
  avsc.Type.forSchema(schema as never, { wrapUnions: 'never', omitRecordMethods: true })

export type Names = ReadonlyMap<string, AvroSchema>

/** Values a schema allows, in plain avsc's form: counts non-negative, bytes JSON. */
export function valuesFrom(schema: AvroSchema, names: Names): fc.Arbitrary<unknown> {
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

/** What plain avsc gives, in the form of `plain`. */
export function inMemory(schema: AvroSchema, value: unknown, names: Names): unknown {
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
