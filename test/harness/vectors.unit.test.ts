import { fileURLToPath } from 'node:url'
import { describe, it } from 'vitest'
import { casesOf } from '../support/vectors/index.ts'

// Recorded by running the original (test/vectors/harness). Run by hand: `npm run vectors -- test/vectors/harness`.

const recorded = casesOf(fileURLToPath(new URL('../vectors/harness', import.meta.url)))

for (const { group, cases } of recorded)
  describe(group, () => {
    for (const one of cases)
      it(`${one.title} (${one.id})`, async ({ skip }) => {
        const skipped = await one.run()
        if (skipped !== undefined) skip(skipped)
      })
  })
