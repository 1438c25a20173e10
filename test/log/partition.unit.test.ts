import { describe, expect, test } from 'vitest'
import { murmur2, partitionOf } from '../../src/log/index.ts'

describe('murmur2', () => {
  // Values of org.apache.kafka.common.utils.UtilsTest.
  test.each([
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ])('%s', (text, hash) => {
    expect(murmur2(new TextEncoder().encode(text))).toBe(hash)
  })
})

test('a partition is the positive hash of the key text, modulo their number', () => {
  const stream = '5b0e'.repeat(16)
  expect(partitionOf(stream, 1)).toBe(0)
  expect(partitionOf(stream, 7)).toBe((murmur2(new TextEncoder().encode(stream)) & 0x7fffffff) % 7)
})
