import { describe, expect, test } from 'vitest'
import { ProtocolFailure, type ProtocolSchedule, replayProtocol, runProtocolModel } from '../../../src/testing/index.ts'

function failureOf(run: () => unknown): ProtocolFailure {
  try {
    run()
  } catch (error) {
    if (error instanceof ProtocolFailure) return error
    throw error
  }
  throw new Error('It held.')
}

const planted = { mutations: ['fate-from-acknowledged-offset'] } as const
const seeded = () => failureOf(() => runProtocolModel({ seed: 100, schedules: 200, planted }))

describe('a failure of the model', () => {
  test('names the seed that leads to it again', () => {
    const first = seeded()
    const again = failureOf(() => runProtocolModel({ seed: first.seed, schedules: 1, planted }))
    expect(first.seed).toBeGreaterThanOrEqual(100)
    expect(again.message).toBe(first.message)
    expect(first.message).toContain(`Seed ${first.seed}`)
  })

  test('has a schedule from which no step can be left out', () => {
    const { schedule, code } = seeded()
    expect(failureOf(() => replayProtocol(schedule, planted)).code).toBe(code)
    for (const [i] of schedule.steps.entries()) {
      const fewer: ProtocolSchedule = { ...schedule, steps: schedule.steps.toSpliced(i, 1) }
      expect(codeOf(() => replayProtocol(fewer, planted))).not.toBe(code)
    }
  })

  test('prints a test that fails until the fault is gone', () => {
    const { regressionTest, message, code } = seeded()
    expect(message).toContain(regressionTest)
    expect(codeOf(() => runSource(regressionTest))).toBe(code)
    runSource(regressionTest.replace(/, \{ mutations: .*\)$/m, ')'))
  })

  test('says the same when it is replayed twice', () => {
    const { schedule } = seeded()
    const messages = [1, 2].map(() => failureOf(() => replayProtocol(schedule, planted)).message)
    expect(messages[0]).toBe(messages[1])
  })
})

const codeOf = (run: () => unknown): string | undefined => {
  try {
    run()
    return undefined
  } catch (error) {
    return error instanceof ProtocolFailure ? error.code : String(error)
  }
}

/** Runs the source of a test, as if it had been pasted into a file. */
function runSource(source: string): void {
  new Function('test', 'replayProtocol', source)((_name: string, body: () => void) => body(), replayProtocol)
}

describe('a schedule', () => {
  test('may hold steps that have nothing to act on', () => {
    const { records } = replayProtocol({
      writers: 1,
      readers: 1,
      streams: 1,
      records: 'light',
      steps: [
        ['flush', 0, 'torn', 9],
        ['flush', 7, 'delivered', 0],
        ['deliver', 3],
        ['read', 9, 1],
        ['rewind', 9],
        ['kill', 9],
        ['save', 1],
        ['command', 0, 9, 'open', 1, 0],
        ['disturb', 'copy', 0, 0],
        ['disturb', 'ahead', 0, 0],
        ['disturb', 'garbage', 9, 0],
      ],
    })
    expect(records).toBe(0)
  })
})
