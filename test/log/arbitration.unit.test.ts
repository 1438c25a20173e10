import { describe, expect, test } from 'vitest'
import { ZERO_HASH } from '../../src/events/index.ts'
import { type ArbitrationRecord, arbitrate, nextOffset } from '../../src/log/index.ts'
import { readAll } from './support/partition-log.ts'

const A = 'a'.repeat(64)
const B = 'b'.repeat(64)

/** Records of one commit; hashes are made of stream, id and version. */
function commit(stream: string, id: string, base: number, size: number, previous = ZERO_HASH): ArbitrationRecord[] {
  return Array.from({ length: size }, (_, index) => ({
    stream,
    version: base + index + 1,
    commit: { id, base, index, size },
    previous: index === 0 ? previous : `${stream} ${id} ${base + index}`,
    hash: `${stream} ${id} ${base + index + 1}`,
    offset: 0,
  }))
}

const lay = (...records: ArbitrationRecord[]): ArbitrationRecord[] => records.map((record, offset) => ({ ...record, offset }))
const acceptedIds = (records: ArbitrationRecord[]): string[] =>
  readAll(records).accepted.map((r) => `${r.commit.id}:${r.commit.index}`)
const reasons = (records: ArbitrationRecord[]): string[] =>
  readAll(records).voids.map((group) => `${group.reason} ${group.offsets}`)

describe('arbitration', () => {
  const [a0, a1, a2] = commit(A, 'x', 0, 3) as [ArbitrationRecord, ArbitrationRecord, ArbitrationRecord]
  const [b0] = commit(B, 'y', 0, 1) as [ArbitrationRecord]

  test('a complete commit on an empty stream is accepted with its last record', () => {
    expect(acceptedIds(lay(a0, a1))).toEqual([])
    expect(acceptedIds(lay(a0, a1, a2))).toEqual(['x:0', 'x:1', 'x:2'])
  })

  test('a record of another stream between voids the commit, and is judged on its own', () => {
    expect(acceptedIds(lay(a0, b0, a1, a2))).toEqual(['y:0'])
    expect(reasons(lay(a0, b0, a1, a2))).toEqual(['interrupted 0', 'headless 2', 'headless 3'])
  })

  test('a copy that begins anew inside the first one wins', () => {
    expect(acceptedIds(lay(a0, a0, a1, a2))).toEqual(['x:0', 'x:1', 'x:2'])
    expect(reasons(lay(a0, a0, a1, a2))).toEqual(['interrupted 0'])
  })

  test('a second copy is void: the stream has gone past its base', () => {
    expect(reasons(lay(a0, a1, a2, a0, a1, a2))).toEqual(['base-behind 3,4,5'])
  })

  test('a commit sent ahead of its stream is void, a later copy of it is not', () => {
    const ahead = commit(A, 'z', 3, 1, a2.hash)
    expect(reasons(lay(...ahead, a0, a1, a2))).toEqual(['base-ahead 0'])
    expect(acceptedIds(lay(...ahead, a0, a1, a2, ...ahead))).toEqual(['x:0', 'x:1', 'x:2', 'z:0'])
  })

  test('the right base on another event is void', () => {
    expect(reasons(lay(a0, a1, a2, ...commit(A, 'z', 3, 1, 'somewhere else')))).toEqual(['head-mismatch 3'])
  })

  test('records that do not chain are void together', () => {
    expect(reasons(lay(a0, { ...a1, previous: 'other' }, a2))).toEqual(['broken-chain 0,1', 'headless 2'])
  })

  test('impossible places are void at once', () => {
    expect(reasons(lay({ ...a0, commit: { ...a0.commit, size: 501 } }))).toEqual(['malformed 0'])
    expect(reasons(lay({ ...a0, version: 2 }))).toEqual(['malformed 0'])
    expect(reasons(lay({ ...b0, commit: { ...b0.commit, index: 1 } }))).toEqual(['malformed 0'])
    expect(reasons(lay({ ...b0, commit: { ...b0.commit, size: 0 } }))).toEqual(['malformed 0'])
  })

  test('holes between offsets change nothing', () => {
    const records = lay(a0, a1, a2).map((record) => ({ ...record, offset: record.offset * 10 }))
    expect(acceptedIds(records)).toEqual(['x:0', 'x:1', 'x:2'])
  })

  // A reader that saved the position between two halves of a commit refused what a reader from zero accepted: the saved position
  // must never lie behind an incomplete commit.
  test('the saved position stays at the first record of the open commit', () => {
    const [first, second] = lay(a0, a1) as [ArbitrationRecord, ArbitrationRecord]
    const open = arbitrate(undefined, first, () => undefined).open
    expect(nextOffset(open, first)).toBe(0)
    const further = arbitrate(open, second, () => undefined).open
    expect(nextOffset(further, second)).toBe(0)
    expect(nextOffset(undefined, { ...second, offset: 7 })).toBe(8)
  })
})
