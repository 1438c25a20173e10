import type { Type } from 'avsc'
import { fatal, reject, type ThreadlogError } from '../base/index.ts'
import { messageType } from './avro.ts'
import { type EdgeData, type EdgeType, edges } from './edges.ts'
import { fitOf } from './fit.ts'
import { fileSchemas, type SchemaSource } from './schema-source.ts'
import { bufferOf, FRAMING, writeFraming } from './wire.ts'

/** Edge messages to wire form and back: Confluent framing (0x00, 4-byte schema id, big endian) and an Avro body. */
export interface EdgeCodec {
  /**
   * Absent values may be null or undefined.
   * @throws ThreadlogError `event_invalid` with the path under `$`
   */
  encode<T extends EdgeType>(type: T, value: Partial<EdgeData<T>>): Uint8Array
  /**
   * Reads a message of one type, written with any schema of it that the source knows; fields this build does not know are left out.
   * Bytes of JSON are not looked at.
   * @throws ThreadlogError `message_undecodable`; `details.reason` is `framing`, `unknown-schema` or `body`
   */
  decode<T extends EdgeType>(type: T, bytes: Uint8Array): EdgeData<T>
}

interface Layout {
  readonly id: number
  readonly type: Type
}

/** A codec over a schema source; types are built once per schema, at first use. */
export function edgeCodec(source: SchemaSource): EdgeCodec {
  const ours = new Map<EdgeType, Layout>()
  const resolvers = new Map<number, ReturnType<Type['createResolver']>>()
  const fits = new Map<EdgeType, ReturnType<typeof fitOf>>()

  function layout(type: EdgeType): Layout {
    let found = ours.get(type)
    if (found) return found
    const id = source.id(type)
    const schema = id === undefined ? undefined : source.schema(id)
    if (!schema) throw fatal('schema_invalid', `There is no schema of ${type}.`, { hint: 'Reinstall the package.' })
    found = { id: schema.id, type: messageType(schema.avro) }
    ours.set(type, found)
    return found
  }

  /** Undefined for our own schema. @throws `message_undecodable` for ids that mean something else or nothing */
  function resolverOf(type: EdgeType, id: number): ReturnType<Type['createResolver']> | undefined {
    const { id: own, type: reader } = layout(type)
    if (id === own) return undefined
    const known = resolvers.get(id)
    if (known) return known
    const schema = source.schema(id)
    if (schema?.type !== type) throw undecodable('unknown-schema', `schema ${id} is none of ${type}`, id)
    try {
      const resolver = reader.createResolver(messageType(schema.avro))
      resolvers.set(id, resolver)
      return resolver
    } catch (cause) {
      throw fatal('schema_invalid', `Schema ${id} cannot be read as ${type}.`, { details: { schema_id: id }, cause })
    }
  }

  return {
    encode(type, value) {
      let fit = fits.get(type)
      if (!fit) fits.set(type, (fit = fitOf(edges[type])))
      const { id, type: writer } = layout(type)
      const body = writer.toBuffer(fit(value, '$'))
      const bytes = Buffer.alloc(FRAMING + body.length)
      writeFraming(bytes, id)
      bytes.set(body, FRAMING)
      return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length)
    },
    decode(type, bytes) {
      const record = bufferOf(bytes)
      if (record.length < FRAMING || record[0] !== 0) throw undecodable('framing', 'it does not begin with 0x00 and a schema id')
      const id = record.readUInt32BE(1)
      const resolver = resolverOf(type, id)
      return read(layout(type).type, record, resolver, id) as EdgeData<typeof type>
    },
  }
}

function read(type: Type, record: Buffer, resolver: ReturnType<Type['createResolver']> | undefined, id: number): unknown {
  let read: { value: unknown; offset: number }
  try {
    read = type.decode(record, FRAMING, resolver)
  } catch {
    // avsc's message may quote what it read.
    throw undecodable('body', 'the body does not follow its schema', id)
  }
  if (read.offset !== record.length) throw undecodable('body', 'the body does not end where the record ends', id)
  return read.value
}

const undecodable = (reason: 'framing' | 'unknown-schema' | 'body', why: string, schemaId?: number): ThreadlogError =>
  reject('message_undecodable', `The record is not a readable message: ${why}.`, {
    details: { reason, schema_id: schemaId ?? null },
  })

let packaged: EdgeCodec | undefined

/** The codec with the schemas of this package. */
export const packagedEdges = (): EdgeCodec => (packaged ??= edgeCodec(fileSchemas()))
