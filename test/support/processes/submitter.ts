import type { EventType } from '../../../src/events/index.ts'
import { openThreadlog } from '../../../src/index.ts'
import { openLog } from '../../../src/log/index.ts'
import { gatedLog } from '../gated-log.ts'
import { options, serve } from './child.ts'
import { submittingAgent } from './submitting.ts'

// An engine whose tool submits jobs, as its own process, that stands still once an event of one type is in the log, or in the middle of a
// submission: `submitter.ts '{"file": …, "ledger": …, "after": …}'`.

const o = options<{ file: string; ledger: string; after?: EventType; hangs?: boolean }>()
const log = await openLog(`sqlite:${o.file}`)
const gate = o.after && gatedLog(log, o.after, { after: true })
const submitted = Promise.withResolvers<void>()
const agent = submittingAgent(o.ledger, async () => {
  submitted.resolve()
  if (o.hangs) await new Promise(() => {})
})
const threads = await openThreadlog({ log: gate?.log ?? log, application: 'shop', agents: [agent] })
await threads.serve({ sweepMs: 100 })

serve({ reached: () => (o.hangs ? submitted.promise : gate?.reached) })
