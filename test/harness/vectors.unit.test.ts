import { fileURLToPath } from 'node:url'
import { describe, it } from 'vitest'
import { casesOf } from '../support/vectors/index.ts'

// Recorded by running the original (test/vectors/harness). Run by hand: `npm run vectors -- test/vectors/harness`.

/** Groups whose cases all pass, or are marked as the original's own. */
const GROUPS = new Set([
  ...['capability-state', 'deferred-value', 'fork', 'preflight', 'question-answer', 'remaining', 'result'],
  ...['state-invalid', 'state-roundtrip', 'store', 'thread-id'],
])

const recorded = casesOf(fileURLToPath(new URL('../vectors/harness', import.meta.url)))

for (const { group, cases } of recorded.filter(({ group }) => GROUPS.has(group)))
  describe(group, () => {
    for (const one of cases)
      it(`${one.title} (${one.id})`, async ({ skip }) => {
        const skipped = await one.run()
        if (skipped !== undefined) skip(skipped)
      })
  })
