import { events } from '../../fuzz/borders/events.ts'
import { model } from '../../fuzz/borders/model.ts'
import { results } from '../../fuzz/borders/results.ts'
import { schemas } from '../../fuzz/borders/schemas.ts'
import { state } from '../../fuzz/borders/state.ts'
import type { Border } from '../../fuzz/kit/border.ts'
import { smoke } from './smoke.ts'

smoke([
  [results as Border, 200],
  [state as Border, 20],
  [model as Border, 10],
  [schemas as Border, 40],
  [events as Border, 300],
])
