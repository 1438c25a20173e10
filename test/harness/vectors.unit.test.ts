import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, it } from 'vitest'
import { openSqliteLog } from '../../src/log/index.ts'
import { type Case, casesOf } from '../support/vectors/index.ts'

// Recorded by running the original (test/vectors/harness). Run by hand: `npm run vectors -- test/vectors/harness`.

const folder = fileURLToPath(new URL('../vectors/harness', import.meta.url))
const RUNS = ['run', 'export', 'stream']

const played = ({ id, title, run }: Case) =>
  it(`${title} (${id})`, async ({ skip }) => {
    const skipped = await run()
    if (skipped !== undefined) skip(skipped)
  })

for (const { group, cases } of casesOf(folder)) describe(group, () => cases.forEach(played))

const directory = mkdtempSync(join(tmpdir(), 'threadlog-vectors-'))
const file = await openSqliteLog({ file: join(directory, 'log.db') })
afterAll(async () => {
  await file.close()
  rmSync(directory, { recursive: true })
})

for (const { group, cases } of casesOf(folder, file)) {
  const running = cases.filter(({ kind }) => RUNS.includes(kind))
  if (running.length > 0) describe(`${group}, in a file`, () => running.forEach(played))
}
