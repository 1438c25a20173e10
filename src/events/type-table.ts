import type { Type } from 'avsc'
import { fatal } from '../base/index.ts'
import { bodyTypes } from './avro.ts'
import { catalogue, type Declarations } from './catalogue.ts'
import { fitOf } from './fit.ts'
import { eventReader, type ReadEvent } from './reader.ts'
import type { SchemaSource } from './schema-source.ts'
import { upcasters as packagedUpcasters, type Upcast, type Upcasters, upcastOf } from './upcast.ts'

type Resolver = ReturnType<Type['createResolver']>

interface Layout {
  readonly id: number
  readonly body: Type
  readonly envelope: Type
}

/** How events of one type are written now. */
export interface Writer extends Layout {
  readonly fit: ReturnType<typeof fitOf>
}

/** How events written with one schema are read: this build's types; resolvers translate what another schema wrote. */
export interface Reader {
  readonly type: string
  readonly body: Type
  readonly envelope: Type
  readonly bodyResolver?: Resolver
  /** Reads what this build wrote several times faster than `body`. */
  readonly quick?: ReadEvent
  readonly envelopeResolver?: Resolver
  /** Of a retired type: the way to its successor. */
  readonly upcast?: Upcast
}

/** What a build writes and what it reads besides. */
export interface TypeOptions {
  /** The types that can be written. Default: the catalogue. */
  declarations?: Declarations
  /** The retired types that can still be read. Default: those of this package. */
  upcasters?: Upcasters
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

export function typeTable(source: SchemaSource, options: TypeOptions = {}): TypeTable {
  const declarations: Declarations = options.declarations ?? catalogue
  const { upcasters = packagedUpcasters } = options
  const writers = new Map<string, Writer>()
  const layouts = new Map<string, Layout>()
  const readers = new Map<number, Reader>()
  const envelopes = new Map<string, Type>()

  /** This build's own types of an event type, retired ones included. */
  function makeLayout(type: string): Layout | undefined {
    if (!Object.hasOwn(declarations, type) && !Object.hasOwn(upcasters, type)) return undefined
    const id = source.id(type)
    const schema = id === undefined ? undefined : source.schema(id)
    return schema && { id: schema.id, ...bodyTypes(schema.avro, envelopes) }
  }
  const layout = (type: string) => kept(layouts, type, makeLayout)

  function makeWriter(type: string): Writer | undefined {
    const declared = Object.hasOwn(declarations, type) ? declarations[type] : undefined
    const own = declared && layout(type)
    return own && { ...own, fit: fitOf(declared) }
  }

  function makeReader(id: number): Reader | undefined {
    const schema = source.schema(id)
    const ours = schema && layout(schema.type)
    if (!ours) return undefined
    const { body, envelope } = ours
    const { type } = schema
    const upcast = upcastOf(type, upcasters, declarations)
    const reader = { type, body, envelope, ...(upcast ? { upcast } : {}) }
    if (ours.id === id) return { ...reader, quick: eventReader(body) }
    const theirs = bodyTypes(schema.avro)
    try {
      const bodyResolver = body.createResolver(theirs.body)
      return { ...reader, bodyResolver, envelopeResolver: envelope.createResolver(theirs.envelope) }
    } catch (cause) {
      throw fatal('schema_invalid', `Schema ${id} cannot be read as ${type}.`, { details: { schema_id: id }, cause })
    }
  }

  const table: TypeTable = {
    writer: (type) => kept(writers, type, makeWriter),
    reader: (id) => kept(readers, id, makeReader),
    anyWriter() {
      for (const type of Object.keys(declarations)) {
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
