import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { canonicalJson, type JsonValue, Payload } from '../../src/base/index.ts'
import { encodeResult, outcomeDigest, type Parsed, parseResult, type ResultRecord } from '../../src/continuations/index.ts'
import { edgeCodec, fileSchemas, memorySchemas, packagedEdges } from '../../src/events/index.ts'
import { IntakeRig } from '../engine/intake-rig.ts'
import { vanilla } from '../support/avro-vanilla.ts'
import { jsonValues } from '../support/event-arbitraries.ts'

const source = fileSchemas()
const ID = source.id('result/1')!
const good = { provider: 'payouts', continuation_id: 'c-1', result: { reference: 'é😀', n: [1.5, -3, {}] } }
const refusalOf = (parsed: Parsed) => ('refusal' in parsed ? parsed.refusal : undefined)

type Fields = { [name: string]: string | Buffer | { code: string; retryable: boolean } | null }
const NONE: Fields = {
  ...{ application_id: null, provider: 'p', external_id: null, continuation_id: null },
  ...{ result_id: null, schema_id: null, proposal_digest: null, result: null, failure: null },
}
/** A record as another program writes it: no rule of ours is applied. */
const foreign = (fields: Fields): Buffer =>
  Buffer.concat([Buffer.from([0, 0, 0, 0, ID]), vanilla(source.schema(ID)!.avro).toBuffer({ ...NONE, ...fields })])
const withResult = (text: string | Buffer) => foreign({ continuation_id: 'c', result: Buffer.from(text) })

describe('a result in Avro', () => {
  test('is the same submission as in JSON, digest included', () => {
    for (const record of [
      good,
      { provider: 'p', external_id: ' job 1 ', failure: { code: 'no_funds' } },
      { provider: 'p', external_id: 'e', failure: { code: 'no_funds', retryable: true } },
      { ...good, application_id: 'shop', result_id: 'r', schema_id: 'sha256:ab', proposal_digest: 'a'.repeat(64) },
      { ...good, result: null },
      { ...good, result: [] },
      { ...good, result: '' },
    ] as ResultRecord[]) {
      const parsed = parseResult(encodeResult(record))
      expect(parsed).toHaveProperty('submission')
      expect(parsed).toEqual(parseResult(JSON.stringify(record)))
    }
    const { submission } = parseResult(encodeResult(good)) as Extract<Parsed, { submission: unknown }>
    expect(submission.digest).toBe(outcomeDigest({ result: good.result }))
  })

  test('property: any value, in any key order and any layout, counts as the same', () => {
    const property = fc.property(jsonValues(), fc.nat({ max: 3 }), (value, indent) => {
      const record = { ...good, result: value as JsonValue }
      const expected = parseResult(record)
      expect(parseResult(encodeResult(record))).toEqual(expected)
      const text = JSON.stringify(value, (_, item) => reversed(item), indent)
      expect(parseResult(withResult(text))).toMatchObject({ submission: { digest: outcomeDigest({ result: value }) } })
    })
    fc.assert(property, { numRuns: 150 })
  })

  test('null fields are absent, in every combination, and the verdict is that of the JSON record without them', () => {
    const names = ['application_id', 'external_id', 'continuation_id', 'result_id', 'schema_id', 'proposal_digest'] as const
    const texts = fc.constantFrom(null, null, 'a', ' ', 'A b', 'f'.repeat(64), 'x'.repeat(600))
    const fields = fc.record(Object.fromEntries(names.map((name) => [name, texts])), { noNullPrototype: true })
    const failures = fc.constantFrom(null, null, { code: 'x', retryable: true }, { code: 'X', retryable: false })
    const results = fc.constantFrom(null, 'null', '1', '{"a":[]}')
    const providers = fc.constantFrom('p', 'p', 'P', '')
    const property = fc.property(fields, failures, results, providers, (optional, failure, result, provider) => {
      const record = foreign({ ...optional, provider, failure, result: result === null ? null : Buffer.from(result) })
      const present = Object.fromEntries(Object.entries({ ...optional, failure }).filter(([, value]) => value !== null))
      const asJson = { provider, ...present, ...(result === null ? {} : { result: JSON.parse(result) }) }
      expect(parseResult(record)).toEqual(parseResult(JSON.stringify(asJson)))
    })
    fc.assert(property, { numRuns: 500 })
  })

  test('exact JSON rules apply to the bytes of the value', () => {
    const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
    for (const text of [
      '9007199254740993',
      '[1e999]',
      'NaN',
      '{"a":}',
      '',
      '1 2',
      deep(256),
      '\ufeff1',
      Buffer.from([0x22, 0xff, 0x22]),
    ])
      expect(refusalOf(parseResult(withResult(text))), String(text)).toMatchObject({ verdict: 'unreadable' })
    expect(refusalOf(parseResult(withResult('[9007199254740993]')))).toEqual({
      ...{ verdict: 'unreadable', code: 'json_invalid', path: '$.result' },
      expected: expect.stringContaining('2^53'),
    })
    // As deep as in a JSON record, where the record itself is the outermost level.
    for (const [levels, readable] of [
      [255, true],
      [256, false],
    ] as const) {
      const json = `{"provider":"p","continuation_id":"c","result":${deep(levels)}}`
      expect('submission' in parseResult(json)).toBe(readable)
      expect('submission' in parseResult(withResult(deep(levels)))).toBe(readable)
    }
  })

  test('limits are those of JSON', () => {
    const limits = { resultBytes: 65_536 }
    expect(refusalOf(parseResult(withResult(JSON.stringify('x'.repeat(65_535))), limits))).toMatchObject({
      code: 'result_too_large',
    })
    expect(parseResult(withResult(JSON.stringify('x'.repeat(65_534))), limits)).toHaveProperty('submission')
    expect(refusalOf(parseResult(foreign({ external_id: 'x'.repeat(1_048_577) })))).toMatchObject({ code: 'record_too_large' })
  })
})

describe('unreadable', () => {
  const whole = Buffer.from(encodeResult(good))
  test.each<[string, Uint8Array, string]>([
    ['an unknown schema id', Buffer.concat([Buffer.from([0, 0, 0, 0x7f, 0xff]), whole.subarray(5)]), 'schema_id_unknown'],
    ['the id of an event', Buffer.concat([Buffer.from([0, 0, 0, 0, 4]), whole.subarray(5)]), 'schema_id_unknown'],
    ['a cut body', whole.subarray(0, -1), 'avro_invalid'],
    ['bytes behind the body', Buffer.concat([whole, Buffer.from([0])]), 'avro_invalid'],
    ['only a zero', Buffer.from([0]), 'avro_invalid'],
    ['JSON behind the framing', Buffer.concat([whole.subarray(0, 5), Buffer.from(JSON.stringify(good))]), 'avro_invalid'],
  ])('%s', (_, record, code) => {
    const refusal = refusalOf(parseResult(record))
    expect(refusal).toEqual({ verdict: 'unreadable', code, path: '$', expected: expect.stringMatching(/./) })
    expect(JSON.stringify(refusal)).not.toContain('reference')
  })

  test('noise behind the right id never throws and never says what was in it', () => {
    const property = fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
      const parsed = parseResult(Buffer.concat([Buffer.from([0, 0, 0, 0, ID]), noise]))
      if ('refusal' in parsed) expect(['unreadable', 'invalid', 'too-large']).toContain(parsed.refusal.verdict)
    })
    fc.assert(property, { numRuns: 1000 })
  })
})

test('a writer whose schema has grown is read by who has that schema, and by nobody else', () => {
  const ours = source.schema(ID)!
  const avro = { ...ours.avro, fields: [...ours.avro.fields, { name: 'note', type: ['null', 'string'], default: null } as const] }
  const body = vanilla(avro as never).toBuffer({ ...NONE, continuation_id: 'c', result: Buffer.from('1'), note: 'new' })
  const record = Buffer.concat([Buffer.from([0, 0, 0, 3, 0xe8]), body])
  const knowing = edgeCodec(memorySchemas([{ id: 1000, type: 'result/1', avro: avro as never }, ours]))
  expect(parseResult(record, {}, knowing)).toEqual(parseResult({ provider: 'p', continuation_id: 'c', result: 1 }))
  expect(refusalOf(parseResult(record))).toMatchObject({ verdict: 'unreadable', code: 'schema_id_unknown' })
})

describe('encodeResult', () => {
  test('writes what plain Avro reads', () => {
    const read = vanilla(source.schema(ID)!.avro).fromBuffer(Buffer.from(encodeResult(good).subarray(5)))
    expect({ ...read, result: String(read.result) }).toEqual({
      ...NONE,
      ...{ provider: 'payouts', continuation_id: 'c-1', result: canonicalJson(good.result) },
    })
  })

  test.each<[string, object, string, string]>([
    ['no address', { provider: 'p', result: 1 }, 'address_missing', '$'],
    ['no outcome', { provider: 'p', external_id: 'e' }, 'outcome_missing', '$'],
    ['a field nobody knows', { ...good, secret: 1 }, 'result_shape_invalid', '$'],
    ['a provider in capitals', { ...good, provider: 'Secret' }, 'result_shape_invalid', '$.provider'],
    ['a number that JSON does not have', { ...good, result: Number.NaN }, 'json_invalid', '$.result'],
    ['too much', { ...good, result: 'secret'.repeat(200_000) }, 'record_too_large', '$'],
  ])('refuses %s as the intake would', (_, record, code, path) => {
    expect(() => encodeResult(record as ResultRecord)).toThrow(
      expect.objectContaining({ code, path, disposition: 'reject', message: expect.not.stringMatching(/secret/i) }),
    )
  })
})

describe('on the topic', () => {
  let rig: IntakeRig
  beforeEach(async () => void (rig = await IntakeRig.open()))
  afterEach(() => rig.close())
  const send = (...values: Uint8Array[]) =>
    rig.backend.topics.publish(
      'results',
      values.map((value) => ({ key: 'k', value })),
    )

  test('the same result in JSON and in Avro is a duplicate, another a conflict, and bad ones stop nothing', async () => {
    const [one, two] = [await rig.thread(), await rig.thread()]
    rig.start()
    const record = (thread: typeof one, n: number): ResultRecord => ({
      ...{ provider: 'payouts', continuation_id: thread.waits[0]!.id, result: { n, a: [] } },
    })
    const json = (value: ResultRecord) => Buffer.from(JSON.stringify(value))
    await send(json(record(one, 1)), encodeResult(record(one, 1)), encodeResult(record(one, 2)))
    await send(Buffer.from([0, 0, 0, 0, ID]), encodeResult(record(two, 1)), json(record(two, 1)), json(record(two, 2)))
    const receipts = await rig.until(7)
    expect(receipts.map(({ verdict }) => verdict)).toEqual([
      ...['accepted', 'duplicate', 'conflict'],
      ...['unreadable', 'accepted', 'duplicate', 'conflict'],
    ])
    expect(receipts[3]).toMatchObject({ code: 'avro_invalid', final: true })
    const [first, second] = await Promise.all([one, two].map(({ stream }) => rig.store.load(stream)))
    for (const [state, thread] of [
      [first, one],
      [second, two],
    ] as const)
      expect(state!.waits.get(thread.waits[0]!.id)?.outcome?.value?.value).toEqual({ a: [], n: 1 })
  })

  test('the accepted value is canonical, whatever layout its bytes had', async () => {
    const thread = await rig.thread()
    rig.start()
    const value = packagedEdges().encode('result/1', {
      provider: 'payouts',
      external_id: thread.waits[0]!.externalId,
      result: Payload.fromBytes(Buffer.from('{ "b": 1.0,\n "a": [ ] }')),
    })
    await send(value)
    expect((await rig.until(1))[0]).toMatchObject({ verdict: 'accepted' })
    const outcome = (await rig.store.load(thread.stream)).waits.get(thread.waits[0]!.id)?.outcome
    expect(Buffer.from(outcome!.value!.bytes).toString()).toBe('{"a":[],"b":1}')
    expect(outcome?.digest).toBe(outcomeDigest({ result: { b: 1, a: [] } }))
  })
})

/** The same object with its keys the other way round; `__proto__` cannot be turned. */
const reversed = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !Object.hasOwn(value, '__proto__')
    ? Object.fromEntries(Object.entries(value).reverse())
    : value
