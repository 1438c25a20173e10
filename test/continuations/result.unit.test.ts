import { describe, expect, test } from 'vitest'
import { jsonDigest } from '../../src/base/index.ts'
import {
  apiSource,
  decodeReceipt,
  encodeReceipt,
  makeReceipt,
  outcomeDigest,
  parseResult,
  topicSource,
} from '../../src/continuations/index.ts'

const good = { provider: 'payouts', continuation_id: 'c-1', result: { reference: 'r' } }
const parse = (change: object, base: object = good) => parseResult(JSON.stringify({ ...base, ...change }))
const refusalOf = (input: Parameters<typeof parseResult>[0]) => {
  const parsed = parseResult(input)
  return 'refusal' in parsed ? parsed.refusal : undefined
}
const submissionOf = (input: Parameters<typeof parseResult>[0]) => {
  const parsed = parseResult(input)
  return 'submission' in parsed ? parsed.submission : undefined
}

describe('a readable result', () => {
  test('text, bytes and object give the same submission', () => {
    const text = JSON.stringify(good)
    const made = submissionOf(text)
    expect(made).toEqual({
      provider: 'payouts',
      address: { continuation_id: 'c-1' },
      outcome: { result: { reference: 'r' } },
      digest: outcomeDigest({ result: { reference: 'r' } }),
    })
    expect(submissionOf(new TextEncoder().encode(` ${text}\n`))).toEqual(made)
    expect(submissionOf(good)).toEqual(made)
  })

  test('every field', () => {
    const proposal_digest = 'a'.repeat(64)
    const optional = { application_id: 'shop', result_id: 'r-1', schema_id: 'sha256:ab', proposal_digest }
    expect(submissionOf({ ...optional, provider: 'payouts', external_id: ' job 1 ', failure: { code: 'no_funds' } })).toEqual({
      ...optional,
      provider: 'payouts',
      address: { external_id: ' job 1 ' },
      outcome: { failure: { code: 'no_funds', retryable: false } },
      digest: outcomeDigest({ failure: { code: 'no_funds', retryable: false } }),
    })
  })

  test('null stands for an absent field, but is a result', () => {
    const nulls = { application_id: null, external_id: null, result_id: null, schema_id: null, proposal_digest: null }
    expect(submissionOf({ ...good, ...nulls, failure: null })?.outcome).toEqual({ result: { reference: 'r' } })
    expect(submissionOf({ ...good, result: null })?.outcome).toEqual({ result: null })
    expect(submissionOf({ ...good, result: null, failure: { code: 'x', retryable: true } })?.outcome).toEqual({
      failure: { code: 'x', retryable: true },
    })
  })

  test('values survive exactly', () => {
    const value = { empty: [], none: {}, deep: [[[{}]]], small: 5e-324, big: 2 ** 53 - 1, text: 'é😀\ud800' }
    expect(submissionOf(JSON.stringify({ ...good, result: value }))?.outcome).toEqual({ result: value })
  })
})

describe('the digest', () => {
  test('is that of the outcome, in any key order, and nothing else', () => {
    expect(outcomeDigest({ result: { b: 1, a: [] } })).toBe(jsonDigest({ result: { a: [], b: 1 } }))
    expect(submissionOf({ ...good, result_id: 'x', schema_id: 's' })?.digest).toBe(submissionOf(good)?.digest)
  })
  test('tells a failure from a result that looks like one, and an absent retryable is false', () => {
    const failure = { code: 'x', retryable: false }
    expect(outcomeDigest({ failure })).not.toBe(outcomeDigest({ result: failure }))
    expect(submissionOf({ provider: 'p', continuation_id: 'c', failure: { code: 'x' } })?.digest).toBe(outcomeDigest({ failure }))
  })
})

describe('unreadable', () => {
  test.each<[string, Parameters<typeof parseResult>[0]]>([
    ['no JSON', '{"provider":'],
    ['nothing', new Uint8Array()],
    ['not UTF-8', new Uint8Array([0x7b, 0xff, 0x7d])],
    ['a binary record', new Uint8Array([0, 0, 0, 0, 1, 2])],
    ['NaN', '{"provider":"p","continuation_id":"c","result":NaN}'],
    ['an integer beyond 2^53', '{"provider":"p","continuation_id":"c","result":9007199254740993}'],
    ['a number beyond doubles', '{"provider":"p","continuation_id":"c","result":1e999}'],
    ['depth 300', `{"provider":"p","continuation_id":"c","result":${'['.repeat(300)}${']'.repeat(300)}}`],
    ['a live NaN', { ...good, result: Number.NaN }],
    ['a live bigint', { ...good, result: 1n }],
    [
      'a getter that throws',
      {
        get provider(): string {
          throw new Error('no')
        },
      },
    ],
  ])('%s', (_, input) => expect(refusalOf(input)).toMatchObject({ verdict: 'unreadable', path: expect.stringMatching(/^\$/) }))
})

describe('too large', () => {
  test('a record above 1 MiB, whatever is in it', () => {
    expect(refusalOf('x'.repeat(1_048_577))).toMatchObject({ verdict: 'too-large', code: 'record_too_large' })
    expect(refusalOf({ ...good, junk: 'x'.repeat(1_048_577) })).toMatchObject({ verdict: 'too-large' })
  })
  test('a result as large as its record may be passes; of a lower limit, exactly that many bytes of canonical JSON', () => {
    expect(submissionOf({ ...good, result: 'x'.repeat(1_048_000) })).toBeDefined()
    const limits = { resultBytes: 65_536 }
    expect(parseResult({ ...good, result: 'x'.repeat(65_534) }, limits)).toHaveProperty('submission')
    for (const result of ['x'.repeat(65_535), 'é'.repeat(40_000)])
      expect(parseResult({ ...good, result }, limits)).toMatchObject({
        refusal: { verdict: 'too-large', code: 'result_too_large', path: '$.result' },
      })
  })
  test('limits can be set', () => {
    expect(parseResult(good, { resultBytes: 3 })).toMatchObject({ refusal: { verdict: 'too-large' } })
    expect(parseResult(good, { recordBytes: 3 })).toMatchObject({ refusal: { verdict: 'too-large' } })
  })
})

describe('invalid', () => {
  const { result: _, ...unanswered } = good
  test.each<[string, object, string, string]>([
    ['no address (an answer without id)', { continuation_id: undefined }, '$', 'address_missing'],
    ['both addresses', { external_id: 'x' }, '$.continuation_id', 'address_ambiguous'],
    ['neither outcome', { result: undefined }, '$', 'outcome_missing'],
    ['both outcomes written as null', { result: null, failure: null }, '$', 'outcome_missing'],
    ['both outcomes', { failure: { code: 'x' } }, '$.failure', 'outcome_ambiguous'],
    ['no provider', { provider: undefined }, '$.provider', 'result_shape_invalid'],
    ['a provider in capitals', { provider: 'Payouts' }, '$.provider', 'result_shape_invalid'],
    ['a blank id', { continuation_id: ' ' }, '$.continuation_id', 'result_shape_invalid'],
    ['an id that is a number', { continuation_id: 7 }, '$.continuation_id', 'result_shape_invalid'],
    ['a schema id with a space', { schema_id: 'a b' }, '$.schema_id', 'result_shape_invalid'],
    ['a digest that is none', { proposal_digest: 'abc' }, '$.proposal_digest', 'result_shape_invalid'],
    ['a lone surrogate in an id', { result_id: '\ud800' }, '$.result_id', 'result_shape_invalid'],
    ['a field nobody knows', { externalId: 'x' }, '$', 'result_shape_invalid'],
  ])('%s', (_, change, path, code) => {
    const text = JSON.stringify({ ...good, ...change })
    expect(refusalOf(text)).toEqual({ verdict: 'invalid', code, path, expected: expect.stringMatching(/./) })
  })
  test.each<[string, unknown, string]>([
    ['a failure with a message', { code: 'x', message: 'boom' }, '$.failure'],
    ['a failure code in capitals', { code: 'X' }, '$.failure.code'],
    ['retryable 1', { code: 'x', retryable: 1 }, '$.failure.retryable'],
    ['a failure that is text', 'x', '$.failure'],
  ])('%s', (_, failure, path) => expect(parse({ failure }, unanswered)).toMatchObject({ refusal: { verdict: 'invalid', path } }))

  test.each(['[]', '"x"', 'null', '7'])('%s is no object', (text) =>
    expect(refusalOf(text)).toMatchObject({ verdict: 'invalid', path: '$' }),
  )

  test('the usable part of the address is kept for the receipt, the payload is not told', () => {
    const parsed = parseResult({ provider: 'payouts', external_id: 'job', result_id: 'r', result: 'secret', surprise_secret: 1 })
    expect(parsed).toMatchObject({ provider: 'payouts', address: { external_id: 'job' }, result_id: 'r' })
    expect(JSON.stringify(parsed)).not.toContain('secret')
  })
})

describe('receipts', () => {
  const source = topicSource({ cluster: 'k', topic: 'results', partition: 2, offset: 7n, time: 5 })

  test('carry coordinate, verdict and address, and survive their encoding', () => {
    const receipt = makeReceipt(source, submissionOf(good) ?? {}, { verdict: 'conflict', digest: 'a'.repeat(64) })
    expect(receipt).toEqual({
      source: { cluster: 'k', topic: 'results', partition: 2, offset: 7, record_time: 5 },
      sequence: 1,
      final: true,
      verdict: 'conflict',
      provider: 'payouts',
      continuation_id: 'c-1',
      result_id: 'k/results/2/7',
      digest: 'a'.repeat(64),
    })
    expect(decodeReceipt(encodeReceipt(receipt))).toEqual(receipt)
  })

  test('show outsiders an unknown wait instead of one out of scope', () => {
    expect(makeReceipt(source, {}, { verdict: 'wrong-scope' }).verdict).toBe('unknown')
    expect(makeReceipt(source, {}, { verdict: 'held' }).final).toBe(false)
  })

  test('of calls name the way in and the command', () => {
    const receipt = makeReceipt(apiSource('cli', 'cmd-1'), { result_id: 'r' }, { verdict: 'accepted' })
    expect(receipt).toEqual({
      source: { api: 'cli', command_id: 'cmd-1' },
      sequence: 1,
      final: true,
      verdict: 'accepted',
      result_id: 'r',
    })
    expect(decodeReceipt(encodeReceipt(receipt))).toEqual(receipt)
  })
})
