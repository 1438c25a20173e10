import { openThreadlog } from '../../../src/index.ts'
import { options, serve } from './child.ts'
import { type OrdersOptions, ordersAgent } from './orders.ts'

// An engine as its own process: `engine.ts '{"file": …, "ledger": …}'`.

const o = options<OrdersOptions & { file: string; concurrency?: number; sweepMs?: number }>()
const threads = await openThreadlog({ log: `sqlite:${o.file}`, application: 'shop', agents: [ordersAgent(o)] })
const engine = await threads.serve({
  concurrency: o.concurrency,
  sweepMs: o.sweepMs,
  onProblem: (problem) => process.send?.({ problem }),
})

serve({
  owner: () => threads.backend.owners.self,
  closeEngine: () => engine.close(),
  close: () => threads.close(),
})
