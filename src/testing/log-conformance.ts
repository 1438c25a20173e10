import { appendCases } from './log-conformance/append-cases.ts'
import { contentCases } from './log-conformance/content-cases.ts'
import { externalCases } from './log-conformance/external-cases.ts'
import { lifetimeCases } from './log-conformance/lifetime-cases.ts'
import { processCases } from './log-conformance/process-cases.ts'
import { projectorCases } from './log-conformance/projector-cases.ts'
import { readCases } from './log-conformance/read-cases.ts'
import { type LogCase, type LogSubject, runCase, type TestApi } from './log-conformance/suite.ts'
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

/**
 * Runs the whole suite on one kind of log. A case that needs a trait the log does not name is skipped by the name of that trait;
 * nothing else skips.
 * @param api `describe` and `test` of the runner
 */
export function logConformance({ describe, test }: TestApi, subject: LogSubject): void {
  describe(`log: ${subject.name}`, () => {
    for (const [topic, cases] of Object.entries(logCases)) describe(topic, () => cases.forEach(declare))
  })

  function declare(entry: LogCase): void {
    const run = () => runCase(subject, entry)
    if (entry.needs === undefined || subject.traits.includes(entry.needs)) test(entry.name, run, TIMEOUT)
    else test.skip(`${entry.name} (needs the trait ${entry.needs})`, run)
  }
}
