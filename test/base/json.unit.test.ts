import { describe, expect, test } from 'vitest'
import {
  canonicalJson,
  isThreadlogError,
  type JsonValue,
  jsonDigest,
  jsonEqual,
  MAX_JSON_DEPTH,
  parseJson,
  sha256Hex,
  toJson,
} from '../../src/base/index.ts'

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
const bytes = (...values: number[]) => Uint8Array.from(values)

function invalid(act: () => unknown) {
  try {
    act()
  } catch (error) {
    if (isThreadlogError(error, 'json_invalid')) return error
    throw error
  }
  throw new Error('nothing was refused')
}

describe('parseJson', () => {
  test.each(['9007199254740991', '-9007199254740991', '1e21', '1.5e300', '0.1', '1E2'])('keeps %s', (text) => {
    expect(parseJson(text)).toBe(Number(text))
  })

  test.each([
    '9007199254740992',
    '9007199254740993',
    '-9007199254740993',
    '12345678901234567890',
    '9007199254740993.0',
    '999999999999999934464.0',
    '1e20',
    '1000000000000000000000000',
    '1e400',
    '[{"a":[-1e999]}]',
  ])('refuses %s, which would be rounded or not come back from canonical JSON', (text) => {
    expect(invalid(() => parseJson(text)).path).toMatch(/^\$/)
  })

  test('names the key of a refused number', () => {
    expect(invalid(() => parseJson('{"a":{"order_id":9007199254740993}}')).path).toContain('order_id')
  })

  test.each(['NaN', 'Infinity', '-Infinity', '[NaN]', '{"a":Infinity}'])('refuses the token %s', (text) => {
    invalid(() => parseJson(text))
  })

  test.each(['', ' ', '{', '[1,]', "{'a':1}", '{a:1}', '01', '1 2', '// x\n1', 'undefined', '"\n"', '\ufeff1', '[]]', ']'])(
    'refuses %j',
    (text) => {
      invalid(() => parseJson(text))
    },
  )

  test('nesting of 256 is taken, 257 refused, a million refused without touching the stack', () => {
    expect(parseJson(nested(MAX_JSON_DEPTH))).toBeInstanceOf(Array)
    expect(invalid(() => parseJson(nested(MAX_JSON_DEPTH + 1))).expected).toContain('256')
    invalid(() => parseJson('['.repeat(1_000_000)))
    invalid(() => parseJson('{"a":'.repeat(100_000)))
    expect(parseJson('[[1]]', { maxDepth: 2 })).toEqual([[1]])
    invalid(() => parseJson('[[1]]', { maxDepth: 1 }))
  })

  test('brackets and quotes inside strings are not nesting', () => {
    const text = '['.repeat(300)
    expect(parseJson(JSON.stringify([text, `\\"${text}`, '\\']))).toEqual([text, `\\"${text}`, '\\'])
    invalid(() => parseJson('"[[[[\\"'))
  })

  test.each([
    ['a stray continuation byte', bytes(0x22, 0x80, 0x22)],
    ['an overlong form', bytes(0x22, 0xc0, 0xaf, 0x22)],
    ['a surrogate in UTF-8', bytes(0x22, 0xed, 0xa0, 0x80, 0x22)],
    ['a cut character', bytes(0x22, 0xe2, 0x82, 0x22)],
    ['UTF-16', bytes(0x31, 0x00)],
    ['a byte order mark', bytes(0xef, 0xbb, 0xbf, 0x31)],
  ])('refuses %s', (_name, input) => {
    invalid(() => parseJson(input))
  })

  test('__proto__ is a key like any other', () => {
    const value = parseJson('{"__proto__":{"polluted":true},"constructor":1}') as Record<string, unknown>
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    expect(canonicalJson(value as JsonValue)).toBe('{"__proto__":{"polluted":true},"constructor":1}')
  })

  test('−0 becomes 0', () => expect(parseJson('[-0,-0.0,{"a":-0e5}]')).toStrictEqual([0, 0, { a: 0 }]))

  test('no error quotes the input', () => {
    const secret = 'sk-live-4242'
    for (const text of [`"${secret}`, `{"a":${secret}}`, `${secret}`]) {
      const error = invalid(() => parseJson(text))
      expect(JSON.stringify(error) + error.stack + String(error.cause)).not.toContain(secret)
    }
  })
})

describe('canonicalJson', () => {
  test.each<[JsonValue, string]>([
    [{ b: 1, a: 2 }, '{"a":2,"b":1}'],
    [{ 10: 'ten', 9: 'nine' }, '{"10":"ten","9":"nine"}'],
    [{ a: { 2: 1, 10: 2, '': 3 } }, '{"a":{"":3,"10":2,"2":1}}'],
    [{ é: 1, z: 2, '😀': 3, '\ufb33': 4 }, '{"z":2,"é":1,"😀":3,"\ufb33":4}'],
    [[3, { y: [], x: {} }], '[3,{"x":{},"y":[]}]'],
    [[1e21, 1e-7, 0.1, -0, 1e300, 100], '[1e+21,1e-7,0.1,0,1e+300,100]'],
    ['\u2028\u0001"\\/\u007f', '"\u2028\\u0001\\"\\\\/\u007f"'],
    ['a\ud800b', '"a\\ud800b"'],
    [{ '\udfff': 1 }, '{"\\udfff":1}'],
    [JSON.parse('{"b":1,"__proto__":{"b":1,"a":2}}'), '{"__proto__":{"a":2,"b":1},"b":1}'],
  ])('%j', (value, text) => {
    expect(canonicalJson(value)).toBe(text)
    expect(canonicalJson(parseJson(text))).toBe(text)
  })

  test('an absent property is left out in either order', () => {
    expect(canonicalJson({ a: 1, b: undefined as never })).toBe('{"a":1}')
    expect(canonicalJson({ b: undefined as never, c: 1, a: 1 })).toBe('{"a":1,"c":1}')
  })

  test('digest and equality go by the canonical text', () => {
    expect(jsonDigest({ b: 1, a: 2 })).toBe(sha256Hex('{"a":2,"b":1}'))
    expect(jsonEqual({ b: [1], a: 2 }, { a: 2, b: [1] })).toBe(true)
    expect(jsonEqual([1, 2], [2, 1])).toBe(false)
    expect(jsonEqual(1, true)).toBe(false)
    expect(jsonEqual('1', 1)).toBe(false)
    expect(jsonEqual({}, [])).toBe(false)
    expect(jsonEqual(null, {})).toBe(false)
  })
})

describe('toJson', () => {
  test('detaches, drops undefined properties, follows toJSON', () => {
    const inner = { a: 1, gone: undefined }
    const out = toJson({ inner, when: new Date(0), none: Object.create(null) }) as Record<string, unknown>
    inner.a = 2
    expect(out).toEqual({ inner: { a: 1 }, when: '1970-01-01T00:00:00.000Z', none: {} })
    expect(Object.keys(out['inner'] as object)).toEqual(['a'])
  })

  test.each<[string, unknown, string]>([
    ['NaN', { a: [Number.NaN] }, '$.a[0]'],
    ['Infinity', -Infinity, '$'],
    ['2^53', { n: 2 ** 53 }, '$.n'],
    ['bigint', [1n], '$[0]'],
    ['undefined in a list', [1, undefined], '$[1]'],
    ['a hole in a list', new Array(2), '$[0]'],
    ['function', { f: () => 1 }, '$.f'],
    ['symbol', Symbol('s'), '$'],
    ['Map', { m: new Map() }, '$.m'],
    ['class instance', { e: new Error('x') }, '$.e'],
    ['bytes', new Uint8Array(1), '$'],
  ])('refuses %s', (_name, value, path) => {
    expect(invalid(() => toJson(value)).path).toBe(path)
  })

  test('1e21 and −0 as canonical JSON writes them', () => {
    expect(toJson(1e21)).toBe(1e21)
    expect(toJson([-0])).toStrictEqual([0])
  })

  test('depth 256 is taken, 257 and cycles refused', () => {
    const deep = (n: number): unknown => (n === 0 ? 1 : [deep(n - 1)])
    expect(canonicalJson(toJson(deep(256)))).toBe(`${'['.repeat(256)}1${']'.repeat(256)}`)
    invalid(() => toJson(deep(257)))
    const loop: unknown[] = []
    loop.push({ loop })
    expect(invalid(() => toJson(loop)).path!.length).toBeLessThanOrEqual(80)
  })

  test('__proto__ stays an own key', () => {
    const out = toJson(JSON.parse('{"__proto__":{"a":1}}'))
    expect(canonicalJson(out)).toBe('{"__proto__":{"a":1}}')
    expect(Object.getPrototypeOf(out)).toBe(Object.prototype)
  })
})
