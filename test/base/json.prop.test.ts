import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  canonicalJson,
  isJsonObject,
  isThreadlogError,
  type JsonValue,
  jsonEqual,
  parseJson,
  toJson,
} from '../../src/base/index.ts'
import { jsonValues } from '../support/event-arbitraries.ts'

/** The same value with the keys of every object in another order. */
const shuffled = (value: JsonValue): JsonValue => {
  if (Array.isArray(value)) return value.map(shuffled)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, shuffled(item)]),
  )
}

test('canonical text parses back to the same value and is a fixed point', () => {
  fc.assert(
    fc.property(jsonValues(), (value) => {
      const text = canonicalJson(value)
      const back = parseJson(new TextEncoder().encode(text))
      expect(isDeepStrictEqual(back, value)).toBe(true)
      expect(canonicalJson(back)).toBe(text)
      expect(canonicalJson(shuffled(value))).toBe(text)
      expect(canonicalJson(toJson(value))).toBe(text)
      expect(jsonEqual(value, shuffled(value))).toBe(true)
    }),
    { numRuns: 300 },
  )
})

test('canonical keys are sorted by UTF-16 code unit', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.oneof(fc.string(), fc.nat({ max: 120 }).map(String)), { maxLength: 12 }), (keys) => {
      const text = canonicalJson(Object.fromEntries(keys.map((key) => [key, 0])))
      const found = [...text.matchAll(/"((?:[^"\\]|\\.)*)":0/g)].map((match) => JSON.parse(`"${match[1]}"`) as string)
      expect(found).toEqual([...keys].sort())
    }),
  )
})

test('whatever parseJson accepts, it accepts again after canonicalJson, unchanged', () => {
  const number = fc.tuple(
    fc.constantFrom('', '-'),
    fc.bigInt({ min: 0n, max: 10n ** 24n }),
    fc.constantFrom('', '.0', '.5', 'e0', 'e5', 'e-3', 'e30', 'E+2'),
  )
  fc.assert(
    fc.property(number, ([sign, digits, tail]) => {
      let value: JsonValue
      try {
        value = parseJson(`[${sign}${digits}${tail}]`)
      } catch (error) {
        expect(isThreadlogError(error, 'json_invalid')).toBe(true)
        return
      }
      const [n] = value as number[]
      if (tail === '' || tail === '.0') expect(BigInt(n!)).toBe(BigInt(`${sign}${digits}`))
      expect(parseJson(canonicalJson(value))).toStrictEqual(value)
      expect(toJson(value)).toStrictEqual(value)
    }),
    { numRuns: 500 },
  )
})

test('a number comes in exactly as it is spelled, or not at all', () => {
  const spelled = fc.stringMatching(/^-?(0|[1-9][0-9]{0,18})([.][0-9]{1,17})?([eE][+-]?[0-9]{1,3})?$/)
  const around = fc.constantFrom(['', ''], ['[1,', ']'], ['{"a":{"b":', '}}'], ['["\\\\",', ',"-0"]'])
  const property = fc.property(spelled, around, (text, [before, after]) => {
    const number = Number(text)
    const rounded = Number.isInteger(number) && !Number.isSafeInteger(number) && (Math.abs(number) < 1e21 || !/[eE]/.test(text))
    const refused = !Number.isFinite(number) || rounded
    let value: unknown
    try {
      value = parseJson(`${before}${text}${after}`)
    } catch (error) {
      expect(isThreadlogError(error, 'json_invalid')).toBe(true)
      expect(refused).toBe(true)
      return
    }
    expect(refused).toBe(false)
    expect(value).toStrictEqual(JSON.parse(`${before}${number === 0 ? 0 : text}${after}`))
  })
  fc.assert(property, { numRuns: 2000 })
})

test('any text parses or is refused as json_invalid', () => {
  const almost = fc.oneof(
    fc.string(),
    fc.json().chain((text) => fc.nat({ max: text.length }).map((cut) => text.slice(0, cut))),
    fc.stringMatching(/^[[\]{}",:\\0-9a-z]*$/),
  )
  fc.assert(
    fc.property(fc.oneof(almost, fc.uint8Array()), (input) => {
      try {
        parseJson(input)
      } catch (error) {
        if (!isThreadlogError(error, 'json_invalid')) throw error
      }
    }),
    { numRuns: 500 },
  )
})
