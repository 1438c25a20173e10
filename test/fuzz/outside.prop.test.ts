import { expect, test } from 'vitest'
import { cli } from '../../fuzz/borders/cli.ts'
import { database } from '../../fuzz/borders/database.ts'
import { http } from '../../fuzz/borders/http.ts'
import { views } from '../../fuzz/borders/views.ts'
import type { Border } from '../../fuzz/kit/border.ts'
import { run } from '../../fuzz/kit/run.ts'

// A second of each; `npm run fuzz -- <border> --seconds 60` is the real thing.
test.each([http, views, cli, database] as Border[])('$name: no promise is broken', async (border) => {
  const report = await run(border, { seed: 'smoke', ms: 1_200, minimiseMs: 0 })
  expect(report.found).toEqual([])
  expect(report.cases).toBeGreaterThan(2)
})
