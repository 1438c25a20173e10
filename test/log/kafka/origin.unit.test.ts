import { expect, test } from 'vitest'
import { isRemade, originText, parseOrigin } from '../../../src/log/kafka/origin.ts'

const before = { offset: 3n, time: 100 }
const at = (offset: bigint, time: number) => ({ origin: { offset, time }, first: offset, end: 50n })
const empty = (first: bigint, end: bigint) => ({ origin: undefined, first, end })

test.each([
  ['the same beginning', at(3n, 100), false],
  ['another record there', at(3n, 101), true],
  ['a beginning before it', at(0n, 100), true],
  ['a beginning behind it: retention', at(9n, 200), false],
  ['no record, and shorter than what was read', empty(0n, 0n), true],
  ['no record, all gone by age', empty(10n, 10n), false],
  ['the same beginning, cut short', { ...at(3n, 100), end: 5n }, false],
])('a partition read to offset 10 now has %s', (_, extent, remade) => {
  expect(isRemade(before, extent, 10n)).toBe(remade)
})

test('a beginning survives as text; what is none is undefined', () => {
  expect(parseOrigin(originText(before))).toEqual(before)
  for (const text of [undefined, '', '3', '3@', '@3', '-1@3', '3@1e3', '3@4 5']) expect(parseOrigin(text)).toBeUndefined()
})
