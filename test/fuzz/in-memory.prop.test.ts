import { expect, test } from 'vitest'
import { events } from '../../fuzz/borders/events.ts'
import { model } from '../../fuzz/borders/model.ts'
import { results } from '../../fuzz/borders/results.ts'
import { schemas } from '../../fuzz/borders/schemas.ts'
import { state } from '../../fuzz/borders/state.ts'
import type { Border } from '../../fuzz/kit/border.ts'
import { run } from '../../fuzz/kit/run.ts'
import { HANG_MS } from '../support/hang.ts'

// About a second of each; `npm run fuzz -- <border> --seconds 60` is the real thing.
const borders: [Border, number][] = [
  [results as Border, 200],
  [state as Border, 20],
  [model as Border, 10],
  [schemas as Border, 40],
  [events as Border, 300],
]
test.each(borders.map(([border, cases]) => ({ name: border.name, border, cases })))(
  '$name: no promise is broken',
  async ({ border, cases }) => {
    const report = await run(border, { seed: 'smoke', cases, ms: HANG_MS, minimiseMs: 0 })
    expect(report.found).toEqual([])
    expect(report.cases).toBe(cases)
  },
)
