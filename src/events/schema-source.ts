import { readFileSync } from 'node:fs'
import { fatal, isThreadlogError } from '../base/index.ts'
import { type AvroNamed, type AvroRecord, type AvroSchema, definitions, expand, fileName, fingerprint } from './avro-schema.ts'

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

/** Schemas that can be listed. */
export interface FileSchemas extends SchemaSource {
  /** Every pinned schema in the order of ids, so that of each type the one in use comes last. */
  all(): EventSchema[]
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
 * @throws ThreadlogError `schema_invalid` from either method when a file is missing, not JSON, or not the schema that was pinned: what
 *   is written with another schema nobody else can read
 */
export function fileSchemas(directory: URL = packagedSchemas): FileSchemas {
  const pins = once(() => checkedPins(readJson('ids.json', directory)))
  const byId = once(() => new Map(pins().map((pin) => [pin.id, pin])))
  const current = once(() => new Map(pins().map((pin) => [pin.type, pin.id])))
  const shared = once(() => {
    const named = new Map<string, AvroNamed>()
    for (const file of ['envelope.avsc', 'common.avsc'])
      for (const part of [readJson<AvroSchema | AvroSchema[]>(file, directory)].flat())
        whole(file, () => definitions(part, named))
    return named
  })
  const source: FileSchemas = {
    id: (type) => current().get(type),
    all: () => [...byId().keys()].sort((a, b) => a - b).map((id) => source.schema(id) as EventSchema),
    schema(id) {
      const pin = byId().get(id)
      if (!pin) return undefined
      const file = current().get(pin.type) === id ? fileName(pin.type) : `archive/${id}.avsc`
      const avro = whole(file, () => expand(readJson<AvroRecord>(file, directory), shared()) as AvroRecord)
      if (whole(file, () => fingerprint(avro)) !== pin.fingerprint) throw unusable(file, 'is not the one that was pinned')
      return { id, type: pin.type, avro }
    },
  }
  return source
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
    throw unusable(file, 'cannot be read', cause)
  }
}

/** Runs `read`; what a file of another form makes it stumble over is the file's fault. */
function whole<T>(file: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw isThreadlogError(cause) ? cause : unusable(file, 'is no schema', cause)
  }
}

/** Four bytes of a record hold it. */
const isSchemaId = (id: number): boolean => id >= 0 && id <= 0xffff_ffff

function checkedPins(value: unknown): PinnedSchema[] {
  const { schemas } = (value ?? {}) as { schemas?: PinnedSchema[] }
  const isPin = ({ id, type, fingerprint }: Partial<PinnedSchema>) =>
    Number.isInteger(id) && isSchemaId(id as number) && typeof type === 'string' && typeof fingerprint === 'string'
  const holds = Array.isArray(schemas) && schemas.every((pin) => typeof pin === 'object' && pin !== null && isPin(pin))
  if (holds && new Set(schemas.map(({ id }) => id)).size === schemas.length) return schemas
  throw unusable('ids.json', 'does not pin schemas, each by an id of its own')
}

const unusable = (file: string, why: string, cause?: unknown) =>
  fatal('schema_invalid', `The schema file ${file} ${why}.`, { path: file, hint: 'Reinstall the package.', cause })

function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => (made ??= { value: make() }).value
}
