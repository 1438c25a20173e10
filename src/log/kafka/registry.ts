import { isThreadlogError, reject } from '../../base/index.ts'
import {
  type AvroRecord,
  type EventSchema,
  edgeCodec,
  fileSchemas,
  memorySchemas,
  type SchemaSource,
  sameSchema,
} from '../../events/index.ts'
import { LEVEL, RegistryClient, type RegistryConnection } from './registry-client.ts'

export type { RegistryConnection } from './registry-client.ts'

/** A schema of this package in a registry. */
export interface RegisteredSchema {
  type: string
  subject: string
  /** Its id in `schemas/ids.json`; that of the registry. */
  pinned: number
  id: number
}

/** A subject that is not as `registerSchemas` leaves it. */
export interface SchemaFinding {
  type: string
  subject: string
  /** `missing`: a schema is not there · `level`: another compatibility level · `newer`: the last version is not ours */
  problem: 'missing' | 'level' | 'newer'
  found: string
  expected: string
}

/** Full name of the record: the schemas are the same in every log, and a topic has several of them (RecordNameStrategy). */
export const subjectOf = ({ avro }: EventSchema): string => `${avro.namespace}.${avro.name}`

/**
 * Registers the schemas of events and edge messages, retired versions first. The level of a subject is set before its schemas.
 * @throws ThreadlogError `registry_unavailable` (retry) · `registry_invalid`, `registry_unauthorized` (reject) · `schema_incompatible` (fatal)
 */
export async function registerSchemas(connection: RegistryConnection): Promise<RegisteredSchema[]> {
  const client = new RegistryClient(connection)
  await client.subjects()
  const registered: RegisteredSchema[] = []
  const levels = new Set<string>()
  for (const schema of fileSchemas().all()) {
    const subject = subjectOf(schema)
    if (!levels.has(subject)) await client.setLevel(subject)
    levels.add(subject)
    registered.push({ type: schema.type, subject, pinned: schema.id, id: await client.register(subject, schema.avro) })
  }
  return registered
}

/** Compares a registry with the schemas of this package; changes nothing. @throws as {@link registerSchemas} */
export async function checkSchemas(
  connection: RegistryConnection,
): Promise<{ registered: RegisteredSchema[]; findings: SchemaFinding[] }> {
  const client = new RegistryClient(connection)
  const subjects = await client.subjects()
  const registered: RegisteredSchema[] = []
  const findings: SchemaFinding[] = []
  for (const [subject, schemas] of bySubject(fileSchemas().all())) {
    const { type } = schemas[0]!
    const versions = subjects.has(subject) ? await client.versions(subject) : []
    for (const schema of schemas) {
      const found = versions.find(({ avro }) => sameSchema(avro, schema.avro))
      if (found) registered.push({ type, subject, pinned: schema.id, id: found.id })
      else
        findings.push({
          type,
          subject,
          problem: 'missing',
          found: 'not registered',
          expected: `schema ${schema.id} of this package`,
        })
    }
    if (versions.length === 0) continue
    const last = versions.at(-1)!
    if (!schemas.some(({ avro }) => sameSchema(last.avro, avro)))
      findings.push({
        type,
        subject,
        problem: 'newer',
        found: `version ${last.version}, id ${last.id}`,
        expected: 'a schema of this package',
      })
    const level = (await client.level(subject)) ?? 'that of the registry'
    if (level !== LEVEL) findings.push({ type, subject, problem: 'level', found: level, expected: LEVEL })
  }
  return { registered, findings }
}

function bySubject(schemas: readonly EventSchema[]): Map<string, EventSchema[]> {
  const subjects = new Map<string, EventSchema[]>()
  for (const schema of schemas) {
    const subject = subjectOf(schema)
    subjects.set(subject, [...(subjects.get(subject) ?? []), schema])
  }
  return subjects
}

const RESULT = 'result/1'

/**
 * The schemas that results in Avro are written with, by the ids of a registry: every version under the record's name, and, for `topic`, under
 * the names that clients use by themselves. Asked once: what is known stays known whatever becomes of the registry, and another id is a
 * verdict. Ids pinned in this package mean nothing beside these: a registry may have given the same number to something else.
 * @param o.topic full name of the topic of results
 * @throws ThreadlogError as {@link registerSchemas}, and `schema_unregistered`
 */
export async function fetchResultSchemas(connection: RegistryConnection, o: { topic?: string } = {}): Promise<SchemaSource> {
  const client = new RegistryClient(connection)
  const files = fileSchemas()
  const ours = files.schema(files.id(RESULT)!)!
  const record = subjectOf(ours)
  const present = await client.subjects()
  const subjects = [record, ...(o.topic === undefined ? [] : [`${o.topic}-value`, `${o.topic}-${record}`])]
  const found = new Map<number, EventSchema>()
  let own: EventSchema | undefined
  for (const subject of subjects.filter((name) => present.has(name)))
    for (const { id, avro } of await client.versions(subject)) {
      if (sameSchema(avro, ours.avro)) own ??= { ...ours, id }
      else if (isRecord(avro) && `${avro.namespace}.${avro.name}` === record) found.set(id, { id, type: RESULT, avro })
    }
  if (!own)
    throw reject('schema_unregistered', 'The registry does not have the schema of results.', {
      path: record,
      hint: 'Run `threadlog schemas register`.',
    })
  found.delete(own.id)
  const readable = [...found.values()].filter((schema) => isReadable(memorySchemas([schema, own]), schema.id))
  return memorySchemas([...readable, own])
}

function isRecord(avro: unknown): avro is AvroRecord {
  const { type, name, namespace, fields } = (avro ?? {}) as Partial<AvroRecord>
  return type === 'record' && typeof name === 'string' && typeof namespace === 'string' && Array.isArray(fields)
}

/** False for a writer schema that ours cannot read: its results get a verdict like those of an unknown one. */
function isReadable(source: SchemaSource, id: number): boolean {
  const empty = Buffer.alloc(5)
  empty.writeUInt32BE(id, 1)
  try {
    edgeCodec(source).decode(RESULT, empty)
  } catch (error) {
    // Of an empty body nobody can make a message; that it was looked at is the answer.
    return isThreadlogError(error, 'message_undecodable')
  }
  return true
}
