import { expect, test } from 'vitest'
import { cli } from '../../fuzz/borders/cli.ts'
import { database } from '../../fuzz/borders/database.ts'
import { http } from '../../fuzz/borders/http.ts'
import { views } from '../../fuzz/borders/views.ts'
import type { Border } from '../../fuzz/kit/border.ts'
import { run } from '../../fuzz/kit/run.ts'
import { HANG_MS } from '../support/hang.ts'

// About a second of each; `npm run fuzz -- <border> --seconds 60` is the real thing.
const borders: [Border, number][] = [
  [http as Border, 100],
  [views as Border, 20],
  [cli as Border, 60],
  [database as Border, 6],
]
test.each(borders.map(([border, cases]) => ({ name: border.name, border, cases })))(
  '$name: no promise is broken',
  async ({ border, cases }) => {
    const report = await run(border, { seed: 'smoke', cases, ms: HANG_MS, minimiseMs: 0 })
    expect(report.found).toEqual([])
    expect(report.cases).toBe(cases)
  },
)
