import { readdirSync, readFileSync } from 'node:fs'
import avsc from 'avsc'
import { describe, expect, test } from 'vitest'
import { nextPins, schemaFiles } from '../../scripts/schemas.ts'
import { avroCatalogue, definitions, expand, fileName, fingerprint, recordName } from '../../src/events/avro-schema.ts'
import { eventCodec, eventTypes, fileSchemas, memorySchemas, packagedSchemas } from '../../src/events/index.ts'
import type { PinnedSchema } from '../../src/events/schema-source.ts'

const read = (name: string): string => readFileSync(new URL(name, packagedSchemas), 'utf8')
const pins = (JSON.parse(read('ids.json')) as { schemas: PinnedSchema[] }).schemas
const source = fileSchemas()
const current = (type: string) => source.schema(source.id(type) as number)!

describe('schemas/ follows from the catalogue', () => {
  test.each([...schemaFiles(avroCatalogue())])('%s', (name, content) => {
    expect(read(name), 'run node scripts/schemas.ts').toBe(content)
  })

  test('no event file without an event type', () => {
    const files = readdirSync(packagedSchemas).filter((name) => /-\d+\.avsc$/.test(name))
    expect(files.sort()).toEqual(eventTypes.map(fileName).sort())
  })

  test('record names are distinct', () => {
    expect(recordName('continuation.completed/1')).toBe('ContinuationCompleted1')
    expect(recordName('run.cancel-requested/12')).toBe('RunCancelRequested12')
    expect(new Set(eventTypes.map(recordName)).size).toBe(eventTypes.length)
  })
})

describe('pinned ids', () => {
  test('count from 1 and are never used twice', () => {
    expect(pins.map((pin) => pin.id).sort((a, b) => a - b)).toEqual(pins.map((_, i) => i + 1))
  })

  test.each(pins)('$id means $type as it did when it was pinned', ({ id, type, fingerprint: pinned }) => {
    const schema = source.schema(id)!
    expect(schema.type).toBe(type)
    expect(fingerprint(schema.avro), 'a changed schema needs a new id: node scripts/schemas.ts --evolve').toBe(pinned)
  })

  test('every event type has one', () => {
    const { added, changed } = nextPins(avroCatalogue(), pins)
    expect({ added, changed }).toEqual({ added: [], changed: [] })
  })

  test('a changed schema is noticed, and a new type gets the next free id', () => {
    const { events, named } = avroCatalogue()
    const first = eventTypes[0]!
    const widened = {
      ...events.get(first)!,
      fields: [...events.get(first)!.fields, { name: 'extra', type: ['null', 'string'], default: null }],
    }
    const { changed } = nextPins({ events: new Map([[first, widened]]), named } as never, pins)
    expect(changed.map(({ pin }) => pin.type)).toEqual([first])
    const { added } = nextPins({ events: new Map([['thread.vanished/1', widened]]), named } as never, pins)
    expect(added[0]).toMatchObject({ id: pins.length + 1, type: 'thread.vanished/1' })
  })
})

describe('every schema', () => {
  test.each(eventTypes)('%s is sound Avro, self-contained, envelope first', (type) => {
    const { avro } = current(type)
    const vanilla = avsc.Type.forSchema(avro as never, { wrapUnions: 'never' })
    expect(vanilla.name).toBe(`threadlog.events.${recordName(type)}`)
    expect(avro.fields[0]!.name).toBe('envelope')
    for (const schema of definitions(avro).values()) {
      if (schema.type === 'enum') expect(schema.default, schema.name).toBe('unrecognised')
      if (schema.type === 'record')
        for (const field of schema.fields) expect(Array.isArray(field.type), field.name).toBe(field.default === null)
    }
  })

  test('older ones can be read as the current one', () => {
    // Resolvers are built when a schema is first met: here all of them are.
    const codec = eventCodec(source)
    for (const { id } of pins) expect(() => codec.decodeEvent(Uint8Array.from([0, 0, 0, id >> 8, id]))).toThrow('the body')
  })
})

describe('schema sources', () => {
  test('unknown ids and types are absent, not errors', () => {
    expect(source.schema(0)).toBeUndefined()
    expect(source.id('thread.vanished/1')).toBeUndefined()
    expect(memorySchemas([]).id('thread.opened/1')).toBeUndefined()
  })

  test('a missing file is named', () => {
    const broken = fileSchemas(new URL('nowhere/', packagedSchemas))
    expect(() => broken.id('thread.opened/1')).toThrow(expect.objectContaining({ code: 'schema_invalid', path: 'ids.json' }))
  })

  test('an undefined name is named', () => {
    expect(() => expand('threadlog.events.Ghost', new Map())).toThrow(expect.objectContaining({ code: 'schema_invalid' }))
  })
})
