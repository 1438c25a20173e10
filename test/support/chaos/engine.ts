import { flushCompileCache } from 'node:module'
import { openThreadlog } from '../../../src/index.ts'
import { options, serve } from '../processes/child.ts'
import { type StormAgentOptions, stormAgent } from './agent.ts'
import { type LogAddress, openGround } from './ground.ts'

// An engine with its HTTP intake, as its own process: `engine.ts '{"log": …, "ledger": …, "paceMs": …, "token": …}'`.

const o = options<StormAgentOptions & { log: LogAddress; token: string; concurrency?: number }>()
const backend = await openGround(o.log)
const threads = await openThreadlog({ log: backend, application: 'storm', agents: [stormAgent(o)] })
const problems: Record<string, number> = {}
const engine = await threads.serve({
  concurrency: o.concurrency ?? 32,
  sweepMs: 250,
  http: { token: o.token },
  onProblem: ({ where, code }) => {
    const what = `${where.split(' ')[0]} ${code}`
    problems[what] = (problems[what] ?? 0) + 1
  },
})

// A process that is killed leaves no cache behind by itself.
flushCompileCache()
serve({
  about: () => ({ url: engine.http?.url, owner: threads.backend.owners.self }),
  problems: () => problems,
  close: async () => {
    await threads.close()
    await backend.close()
  },
})
