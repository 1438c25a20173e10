import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ZERO_HASH } from '../../src/events/index.ts'
import { type ArbitrationRecord, fateOf } from '../../src/log/index.ts'
import { acceptedOffsets, partitionLog, readAll } from './support/partition-log.ts'

const RUNS = { numRuns: 300 }

/** The commit standing at each (stream, version): what a fate is asked of. */
const standing = (accepted: ArbitrationRecord[]) =>
  new Map(accepted.map((record) => [`${record.stream} ${record.version}`, record.commit.id]))

describe('arbitration over any partition', () => {
  test('accepts what the rule says when the whole partition is in view', () => {
    fc.assert(
      fc.property(partitionLog, (records) => {
        expect(readAll(records).accepted.map((record) => record.offset)).toEqual(acceptedOffsets(records))
      }),
      RUNS,
    )
  })

  test('a reader stopped after any records finds the same outcome, voids included', () => {
    fc.assert(
      fc.property(partitionLog, fc.array(fc.nat(100), { maxLength: 12 }), (records, stops) => {
        expect(readAll(records, new Set(stops))).toEqual(readAll(records))
      }),
      RUNS,
    )
  })

  test('a reader stopped after every single record finds the same outcome', () => {
    fc.assert(
      fc.property(partitionLog, (records) => {
        for (let i = 0; i < records.length; i++) expect(readAll(records, new Set([i]))).toEqual(readAll(records))
      }),
      { numRuns: 60 },
    )
  })

  test('a reader further on agrees with one that is behind', () => {
    fc.assert(
      fc.property(partitionLog, fc.nat(100), (records, length) => {
        const behind = readAll(records.slice(0, length)).accepted
        expect(readAll(records).accepted.slice(0, behind.length)).toEqual(behind)
      }),
      RUNS,
    )
  })

  test('accepted versions have no gap, and each event names the one before it', () => {
    fc.assert(
      fc.property(partitionLog, (records) => {
        const heads = new Map<string, { version: number; hash: string }>()
        for (const { stream, version, previous, hash } of readAll(records).accepted) {
          const head = heads.get(stream) ?? { version: 0, hash: ZERO_HASH }
          expect({ version, previous }).toEqual({ version: head.version + 1, previous: head.hash })
          heads.set(stream, { version, hash })
        }
      }),
      RUNS,
    )
  })

  test('every record is accepted, void or open, and only once', () => {
    fc.assert(
      fc.property(partitionLog, (records) => {
        const { accepted, voids, open } = readAll(records)
        const seen = [...accepted, ...(open?.records ?? [])].map((record) => record.offset)
        expect([...seen, ...voids.flatMap((group) => group.offsets)].sort((a, b) => a - b)).toEqual(
          records.map((record) => record.offset),
        )
      }),
      RUNS,
    )
  })

  test('the fate of a commit follows its id, however many copies were sent, and never changes once decided', () => {
    fc.assert(
      fc.property(partitionLog, fc.nat(100), (records, length) => {
        const early = standing(readAll(records.slice(0, length)).accepted)
        const late = standing(readAll(records).accepted)
        const acceptedIds = new Set(readAll(records).accepted.map((record) => record.commit.id))
        for (const { stream, commit } of records) {
          const place = `${stream} ${commit.base + 1}`
          const fate = fateOf(commit.id, late.get(place))
          expect(fate === 'accepted').toBe(acceptedIds.has(commit.id))
          const before = fateOf(commit.id, early.get(place))
          if (before !== 'open') expect(fate).toBe(before)
        }
      }),
      RUNS,
    )
  })
})
