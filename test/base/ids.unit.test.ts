import { expect, test } from 'vitest'
import { countingIds, type Ids, systemIds } from '../../src/base/index.ts'

const shapes: [keyof Ids, RegExp][] = [
  ['commit', /^[0-9a-f]{32}$/],
  ['run', /^run-[0-9a-f]{32}$/],
  ['thread', /^thread_[0-9a-f]{32}$/],
  ['continuation', /^[A-Za-z0-9_-]{32}$/],
  ['token', /^[0-9a-f]{32}$/],
]

test.each([
  ['system', systemIds],
  ['counting', countingIds()],
] as const)('%s ids have their shapes and do not repeat', (_name, ids) => {
  for (const [kind, shape] of shapes) {
    const made = Array.from({ length: 200 }, () => ids[kind](1_790_000_000_000))
    for (const id of made) expect(id).toMatch(shape)
    expect(new Set(made).size).toBe(made.length)
  }
})

test('commit ids are UUIDv7: time first, so later ones sort later', () => {
  const id = systemIds.commit(1_790_000_000_123)
  expect(Number.parseInt(id.slice(0, 12), 16)).toBe(1_790_000_000_123)
  expect(id[12]).toBe('7')
  expect('89ab').toContain(id[16])
  expect(systemIds.commit(1) < systemIds.commit(2)).toBe(true)
  expect(systemIds.commit(2 ** 48 - 1).slice(0, 12)).toBe('f'.repeat(12))
})

test('counting ids are the same in every run and differ by seed', () => {
  expect(countingIds().run()).toBe(countingIds().run())
  expect(countingIds(5).run()).not.toBe(countingIds().run())
})
