import { describe, expect, test } from 'vitest'
import {
  type Mutation,
  mutations,
  type Planted,
  ProtocolFailure,
  type ProtocolFailureCode,
  runProtocolModel,
} from '../../../src/testing/index.ts'

const SCHEDULES = 4_000
const FEW_STEPS = 8

function find(planted: Planted): ProtocolFailure {
  try {
    runProtocolModel({ schedules: SCHEDULES, planted })
  } catch (error) {
    if (error instanceof ProtocolFailure) return error
    throw error
  }
  throw new Error(`${planted.mutations} was not found in ${SCHEDULES} schedules`)
}

describe('a fault planted in the writers and readers is found', () => {
  test.each(mutations)('%s', (mutation) => {
    const { schedule } = find({ mutations: [mutation] })
    expect(schedule.steps.length).toBeLessThanOrEqual(FEW_STEPS)
  })
})

/** A fault of the code itself: then no reader is without it, and comparing readers finds nothing. */
describe('a fault that every reader has is found', () => {
  const found: [Mutation, ProtocolFailureCode[]][] = [
    ['accept-without-reducer', ['version-gap']],
    ['base-unchecked', ['version-gap']],
    ['hash-unchecked', ['version-gap']],
    ['version-free-is-enough', ['version-gap']],
    ['incomplete-accepted', ['rule-differs']],
    ['interleaving-ignored', ['restart-differs', 'rule-differs']],
    ['restart-behind-open-commit', ['restart-differs']],
    ['unreadable-skipped', ['quarantine-differs']],
    ['repair-not-refolded', ['quarantine-differs']],
  ]
  test.each(found)('%s', (mutation, codes) => {
    const { code, schedule } = find({ mutations: [mutation], everywhere: true })
    expect(codes).toContain(code)
    expect(schedule.steps.length).toBeLessThanOrEqual(FEW_STEPS)
  })
})
