import { expect, test } from 'vitest'
import type { Border } from '../../fuzz/kit/border.ts'
import { run } from '../../fuzz/kit/run.ts'
import { HANG_MS } from '../support/hang.ts'

/** A number of cases of each border, about a second; `npm run fuzz -- <border> --seconds 60` is the real thing. */
export const smoke = (borders: readonly (readonly [Border, number])[]): void =>
  test.each(borders.map(([border, cases]) => ({ name: border.name, border, cases })))(
    '$name: no promise is broken',
    async ({ border, cases }) => {
      const report = await run(border, { seed: 'smoke', cases, ms: HANG_MS, minimiseMs: 0 })
      expect(report.found).toEqual([])
      expect(report.cases).toBe(cases)
    },
  )
