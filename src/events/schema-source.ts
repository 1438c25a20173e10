import { readFileSync } from 'node:fs'
import { fatal } from '../base/index.ts'
import { type AvroNamed, type AvroRecord, type AvroSchema, definitions, expand, fileName } from './avro-schema.ts'

/** One schema an event or an edge message can be written with. */
export interface EventSchema {
  readonly id: number
  /** The event type, `run.started/1`, or the edge message, `result/1`. */
  readonly type: string
  /** The Avro record, self-contained; the first field of an event is `envelope`. */
  readonly avro: AvroRecord
}

/** Where schemas come from. Ids are never reused: what an id once meant it means forever. */
export interface SchemaSource {
  /** The id new records of `type` are written with; undefined when the source does not have the type. */
  id(type: string): number | undefined
  /** The schema behind an id; undefined when unknown, for example because a newer version wrote it. */
  schema(id: number): EventSchema | undefined
}

/** A line of `ids.json`. The last line of a type is the one in use; earlier ones stand in `archive/<id>.avsc`. */
export interface PinnedSchema {
  id: number
  type: string
  /** SHA-256 of the self-contained schema, see `fingerprint`. */
  fingerprint: string
}

/** `schemas/` of this package, seen from `src/events` and from `dist/events` alike. */
export const packagedSchemas = new URL('../../schemas/', import.meta.url)

/**
 * Schemas from files with pinned ids; no network. Files are read when first needed and kept.
 * @throws ThreadlogError `schema_invalid` from either method when a file is missing or not JSON
 */
export function fileSchemas(directory: URL = packagedSchemas): SchemaSource {
  const pins = once(() => readJson<{ schemas: PinnedSchema[] }>('ids.json', directory).schemas)
  const byId = once(() => new Map(pins().map((pin) => [pin.id, pin])))
  const current = once(() => new Map(pins().map((pin) => [pin.type, pin.id])))
  const shared = once(() => {
    const parts = [readJson<AvroSchema>('envelope.avsc', directory), ...readJson<AvroSchema[]>('common.avsc', directory)]
    const named = new Map<string, AvroNamed>()
    for (const part of parts) definitions(part, named)
    return named
  })
  return {
    id: (type) => current().get(type),
    schema(id) {
      const pin = byId().get(id)
      if (!pin) return undefined
      const file = current().get(pin.type) === id ? fileName(pin.type) : `archive/${id}.avsc`
      return { id, type: pin.type, avro: expand(readJson<AvroRecord>(file, directory), shared()) as AvroRecord }
    },
  }
}

/** Schemas held in memory, for tests and for sources that load everything beforehand. A later schema of a type replaces the earlier. */
export function memorySchemas(schemas: Iterable<EventSchema>): SchemaSource {
  const all = [...schemas]
  const byId = new Map(all.map((schema) => [schema.id, schema]))
  const current = new Map(all.map((schema) => [schema.type, schema.id]))
  return { id: (type) => current.get(type), schema: (id) => byId.get(id) }
}

function readJson<T>(file: string, directory: URL): T {
  try {
    return JSON.parse(readFileSync(new URL(file, directory), 'utf8')) as T
  } catch (cause) {
    throw fatal('schema_invalid', `The schema file ${file} cannot be read.`, {
      path: file,
      hint: 'Reinstall the package.',
      cause,
    })
  }
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => (made ??= { value: make() }).value
}
