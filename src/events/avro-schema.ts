import { z } from 'zod'
import { canonicalJson, fatal, type JsonValue, sha256Hex } from '../base/index.ts'
import { catalogue } from './catalogue.ts'
import { edges } from './edges.ts'
import { envelope } from './envelope.ts'
import { UNRECOGNISED } from './fields.ts'
import { upcasters } from './upcast.ts'

/** An Avro schema as JSON; named types are referred to by full name. */
export type AvroSchema = string | AvroSchema[] | AvroRecord | AvroEnum | AvroFixed | AvroArray | AvroLong
export interface AvroField {
  name: string
  type: AvroSchema
  default?: null
  doc?: string
}
export interface AvroRecord {
  type: 'record'
  name: string
  namespace?: string
  fields: AvroField[]
}
export interface AvroEnum {
  type: 'enum'
  name: string
  namespace?: string
  symbols: string[]
  default?: string
}
export interface AvroFixed {
  type: 'fixed'
  name: string
  namespace?: string
  size: number
}
export interface AvroArray {
  type: 'array'
  items: AvroSchema
}
export interface AvroLong {
  type: 'long'
  logicalType: string
}
export type AvroNamed = AvroRecord | AvroEnum | AvroFixed

export const NAMESPACE = 'threadlog.events'
/** Of what others write and read in Avro. */
export const EDGE_NAMESPACE = 'threadlog.edges'

/** Full name of a named schema. */
export const fullName = (schema: AvroNamed): string =>
  schema.name.includes('.') ? schema.name : `${schema.namespace ?? NAMESPACE}.${schema.name}`

/** True for records, enums and fixed types: what Avro refers to by name. */
export const isNamed = (schema: AvroSchema): schema is AvroNamed =>
  typeof schema === 'object' && !Array.isArray(schema) && 'name' in schema

/** `continuation.completed/1` → `ContinuationCompleted1`. */
export const recordName = (type: string): string =>
  type.replace(/(^|[^a-z0-9])([a-z0-9])/g, (_match, _separator, letter: string) => letter.toUpperCase())

/** `continuation.completed/1` → `continuation.completed-1.avsc`. */
export const fileName = (type: string): string => `${type.replace('/', '-')}.avsc`

/** Everything the zod declarations say, in Avro: one record per type, and the named types they refer to. */
export interface AvroCatalogue {
  /** Events by type, retired types included: logs hold them for ever. */
  readonly events: ReadonlyMap<string, AvroRecord>
  /** Edge messages by type. */
  readonly edges: ReadonlyMap<string, AvroRecord>
  readonly named: ReadonlyMap<string, AvroNamed>
}

/** Derives the Avro catalogue from the zod objects. Pure; used by the generator and the tests, not in production. */
export function avroCatalogue(): AvroCatalogue {
  const named = new Map<string, AvroNamed>()
  const add = (schema: AvroNamed): string => {
    const name = fullName(schema)
    const known = named.get(name)
    if (known && !same(known, schema)) throw new Error(`two different Avro types are called ${name}`)
    if (!known) named.set(name, schema)
    return name
  }
  const scope: Scope = { namespace: NAMESPACE, add }
  add({ type: 'fixed', name: qualified(scope, 'Hash'), size: 32 })
  add({ type: 'fixed', name: qualified(scope, 'CommitId'), size: 16 })
  const header: AvroField = { name: 'envelope', type: convert(envelope, scope) }
  const retired = Object.entries(upcasters).map(([type, { from }]) => [type, from] as const)
  const events = new Map<string, AvroRecord>()
  for (const [type, object] of [...Object.entries(catalogue), ...retired] as [string, z.ZodObject][])
    events.set(type, {
      type: 'record',
      name: recordName(type),
      namespace: NAMESPACE,
      fields: [header, ...fields(object, scope)],
    })
  return { events, edges: edgeRecords(add), named }
}

function edgeRecords(add: Scope['add']): Map<string, AvroRecord> {
  const scope: Scope = { namespace: EDGE_NAMESPACE, add }
  const records = new Map<string, AvroRecord>()
  for (const [type, object] of Object.entries(edges) as [string, z.ZodObject][])
    records.set(type, {
      type: 'record',
      name: String(object.meta()?.title),
      namespace: EDGE_NAMESPACE,
      fields: fields(object, scope),
    })
  return records
}

const same = (a: AvroSchema, b: AvroSchema): boolean => canonicalJson(a as JsonValue) === canonicalJson(b as JsonValue)

/** Where the named types met on the way go. */
interface Scope {
  readonly namespace: string
  add(schema: AvroNamed): string
}
const qualified = ({ namespace }: Scope, name: string): string => `${namespace}.${name}`

const fields = (object: z.ZodObject, scope: Scope): AvroField[] =>
  Object.entries(object.shape).map(([name, field]) => {
    const type = convert(field as z.ZodType, scope)
    const doc = (field as z.ZodType).description
    return { name, type, ...(Array.isArray(type) ? { default: null } : {}), ...(doc === undefined ? {} : { doc }) }
  })

function convert(schema: z.ZodType, scope: Scope): AvroSchema {
  const { avro, title } = (schema.meta() ?? {}) as { avro?: AvroSchema; title?: string }
  if (avro !== undefined) return avro
  if (schema instanceof z.ZodNullable) return ['null', convert(schema.unwrap() as z.ZodType, scope)]
  if (schema instanceof z.ZodArray) return { type: 'array', items: convert(schema.element as z.ZodType, scope) }
  if (title !== undefined && schema instanceof z.ZodEnum)
    return scope.add({
      type: 'enum',
      name: qualified(scope, title),
      symbols: schema.options as string[],
      default: UNRECOGNISED,
    })
  if (title !== undefined && schema instanceof z.ZodObject)
    return scope.add({ type: 'record', name: qualified(scope, title), fields: fields(schema, scope) })
  throw new Error('a catalogue field has no Avro form')
}

/**
 * The schema with the definition of each named type in place of its first mention, as Avro wants it in one document.
 * Names in `known` stay references.
 * @throws ThreadlogError `schema_invalid` when a name is defined nowhere
 */
export function expand(schema: AvroSchema, named: ReadonlyMap<string, AvroNamed>, known = new Set<string>()): AvroSchema {
  if (typeof schema === 'string') {
    if (!schema.includes('.') || known.has(schema)) return schema
    const definition = named.get(schema)
    if (!definition) throw fatal('schema_invalid', `The Avro type ${schema} is not defined.`, { details: { name: schema } })
    return expand(definition, named, known)
  }
  if (Array.isArray(schema)) return schema.map((branch) => expand(branch, named, known))
  if (isNamed(schema)) known.add(fullName(schema))
  if (schema.type === 'array') return { ...schema, items: expand(schema.items, named, known) }
  if (schema.type !== 'record') return schema
  return { ...schema, fields: schema.fields.map((field) => ({ ...field, type: expand(field.type, named, known) })) }
}

/** Every named type defined within a schema, inner ones first. */
export function definitions(schema: AvroSchema, into = new Map<string, AvroNamed>()): Map<string, AvroNamed> {
  if (typeof schema === 'string') return into
  if (Array.isArray(schema)) for (const branch of schema) definitions(branch, into)
  else if (schema.type === 'array') definitions(schema.items, into)
  else if (schema.type === 'record') for (const field of schema.fields) definitions(field.type, into)
  if (isNamed(schema)) into.set(fullName(schema), schema)
  return into
}

/** Lower-case hex SHA-256 of the canonical JSON of a self-contained schema: defaults and logical types count, layout and docs do not. */
export const fingerprint = (schema: AvroSchema): string => sha256Hex(canonicalJson(undocumented(schema) as JsonValue))

function undocumented(schema: AvroSchema): AvroSchema {
  if (typeof schema === 'string') return schema
  if (Array.isArray(schema)) return schema.map(undocumented)
  if (schema.type === 'array') return { ...schema, items: undocumented(schema.items) }
  if (schema.type !== 'record') return schema
  return { ...schema, fields: schema.fields.map(({ doc: _, ...field }) => ({ ...field, type: undocumented(field.type) })) }
}
