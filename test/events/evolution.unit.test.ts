import { describe, expect, test } from 'vitest'
import { Payload } from '../../src/base/index.ts'
import type { AvroRecord, AvroSchema } from '../../src/events/avro-schema.ts'
import { decodeEvent, type EventDraft, eventCodec, fileSchemas, memorySchemas } from '../../src/events/index.ts'
import { plain } from '../support/event-arbitraries.ts'
import { goldenMeta as meta, sample } from '../support/golden-events.ts'

// Two builds on one log: `other` writes with a schema this build did not write, `ours` has both and reads with its own.

const packaged = fileSchemas()
const schemaOf = (type: string) => packaged.schema(packaged.id(type)!)!
const OTHER = 900

/** Changes every mention of a schema node for which `change` answers. */
function rewrite(schema: AvroSchema, change: (schema: AvroSchema) => AvroSchema | undefined): AvroSchema {
  const changed = change(schema) ?? schema
  if (typeof changed === 'string') return changed
  if (Array.isArray(changed)) return changed.map((branch) => rewrite(branch, change))
  if (changed.type === 'array') return { ...changed, items: rewrite(changed.items, change) }
  if (changed.type !== 'record') return changed
  return { ...changed, fields: changed.fields.map((field) => ({ ...field, type: rewrite(field.type, change) })) }
}

/** Bytes of `draft` as a build with `theirs` in place of our schema writes them, read by a build that knows both. */
function exchange(type: string, draft: unknown, reading: AvroSchema, writing: AvroSchema) {
  const writer = eventCodec(memorySchemas([{ id: OTHER, type, avro: writing as AvroRecord }]))
  const reader = eventCodec(
    memorySchemas([
      { id: OTHER, type, avro: writing as AvroRecord },
      { id: 1, type, avro: reading as AvroRecord },
    ]),
  )
  const record = writer.encodeCommit(meta, [draft as EventDraft]).records[0]!
  return { record, event: reader.decodeEvent(record.bytes), envelope: reader.decodeEnvelope(record.bytes), reader }
}

const without =
  (name: string) =>
  (schema: AvroSchema): AvroSchema | undefined =>
    typeof schema === 'object' && !Array.isArray(schema) && schema.type === 'record'
      ? { ...schema, fields: schema.fields.filter((field) => field.name !== name) }
      : undefined

describe('an event written before an optional field existed', () => {
  test.each(['run.requested/1', 'tool.settled/1', 'continuation.suspended/1'] as const)('%s: the field is null', (type) => {
    const { avro } = schemaOf(type)
    const optional = avro.fields.filter((field) => field.default === null).map((field) => field.name)
    expect(optional.length).toBeGreaterThan(0)
    const older = optional.reduce<AvroSchema>((schema, name) => without(name)(schema) ?? schema, avro)
    const { event, record } = exchange(type, sample(type), avro, older)
    expect(event.hash).toBe(record.hash)
    for (const name of optional) expect((event.data as Record<string, unknown>)[name]).toBeNull()
    expect({ ...(plain(event.data) as object) }).toEqual({
      ...(plain(record.event.data) as object),
      ...Object.fromEntries(optional.map((name) => [name, null])),
    })
  })

  test('inside the envelope and inside the items of a list', () => {
    const type = 'run.suspended/1'
    const { avro } = schemaOf(type)
    const older = rewrite(avro, (schema) => without('deadline')(without('attempt')(schema) ?? schema))
    const { event, envelope } = exchange(type, sample(type), avro, older)
    expect(event.attempt).toBeNull()
    const { data, ...rest } = event
    expect(envelope).toStrictEqual(rest)
    expect((data as EventDraft<'run.suspended/1'>['data']).batch.map((item) => item.deadline)).toEqual([null, null])
  })
})

// avsc passes over a field the reader lacks by its underlying type; ours for lists has items without bytes, so it stopped at a zero within.
test('an event written with a further optional list is read without it', () => {
  const type = 'continuation.armed/1'
  const { avro } = schemaOf(type)
  const newer = {
    ...avro,
    fields: [...avro.fields, { name: 'tags', type: ['null', { type: 'array', items: 'string' }], default: null }],
  }
  const bytes = eventCodec(memorySchemas([{ id: 1, type, avro }])).encodeCommit(meta, [sample(type) as EventDraft]).records[0]!
    .bytes
  const written = Buffer.concat([bytes, Buffer.from([2, 4, 2, 0, 2, 0x61, 0])])
  written.writeUInt32BE(OTHER, 1)
  const reader = eventCodec(
    memorySchemas([
      { id: OTHER, type, avro: newer as AvroRecord },
      { id: 1, type, avro },
    ]),
  )
  expect(reader.decodeEvent(written).data).toEqual(sample(type).data)
})

describe('an enum grew', () => {
  const type = 'request.composed/1'
  const draft = { type, data: { step: 1, message: Payload.of({}), state: 'interrupted' } }

  test('symbols keep their meaning by name; one this build does not know reads as unrecognised', () => {
    const { avro } = schemaOf(type)
    const symbols = (...list: string[]) =>
      rewrite(avro, (schema) =>
        typeof schema === 'object' && !Array.isArray(schema) && schema.type === 'enum' && schema.name.endsWith('RequestState')
          ? { ...schema, symbols: list }
          : undefined,
      )
    const moved = exchange(type, draft, avro, symbols('withdrawn', 'interrupted', 'complete', 'unrecognised'))
    expect(moved.event.data).toMatchObject({ state: 'interrupted' })
    const unknown = exchange(type, draft, symbols('complete', 'unrecognised'), symbols('complete', 'interrupted', 'unrecognised'))
    expect(unknown.event.data).toMatchObject({ state: 'unrecognised' })
  })
})

test('a schema that cannot be read as ours stops with its id, at first sight', () => {
  const type = 'continuation.armed/1'
  const { avro } = schemaOf(type)
  const older = without('revision')(avro) as AvroSchema
  expect(() => exchange(type, sample(type), avro, older)).toThrow(
    expect.objectContaining({ code: 'schema_invalid', disposition: 'fatal', details: { schema_id: OTHER } }),
  )
})

test('hostile lengths are refused through a resolver as well', () => {
  const type = 'run.suspended/1'
  const { avro } = schemaOf(type)
  const older = rewrite(avro, without('deadline'))
  const { record, reader } = exchange(type, { type, data: { run_id: 'r', batch: [] } }, avro, older)
  const hostile = Uint8Array.from([...record.bytes.subarray(0, -1), 0x80, 0x80, 0x80, 0x80, 0x80, 0x40])
  expect(() => reader.decodeEvent(hostile)).toThrow(expect.objectContaining({ code: 'event_undecodable' }))
})

test('two codecs with the same schemas agree', () => {
  const [record] = eventCodec(fileSchemas()).encodeCommit(meta, [sample('run.started/1')]).records
  expect(decodeEvent(record!.bytes)).toStrictEqual(record!.event)
})
