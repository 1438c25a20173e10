import { expect, test } from 'vitest'
import { isThreadlogError, Payload, sha256Hex } from '../../src/base/index.ts'

const text = (payload: Payload) => Buffer.from(payload.bytes).toString()

test('bytes are canonical JSON, made once', () => {
  const payload = Payload.of({ b: [], a: {}, 10: 1, 9: 2 })
  expect(text(payload)).toBe('{"10":1,"9":2,"a":{},"b":[]}')
  expect(payload.bytes).toBe(payload.bytes)
  expect(payload.digest).toBe(sha256Hex(text(payload)))
})

test('the value is parsed when asked for, once', () => {
  const payload = Payload.fromBytes(Buffer.from('{"a":[1]}'))
  expect(payload.value).toEqual({ a: [1] })
  expect(payload.value).toBe(payload.value)
})

test.each([null, false, 0, '', [], {}])('%j is a value', (value) => {
  const payload = Payload.fromBytes(Payload.of(value).bytes)
  expect(payload.value).toStrictEqual(value)
  expect(payload.digest).toBe(Payload.of(value).digest)
})

test('a lone surrogate survives as an escape', () => {
  const payload = Payload.of('\ud800')
  expect(text(payload)).toBe('"\\ud800"')
  expect(Payload.fromBytes(payload.bytes).value).toBe('\ud800')
})

test('__proto__ stays a key', () => {
  const value = Payload.fromBytes(Buffer.from('{"__proto__":{"a":1}}')).value
  expect(Object.keys(value as object)).toEqual(['__proto__'])
})

test('JSON.stringify shows the value', () => {
  expect(JSON.stringify({ p: Payload.of({ a: 1 }) })).toBe('{"p":{"a":1}}')
})

test.each(['', 'secret', '{"secret":', '\ufeff1'])('foreign bytes %j are refused without quoting them', (bytes) => {
  let caught: unknown
  try {
    Payload.fromBytes(Buffer.from(bytes)).value
  } catch (error) {
    caught = error
  }
  expect(isThreadlogError(caught, 'payload_undecodable')).toBe(true)
  expect(JSON.stringify(caught) + (caught as Error).stack + String((caught as Error).cause)).not.toContain('secret')
})

test('bytes that are not UTF-8 are refused', () => {
  expect(() => Payload.fromBytes(Uint8Array.from([0x22, 0xff, 0x22])).value).toThrow(
    expect.objectContaining({ code: 'payload_undecodable' }),
  )
})
