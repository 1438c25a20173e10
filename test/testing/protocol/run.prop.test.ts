import { afterAll, describe, expect, test } from 'vitest'
import { formatReport, mergeReports, type ProtocolReport, runProtocolModel } from '../../../src/testing/index.ts'

const SCHEDULES = 100_000
const BLOCK = 5_000

describe('the commit protocol under 100,000 schedules', () => {
  const reports: ProtocolReport[] = []
  // A failure names its seed and prints a test that can be pasted into regressions.unit.test.ts.
  const blocks = Array.from({ length: SCHEDULES / BLOCK }, (_, n) => 1 + n * BLOCK)
  test.each(blocks)('holds from seed %i', (seed) => {
    reports.push(runProtocolModel({ seed, schedules: BLOCK, steps: 40, writers: 3, readers: 2, faults: 3 }))
  })

  test('each has its 40 steps and 3 faults, and everything that can happen has happened', () => {
    const { schedules, steps, faults, answers, commits } = mergeReports(reports)
    expect(schedules).toBe(SCHEDULES)
    expect(steps.fewest).toBeGreaterThanOrEqual(40)
    expect(faults.fewest).toBeGreaterThanOrEqual(3)
    const often = SCHEDULES / 50
    for (const tally of [steps.byKind, faults.byKind, answers, commits.void])
      for (const [name, times] of Object.entries(tally)) expect(times, name).toBeGreaterThan(often)
    expect(Object.keys(faults.byKind)).toHaveLength(7 + 13 + 2)
    expect(Object.keys(commits.void)).toHaveLength(7)
    expect(Object.keys(answers)).toHaveLength(8)
    expect(commits.revived).toBeGreaterThan(often)
  })

  afterAll(() => console.log(formatReport(mergeReports(reports))))
})
