import { readdirSync, readFileSync } from 'node:fs'
import avsc from 'avsc'
import { describe, expect, test } from 'vitest'
import { nextPins, schemaFiles } from '../../scripts/schemas.ts'
import {
  type AvroField,
  avroCatalogue,
  definitions,
  expand,
  fileName,
  fingerprint,
  recordName,
} from '../../src/events/avro-schema.ts'
import {
  type EdgeType,
  edgeCodec,
  edges,
  eventCodec,
  eventTypes,
  fileSchemas,
  memorySchemas,
  packagedSchemas,
  upcasters,
} from '../../src/events/index.ts'
import type { PinnedSchema } from '../../src/events/schema-source.ts'

const read = (name: string): string => readFileSync(new URL(name, packagedSchemas), 'utf8')
const pins = (JSON.parse(read('ids.json')) as { schemas: PinnedSchema[] }).schemas
const source = fileSchemas()
const edgeTypes = Object.keys(edges) as EdgeType[]
/** Types this build writes, and types it only reads. */
const written = [...eventTypes, ...Object.keys(upcasters)]
const current = (type: string) => source.schema(source.id(type) as number)!

describe('schemas/ follows from the catalogue', () => {
  test.each([...schemaFiles(avroCatalogue())])('%s', (name, content) => {
    expect(read(name), 'run node scripts/schemas.ts').toBe(content)
  })

  test('no file without a type', () => {
    const files = readdirSync(packagedSchemas).filter((name) => /-\d+\.avsc$/.test(name))
    expect(files.sort()).toEqual([...written, ...edgeTypes].map(fileName).sort())
  })

  test.each(edgeTypes)('%s is written in one file, which other programs can take as it is', (type) => {
    const alone = JSON.parse(read(fileName(type)))
    expect(() => avsc.Type.forSchema(alone)).not.toThrow()
    expect(fingerprint(alone)).toBe(fingerprint(current(type).avro))
  })

  test('record names are distinct', () => {
    expect(recordName('continuation.completed/1')).toBe('ContinuationCompleted1')
    expect(recordName('run.cancel-requested/12')).toBe('RunCancelRequested12')
    expect(new Set(written.map(recordName)).size).toBe(written.length)
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

  test('every type has one', () => {
    const { added, changed } = nextPins(avroCatalogue(), pins)
    expect({ added, changed }).toEqual({ added: [], changed: [] })
  })

  test('a changed schema is noticed, and a new type gets the next free id', () => {
    const { events, named } = avroCatalogue()
    const first = eventTypes[0]!
    const widened = {
      ...events.get(first)!,
      fields: [...events.get(first)!.fields, { name: 'extra', type: ['null', 'string'], default: null }] as AvroField[],
    }
    const { changed } = nextPins({ events: new Map([[first, widened]]), edges: new Map(), named }, pins)
    expect(changed.map(({ pin }) => pin.type)).toEqual([first])
    const { added } = nextPins({ events: new Map([['thread.vanished/1', widened]]), edges: new Map(), named }, pins)
    expect(added[0]).toMatchObject({ id: pins.length + 1, type: 'thread.vanished/1' })
  })
})

describe('every schema', () => {
  test.each(written)('%s is sound Avro, self-contained, envelope first', (type) => {
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
    const [events, messages] = [eventCodec(source), edgeCodec(source)]
    for (const { id, type } of pins) {
      const cut = Uint8Array.from([0, 0, 0, id >> 8, id])
      const decode = () => (type in edges ? messages.decode(type as EdgeType, cut) : events.decodeEvent(cut))
      expect(decode, type).toThrow('the body')
    }
  })

  test('of an event is none of a message, and the other way round', () => {
    const id = (type: string) => source.id(type) as number
    const [event, message] = [id('run.started/1'), id('result/1')].map((n) => Uint8Array.from([0, 0, 0, n >> 8, n, 0, 0]))
    const unknown = expect.objectContaining({ details: expect.objectContaining({ reason: 'unknown-schema' }) })
    expect(() => edgeCodec(source).decode('result/1', event!)).toThrow(unknown)
    expect(() => eventCodec(source).decodeEvent(message!)).toThrow(unknown)
  })

  test('means the same whatever is written about it, and says what its fields are for', () => {
    const { avro } = current('result/1')
    expect(avro.fields.map((field) => field.doc)).toEqual(avro.fields.map(() => expect.stringMatching(/\.$/)))
    const silent = { ...avro, fields: avro.fields.map(({ doc: _, ...field }) => field) }
    expect(fingerprint(silent)).toBe(fingerprint(avro))
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
