import type { EventType } from '../../../src/events/index.ts'
import { openThreadlog } from '../../../src/index.ts'
import { openLog } from '../../../src/log/index.ts'
import { gatedLog } from '../gated-log.ts'
import { options, serve } from './child.ts'
import { type WorkerOptions, workerAgent } from './worker.ts'

// An engine as its own process that stands still before or behind its first commit with an event of one type: `gated-engine.ts '{"file": …, "at": …}'`.

const o = options<WorkerOptions & { file: string; at: EventType; after: boolean }>()
const gate = gatedLog(await openLog(`sqlite:${o.file}`), o.at, { after: o.after })
const threads = await openThreadlog({ log: gate.log, application: 'shop', agents: [workerAgent(o)] })
await threads.serve({ sweepMs: 10 })

serve({ reached: () => gate.reached })
