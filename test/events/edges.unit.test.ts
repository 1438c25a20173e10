import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isThreadlogError, Payload } from '../../src/base/index.ts'
import type { AvroField, AvroRecord, AvroSchema } from '../../src/events/avro-schema.ts'
import { edgeCodec, fileSchemas, memorySchemas, packagedEdges } from '../../src/events/index.ts'
import { vanilla } from '../support/avro-vanilla.ts'

const source = fileSchemas()
const ours = source.schema(source.id('result/1')!)!
const codec = packagedEdges()
const message = { provider: 'payouts', external_id: 'job-1', result: Payload.of({ reference: 'é' }) }
const bytes = codec.encode('result/1', message)
const framed = (id: number, body: Uint8Array) => Buffer.concat([Buffer.from([0, 0, 0, id >> 8, id & 0xff]), body])
const reason = (act: () => unknown): unknown => {
  try {
    act()
  } catch (error) {
    if (isThreadlogError(error, 'message_undecodable')) return error.details['reason']
    throw error
  }
  return 'decoded'
}

describe('wire form', () => {
  test('0x00, schema id, fields in their order; absent is the first branch', () => {
    const id = ours.id.toString(16).padStart(8, '0')
    const texts = ['0e', 'payouts', '02', '0a', 'job-1'].map((part) =>
      /^[0-9a-f]{2}$/.test(part) ? part : Buffer.from(part).toString('hex'),
    )
    const result = `0224${Buffer.from('{"reference":"é"}').toString('hex')}`
    expect(Buffer.from(bytes).toString('hex')).toBe(`00${id}00${texts.join('')}00000000${result}00`)
  })

  test('a decoded message is made of plain objects', () => {
    const failed = codec.encode('result/1', { provider: 'p', continuation_id: 'c', failure: { code: 'x', retryable: true } })
    const absent = { application_id: null, external_id: null, result_id: null, schema_id: null, proposal_digest: null }
    expect(codec.decode('result/1', failed)).toStrictEqual({
      ...absent,
      ...{ provider: 'p', continuation_id: 'c', result: null, failure: { code: 'x', retryable: true } },
    })
  })

  test('what does not fit its declaration is refused with the place, not with what stood there', () => {
    for (const [value, path] of [
      [{}, '$.provider'],
      [{ provider: 'p', external_id: 'secret\ud800' }, '$.external_id'],
      [{ provider: 'p', result: 'secret' as never }, '$.result'],
      [{ provider: 'p', failure: { code: 'x' } as never }, '$.failure.retryable'],
    ] as const)
      expect(() => codec.encode('result/1', value)).toThrow(
        expect.objectContaining({ code: 'event_invalid', path, message: expect.not.stringContaining('secret') }),
      )
  })
})

describe('bytes that are no message', () => {
  const body = bytes.subarray(5)
  const withText = (text: Buffer) => framed(ours.id, Buffer.concat([Buffer.from([0, text.length * 2]), text, Buffer.alloc(7)]))

  test.each<[string, Uint8Array, string]>([
    ['nothing', new Uint8Array(), 'framing'],
    ['only a part of the framing', new Uint8Array([0, 0, 0, 0]), 'framing'],
    ['JSON', Buffer.from('{"provider":"p"}'), 'framing'],
    ['an id nobody has', framed(60_000, body), 'unknown-schema'],
    ['the id of an event', framed(source.id('run.started/1')!, body), 'unknown-schema'],
    ['no body', framed(ours.id, new Uint8Array()), 'body'],
    ['a byte too many', framed(ours.id, Buffer.concat([body, Buffer.from([0])])), 'body'],
    ['an unknown branch', framed(ours.id, Buffer.concat([Buffer.from([4]), body.subarray(1)])), 'body'],
    ['a text of negative length', framed(ours.id, Buffer.concat([Buffer.from([0, 1]), Buffer.alloc(8)])), 'body'],
    ['a text longer than all', framed(ours.id, Buffer.from([0, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x61])), 'body'],
    ['a text that is not UTF-8', withText(Buffer.from([0x70, 0xff])), 'body'],
    ['a surrogate in UTF-8', withText(Buffer.from([0xed, 0xa0, 0x80])), 'body'],
    ['a value of no bytes', framed(ours.id, Buffer.concat([Buffer.from([0, 2, 0x70, 0, 0, 0, 0, 0, 2, 0, 0])])), 'body'],
  ])('%s', (_, record, expected) => expect(reason(() => codec.decode('result/1', record))).toBe(expected))

  test('random ones, cut ones, and ones with flipped bits are decoded or refused', () => {
    const seen = new Set<unknown>()
    const attempt = (record: Uint8Array) => void seen.add(reason(() => codec.decode('result/1', record)))
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 120 }), fc.nat(), fc.nat(), (noise, cut, flip) => {
        attempt(framed(ours.id, noise))
        attempt(bytes.subarray(0, cut % bytes.length))
        const broken = Uint8Array.from(bytes)
        broken[(flip >> 3) % broken.length]! ^= 1 << (flip & 7)
        attempt(broken)
      }),
      { numRuns: 1000 },
    )
    expect([...seen].sort()).toEqual(['body', 'decoded', 'framing', 'unknown-schema'])
  })
})

describe('a message written with another schema of its type', () => {
  const OTHER = 900
  const optional = (name: string, type: AvroSchema): AvroField => ({ name, type: ['null', type], default: null })
  const reader = (avro: AvroRecord) => edgeCodec(memorySchemas([{ id: OTHER, type: 'result/1', avro }, ours]))
  const value = { application_id: null, provider: 'p', external_id: 'e', continuation_id: null, result_id: null }
  const more = { schema_id: null, proposal_digest: null, result: Buffer.from('[1]'), failure: null }
  const expected = { ...value, ...more, result: Payload.of([1]) }
  const read = (avro: AvroRecord, written: object) =>
    reader(avro).decode('result/1', framed(OTHER, vanilla(avro).toBuffer(written)))

  test.each<[string, AvroField, unknown]>([
    ['a text', optional('note', 'string'), 'x'],
    ['nothing in it', optional('note', 'string'), null],
    ['bytes', optional('raw', 'bytes'), Buffer.from([1, 2])],
    ['a list', optional('tags', { type: 'array', items: 'string' }), ['a', '\u0000', '']],
    [
      'a list in a record',
      { name: 'more', type: { type: 'record', name: 'More', fields: [{ name: 'l', type: { type: 'array', items: 'long' } }] } },
      { l: [0, 300] },
    ],
  ])('that has a further field at the end or in front: %s', (_, field, content) => {
    const { fields } = ours.avro
    for (const list of [
      [...fields, field],
      [field, ...fields],
    ]) {
      const found = read({ ...ours.avro, fields: list }, { ...value, ...more, [field.name]: content })
      expect({ ...found, result: found.result?.value }).toStrictEqual({ ...expected, result: [1] })
    }
  })

  test('that had fewer optional fields: they are absent', () => {
    const fields = ours.avro.fields.filter(({ name }) => name !== 'proposal_digest' && name !== 'application_id')
    const { application_id: _, ...less } = value
    const { proposal_digest: __, ...rest } = more
    expect(read({ ...ours.avro, fields }, { ...less, ...rest })).toMatchObject({
      application_id: null,
      proposal_digest: null,
      provider: 'p',
    })
  })

  test('broken UTF-8 and hostile lengths are refused through the resolver as well', () => {
    const codec = reader({ ...ours.avro, fields: [...ours.avro.fields, optional('tags', { type: 'array', items: 'string' })] })
    for (const body of [
      [0, 4, 0x70, 0xff, 0, 0, 0, 0, 0, 0, 0, 0],
      [0, 2, 0x70, 0, 0, 0, 0, 0, 0, 0, 2, 0xfe, 0xff, 0xff, 0xff, 0x0f],
    ])
      expect(reason(() => codec.decode('result/1', framed(OTHER, Buffer.from(body))))).toBe('body')
  })

  test('that cannot be read as ours stops with its id', () => {
    const avro = { ...ours.avro, fields: ours.avro.fields.filter(({ name }) => name !== 'provider') }
    expect(() => reader(avro).decode('result/1', framed(OTHER, Buffer.alloc(8)))).toThrow(
      expect.objectContaining({ code: 'schema_invalid', disposition: 'fatal', details: { schema_id: OTHER } }),
    )
  })
})

test('a source without the message is a broken installation', () => {
  const empty = edgeCodec(memorySchemas([]))
  expect(() => empty.decode('result/1', bytes)).toThrow(expect.objectContaining({ code: 'schema_invalid' }))
})
