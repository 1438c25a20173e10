import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalJson, jsonParse, Payload, parseJson } from '../../src/base/index.ts'
import { jsonValues } from '../support/event-arbitraries.ts'
import { ends } from '../support/hang.ts'

const keys = (value: unknown): string[] => Object.keys(value as object)

// V8 13.6 compares the next key it expects with the raw text of an escaped key. Objects whose keys hold a backslash, parsed earlier,
// make it expect one: from then on every escaped key at that place that decodes to the same length reads as that key.
describe('escaped keys after a text that misleads V8', () => {
  const misleading = ['{"a":1,"\\\\":0}', '{"a":1,"\\\\n":0}', '{"":1,"\\\\u":0}', '{"":1,"\\\\":0}']
  const kept: unknown[] = []
  for (const text of misleading) kept.push(JSON.parse(text))

  test.each([
    ['{"a":1,"\\n":0}', ['a', '\n']],
    ['{"a":1,"\\ud800":0}', ['a', '\ud800']],
    ['{"a":1,"\\u4e2d":0}', ['a', '中']],
    ['{"a":1,"\\nx":0}', ['a', '\nx']],
    ['{"a":1 , "\\n" \n:\t0}', ['a', '\n']],
    ['{"":1,"\\ud800":0}', ['', '\ud800']],
    ['{"":1,"\\"":0}', ['', '"']],
    ['{"":1,"\\\\":0}', ['', '\\']],
    ['{"":1,"\\u0031":0}', ['1', '']],
    ['{"":1,"\\u005f_proto__":0}', ['', '__proto__']],
    ['{"\ue0001":1,"\\ue000":2,"\\ue0000":3}', ['\ue0001', '\ue000', '\ue0000']],
  ])('%s', (text, expected) => {
    expect(kept).toHaveLength(misleading.length)
    expect(keys(jsonParse(text))).toEqual(expected)
    expect(keys(parseJson(text))).toEqual(expected)
    expect(keys(Payload.fromBytes(Buffer.from(text)).value)).toEqual(expected)
    const [inner] = jsonParse(`[${text},{"x":${text}}]`) as [object]
    expect(keys(inner)).toEqual(expected)
  })
})

test('nothing else changes: values, escapes in values, the last of two equal keys, the reviver', () => {
  const text = '{"v":"\\n\\"\\\\","\\n":"a\\\\\\":b","\\n":[{"\\t":{}}],"x":"\\\\"}'
  expect(jsonParse(text)).toEqual({ v: '\n"\\', '\n': [{ '\t': {} }], x: '\\' })
  const seen: string[] = []
  const doubled = jsonParse('{"\\n":[1],"b":2}', (key, value) => {
    seen.push(key)
    return typeof value === 'number' ? value * 2 : value
  })
  expect(doubled).toEqual({ '\n': [2], b: 4 })
  expect(seen).toEqual(['0', '\n', 'b', ''])
})

test.each([
  '{"\\x":1}',
  '{"\\u12":1}',
  '{"\\":1}',
  '{"a" \\n ":1}',
  '\\":',
  '"\\":',
  '{"\\n"":1}',
  '{"a\\n":}',
  '{"\n\\n":1}',
  '\\',
])('%j is still no JSON', (text) => {
  expect(() => JSON.parse(text)).toThrow(SyntaxError)
  expect(() => jsonParse(text)).toThrow(SyntaxError)
})

// As long as it takes to look at each character a few times; looking at all of them for each would take hours.
test('hostile texts come to an end', () => {
  const long = 1_000_000
  const value = { '\n': '\ue000'.repeat(long), x: '\\'.repeat(long), y: '"'.repeat(long), z: '\n'.repeat(long) }
  const items = Array.from({ length: long / 10 }, (_, i) => ({ [`\n${i % 100}`]: i }))
  for (const hostile of [value, items]) {
    const text = JSON.stringify(hostile)
    expect(JSON.stringify(ends(() => jsonParse(text)))).toBe(text)
  }
})

test('any JSON text keeps its keys, whatever was parsed before', () => {
  const kept: unknown[] = []
  fc.assert(
    fc.property(jsonValues(), (value) => {
      const text = canonicalJson(value)
      kept.push(JSON.parse(text))
      expect(canonicalJson(parseJson(text))).toBe(text)
      expect(canonicalJson(Payload.fromBytes(Buffer.from(text)).value)).toBe(text)
    }),
    { numRuns: 1000 },
  )
})

test('any text is JSON for jsonParse exactly when it is for JSON.parse', () => {
  const parts = fc.array(
    fc.constantFrom('{', '}', '[', ']', ':', ',', '"', '\\', '\\n', '"\\n"', '"a"', '\\"', '1', ' ', 'a', '{"\\t":', '\ue000'),
    { maxLength: 14 },
  )
  const verdict = (parse: () => unknown): boolean => {
    try {
      parse()
      return true
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      return false
    }
  }
  fc.assert(
    fc.property(parts, (list) => {
      const text = list.join('')
      expect(verdict(() => jsonParse(text))).toBe(verdict(() => JSON.parse(text)))
    }),
    { numRuns: 2000 },
  )
})
