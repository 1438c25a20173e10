import { cli } from '../../fuzz/borders/cli.ts'
import { database } from '../../fuzz/borders/database.ts'
import { http } from '../../fuzz/borders/http.ts'
import { views } from '../../fuzz/borders/views.ts'
import type { Border } from '../../fuzz/kit/border.ts'
import { smoke } from './smoke.ts'

smoke([
  [http as Border, 100],
  [views as Border, 20],
  [cli as Border, 60],
  [database as Border, 6],
])
