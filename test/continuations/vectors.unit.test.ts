import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { groups, openStore, runVector } from '../support/vectors/continuation/index.ts'

// Recorded by running the original (test/vectors/continuation). Where a run differs from a vector marked as a quirk, as Python's or as the
// library's own, it is skipped, as are values this language does not have.

for (const log of ['memory', 'sqlite'] as const)
  for (const { group, fixture, vectors } of groups())
    describe(`${log}: ${group}`, () => {
      for (const vector of vectors)
        it(`${vector.id}: ${vector.title}`, async ({ skip }) => {
          const folder = log === 'sqlite' ? mkdtempSync(join(tmpdir(), 'threadlog-vectors-')) : undefined
          try {
            const open = () => openStore(folder ? `sqlite:${join(folder, 'log.db')}` : 'memory')
            const skipped = await runVector(vector, fixture, open)
            if (skipped !== undefined) skip(skipped)
          } finally {
            if (folder) rmSync(folder, { recursive: true })
          }
        })
    })
