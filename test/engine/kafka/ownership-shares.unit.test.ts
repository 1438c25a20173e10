import fc from 'fast-check'
import { expect, test } from 'vitest'
import { divide } from '../../../src/log/kafka/sticky.ts'

const sorted = (shares: Map<string, number[]>) => [...shares.values()].flat().sort((a, b) => a - b)
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)

test('every partition goes to one member, in shares that differ by one at most, whatever the members claim', () => {
  const members = fc.dictionary(fc.string({ maxLength: 3 }), fc.array(fc.integer({ min: -1, max: 12 })), {
    minKeys: 1,
    maxKeys: 7,
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), members, (count, claims) => {
      const shares = divide(count, new Map(Object.entries(claims)))
      expect(sorted(shares)).toEqual(upTo(count))
      const sizes = [...shares.values()].map(({ length }) => length)
      expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1)
    }),
  )
})

test('who comes takes no more than its share, and who goes moves only what was its own', () => {
  const moved = (before: Map<string, number[]>, after: Map<string, number[]>) =>
    [...after].flatMap(([id, share]) => share.filter((partition) => !before.get(id)?.includes(partition))).length
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 6 }), (count, size) => {
      const before = divide(count, new Map(upTo(size).map((id) => [`m${id}`, []])))
      const joined = divide(count, new Map([...before, ['a', []]]))
      expect(moved(before, joined)).toBe(joined.get('a')?.length)
      if (size === 1) return
      const left = new Map(before)
      left.delete('m0')
      expect(moved(left, divide(count, left))).toBe(before.get('m0')?.length)
    }),
  )
})
