import { appendCases } from './log-conformance/append-cases.ts'
import { contentCases } from './log-conformance/content-cases.ts'
import { externalCases } from './log-conformance/external-cases.ts'
import { lifetimeCases } from './log-conformance/lifetime-cases.ts'
import { processCases } from './log-conformance/process-cases.ts'
import { projectorCases } from './log-conformance/projector-cases.ts'
import { readCases } from './log-conformance/read-cases.ts'
import { type LogCase, type LogSubject, type LogTrait, runCase, type TestApi } from './log-conformance/suite.ts'
import { topicCases } from './log-conformance/topic-cases.ts'

export type { Arena, LogCase, LogPlace, LogSubject, LogTrait, TestApi } from './log-conformance/suite.ts'

/** What every log must do, by subject. Each case runs on a fresh log. */
export const logCases: Readonly<Record<string, readonly LogCase[]>> = {
  append: appendCases,
  read: readCases,
  topics: topicCases,
  content: contentCases,
  projectors: projectorCases,
  lifetime: lifetimeCases,
  processes: processCases,
  outside: externalCases,
}

/** Milliseconds one case may take. */
const TIMEOUT = 30_000

/** What of the suite one kind of log runs. */
export interface LogCoverage {
  /** Cases that run. */
  cases: number
  /** Cases that do not apply, by the trait the log lacks. */
  lacking: Partial<Record<LogTrait, number>>
}

/**
 * Declares every case that applies to one kind of log. One that needs a trait the log does not have is no test of it and is not declared:
 * compare what is returned, so that a case which silently stopped to apply is seen.
 * @param api `describe` and `test` of the runner
 */
export function logConformance({ describe, test }: TestApi, subject: LogSubject): LogCoverage {
  const coverage: LogCoverage = { cases: 0, lacking: {} }
  const applies = ({ needs }: LogCase): boolean => {
    if (needs === undefined || subject.traits.includes(needs)) return true
    coverage.lacking[needs] = (coverage.lacking[needs] ?? 0) + 1
    return false
  }
  // Counted here and not where they are declared: a runner may call the bodies later.
  const suite = Object.entries(logCases).map(([topic, cases]) => [topic, cases.filter(applies)] as const)
  describe(`log: ${subject.name}`, () => {
    for (const [topic, cases] of suite)
      if (cases.length > 0)
        describe(topic, () => {
          for (const entry of cases) test(entry.name, () => runCase(subject, entry), TIMEOUT)
        })
  })
  for (const [, cases] of suite) coverage.cases += cases.length
  return coverage
}
