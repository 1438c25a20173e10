import type { Type } from 'avsc'
import { fatal } from '../base/index.ts'
import { bodyTypes } from './avro.ts'
import { catalogue, type EventType, eventTypes } from './catalogue.ts'
import { fitOf } from './fit.ts'
import type { SchemaSource } from './schema-source.ts'

type Resolver = ReturnType<Type['createResolver']>

/** How events of one type are written now. */
export interface Writer {
  readonly id: number
  readonly body: Type
  readonly envelope: Type
  readonly fit: ReturnType<typeof fitOf>
}

/** How events written with one schema are read: this build's types; resolvers translate what another schema wrote. */
export interface Reader {
  readonly type: string
  readonly body: Type
  readonly envelope: Type
  readonly bodyResolver?: Resolver
  readonly envelopeResolver?: Resolver
}

/** The Avro types of a schema source, each built once, at first use. */
export interface TypeTable {
  /** Undefined for types outside the catalogue or the source. */
  writer(type: string): Writer | undefined
  /**
   * Undefined for ids the source does not know.
   * @throws ThreadlogError `schema_invalid` when the schema cannot be read as ours
   */
  reader(id: number): Reader | undefined
  /** Some writer: all of them carry this build's envelope. */
  anyWriter(): Writer | undefined
}

export function typeTable(source: SchemaSource): TypeTable {
  const writers = new Map<string, Writer>()
  const readers = new Map<number, Reader>()
  const envelopes = new Map<string, Type>()

  function makeWriter(type: string): Writer | undefined {
    const id = Object.hasOwn(catalogue, type) ? source.id(type) : undefined
    const schema = id === undefined ? undefined : source.schema(id)
    if (!schema) return undefined
    return { id: schema.id, ...bodyTypes(schema.avro, envelopes), fit: fitOf(catalogue[type as EventType]) }
  }

  function makeReader(id: number): Reader | undefined {
    const schema = source.schema(id)
    const ours = schema && table.writer(schema.type)
    if (!ours) return undefined
    const { body, envelope } = ours
    if (ours.id === id) return { type: schema.type, body, envelope }
    const theirs = bodyTypes(schema.avro)
    try {
      const bodyResolver = body.createResolver(theirs.body)
      return { type: schema.type, body, envelope, bodyResolver, envelopeResolver: envelope.createResolver(theirs.envelope) }
    } catch (cause) {
      throw fatal('schema_invalid', `Schema ${id} cannot be read as ${schema.type}.`, { details: { schema_id: id }, cause })
    }
  }

  const table: TypeTable = {
    writer: (type) => kept(writers, type, makeWriter),
    reader: (id) => kept(readers, id, makeReader),
    anyWriter() {
      for (const type of eventTypes) {
        const writer = table.writer(type)
        if (writer) return writer
      }
      return undefined
    },
  }
  return table
}

/** Keeps only what exists: ids and types in hostile records must not fill the maps. */
function kept<K, V>(map: Map<K, V>, key: K, make: (key: K) => V | undefined): V | undefined {
  let value = map.get(key)
  if (value === undefined && (value = make(key)) !== undefined) map.set(key, value)
  return value
}
