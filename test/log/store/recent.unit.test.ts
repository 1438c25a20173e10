import { expect, test } from 'vitest'
import type { RecordedEvent } from '../../../src/log/index.ts'
import { Recent } from '../../../src/log/store/recent.ts'

const events = (from: number, count: number, size = 10): RecordedEvent[] =>
  Array.from({ length: count }, (_, i) => ({
    stream: 's',
    version: i + 1,
    hash: 'h',
    position: { partition: 0, offset: BigInt(from + i) },
    bytes: new Uint8Array(size),
  }))
const offsets = (slice: RecordedEvent[] | undefined) => slice?.map((event) => Number(event.position.offset))

test('gives what it has, and nothing when it cannot know', () => {
  const recent = new Recent()
  expect(recent.from(1, 10)).toBeUndefined()
  recent.push(5, events(5, 3))
  recent.push(8, events(8, 1))
  expect(offsets(recent.from(6, 10))).toEqual([6, 7, 8])
  expect(offsets(recent.from(5, 2))).toEqual([5, 6])
  expect(recent.from(4, 10)).toBeUndefined()
  expect(recent.from(9, 10)).toBeUndefined()
})

test('a hole, left by another process, empties it', () => {
  const recent = new Recent()
  recent.push(1, events(1, 3))
  recent.push(5, events(5, 2))
  expect(recent.from(1, 10)).toBeUndefined()
  expect(offsets(recent.from(5, 10))).toEqual([5, 6])
})

test('it stays small in number and in bytes, keeping the newest', () => {
  const many = new Recent()
  for (let i = 0; i < 50; i++) many.push(1 + i * 100, events(1 + i * 100, 100))
  expect(many.from(1, 1)).toBeUndefined()
  expect(offsets(many.from(4_999, 10))).toEqual([4_999, 5_000])
  const large = new Recent()
  for (let i = 0; i < 20; i++) large.push(1 + i, events(1 + i, 1, 900_000))
  expect(large.from(1, 1)).toBeUndefined()
  expect(offsets(large.from(19, 10))).toEqual([19, 20])
})
