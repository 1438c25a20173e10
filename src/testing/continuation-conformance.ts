import { claimCases } from './continuation-conformance/claim-cases.ts'
import { leaseCases } from './continuation-conformance/lease-cases.ts'
import { outcomeCases } from './continuation-conformance/outcome-cases.ts'
import { readCases, replicaCases } from './continuation-conformance/read-cases.ts'
import { runCases } from './continuation-conformance/run-cases.ts'
import { type ContinuationCase, type ContinuationSubject, runCase } from './continuation-conformance/suite.ts'
import { suspendCases } from './continuation-conformance/suspend-cases.ts'

export type {
  ContinuationCase,
  ContinuationHost,
  ContinuationPlace,
  ContinuationSubject,
  ContinuationTrait,
  RunView,
} from './continuation-conformance/suite.ts'

/** What every store of continuations must do, by subject. Each case runs on a fresh place. */
export const continuationCases: Readonly<Record<string, readonly ContinuationCase[]>> = {
  runs: runCases,
  suspend: suspendCases,
  outcomes: outcomeCases,
  claims: claimCases,
  leases: leaseCases,
  reads: readCases,
  replicas: replicaCases,
}

/** Milliseconds one case may take. */
const TIMEOUT = 30_000

/**
 * Runs the suite on one kind of store. Only the cases apply whose trait the subject names; a store of threadlog has all traits that its log
 * allows.
 * @param api `describe` and `test` of the runner
 */
export function continuationConformance(
  api: {
    describe(name: string, body: () => void): unknown
    test(name: string, body: () => Promise<void>, timeout?: number): unknown
  },
  subject: ContinuationSubject,
): void {
  const applies = ({ needs }: ContinuationCase) => needs === undefined || subject.traits.includes(needs)
  api.describe(`continuations: ${subject.name}`, () => {
    for (const [topic, cases] of Object.entries(continuationCases))
      if (cases.some(applies))
        api.describe(topic, () => {
          for (const entry of cases.filter(applies)) api.test(entry.name, () => runCase(subject, entry), TIMEOUT)
        })
  })
}
