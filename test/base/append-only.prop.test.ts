import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AppendList, AppendMap } from '../../src/base/index.ts'

// Folds branch: two commands are decided on one state, a reader folds an old version again. Whatever is pushed onto whichever version,
// every version ever made keeps showing what it showed.

const steps = fc.array(fc.record({ onto: fc.nat(), item: fc.nat({ max: 9 }) }), { maxLength: 40 })

test('AppendList: every version keeps its items', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: -12, max: 12 }), fc.integer({ min: -12, max: 12 }), (pushes, from, to) => {
      const versions = [{ list: AppendList.of<number>(), model: [] as number[] }]
      for (const { onto, item } of pushes) {
        const { list, model } = versions[onto % versions.length]!
        versions.push({ list: list.push(item), model: [...model, item] })
      }
      for (const { list, model } of versions) {
        expect([...list]).toEqual(model)
        expect(list.length).toBe(model.length)
        expect(list.at(from)).toBe(model.at(from))
        expect(list.slice(from, to)).toEqual(model.slice(from, to))
        expect(list.slice(from)).toEqual(model.slice(from))
        expect(list.slice()).toEqual(model)
      }
    }),
    { numRuns: 300 },
  )
})

test('AppendMap: every version keeps its entries, the first value of a key wins', () => {
  fc.assert(
    fc.property(steps, (sets) => {
      const versions = [{ map: AppendMap.of<number>(), model: new Map<string, number>() }]
      for (const [i, { onto, item }] of sets.entries()) {
        const { map, model } = versions[onto % versions.length]!
        const key = String(item)
        versions.push({ map: map.set(key, i), model: model.has(key) ? model : new Map(model).set(key, i) })
      }
      for (const { map, model } of versions) {
        expect([...map]).toEqual([...model])
        expect(map.size).toBe(model.size)
        for (let key = 0; key < 10; key++) {
          expect(map.get(String(key))).toBe(model.get(String(key)))
          expect(map.has(String(key))).toBe(model.has(String(key)))
        }
      }
    }),
    { numRuns: 300 },
  )
})

describe('sharing', () => {
  // Copies of 20 kB and more for each version, if there were any.
  const VERSIONS = 5_000
  const MOST_BYTES = VERSIONS * 2_000

  /** Bytes that the versions hold on to which begin at `first`, each made from the one before. */
  function bytesOf<T>(first: T, next: (version: T, i: number) => T): number {
    const before = process.memoryUsage().heapUsed
    const versions = [first]
    for (let i = 0; i < VERSIONS; i++) versions.push(next(versions[i] as T, i))
    const after = process.memoryUsage().heapUsed
    expect(versions).toHaveLength(VERSIONS + 1)
    return after - before
  }

  test('versions that follow each other share what they hold', () => {
    expect(bytesOf(AppendList.of<number>(), (list, i) => list.push(i))).toBeLessThan(MOST_BYTES)
    expect(bytesOf(AppendMap.of<number>(), (map, i) => map.set(`k${i}`, i))).toBeLessThan(MOST_BYTES)
  })

  test('keys of objects are ordinary keys', () => {
    const map = AppendMap.of<number>().set('__proto__', 1).set('constructor', 2)
    expect([map.get('__proto__'), map.get('constructor'), map.get('toString')]).toEqual([1, 2, undefined])
  })

  test('a list does not follow the iterable it was made from', () => {
    const items = [1, 2]
    const list = AppendList.of(items)
    items.push(3)
    expect([...list]).toEqual([1, 2])
  })
})
