import { expect, test } from 'vitest'
import { events } from '../../fuzz/borders/events.ts'
import { model } from '../../fuzz/borders/model.ts'
import { results } from '../../fuzz/borders/results.ts'
import { schemas } from '../../fuzz/borders/schemas.ts'
import { state } from '../../fuzz/borders/state.ts'
import type { Border } from '../../fuzz/kit/border.ts'
import { run } from '../../fuzz/kit/run.ts'

// A second of each; `npm run fuzz -- <border> --seconds 60` is the real thing.
test.each([results, state, model, schemas, events] as Border[])('$name: no promise is broken', async (border) => {
  const report = await run(border, { seed: 'smoke', ms: 1_000, minimiseMs: 0 })
  expect(report.found).toEqual([])
  expect(report.cases).toBeGreaterThan(5)
})
