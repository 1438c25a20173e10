import { openThreadlog, type RunOptions, type RunResult } from '../../../src/index.ts'
import { stateHash } from '../../../src/projections/index.ts'
import { options, serve } from './child.ts'
import { effect } from './ledger.ts'
import { type WorkerOptions, workerAgent } from './worker.ts'

// The public face in a process of its own, asked from outside: `client.ts '{"file": …, "ledger": …}'`.

const o = options<WorkerOptions & { file: string }>()
const agent = workerAgent(o)
const threads = await openThreadlog({ log: `sqlite:${o.file}`, application: 'shop', agents: [agent] })

const brief = (result: RunResult | undefined) =>
  result && {
    status: result.status,
    runId: result.runId,
    version: result.version,
    output: result.output,
    failure: result.failure,
  }

serve({
  run: async (run: RunOptions) => brief(await threads.run('worker', run)),
  recover: async (thread: string) => brief(await threads.thread(thread).recover()),
  cancel: (thread: string) => threads.thread(thread).cancel(),
  start: async (run: { thread: string; input: string; commandId?: string }) =>
    (await threads.start({ agent: 'worker', ...run })).runId,
  submit: async (result: string) => (await threads.submit(result)).verdict,
  approve: async (wait: { id: string; digest: string }) => (await threads.approve(wait.id, { digest: wait.digest })).verdict,
  deny: async (wait: { id: string }) => (await threads.deny(wait.id)).verdict,
  /** Asks for runs; when the first is acknowledged, writes down all that are, and is gone. */
  startAndDie: async (runs: { thread: string; input: string }[]) => {
    const asked = runs.map(async ({ thread, input }) => {
      const { runId } = await threads.start({ agent: 'worker', thread, input })
      effect(o.ledger, { tool: 'acknowledged', call: thread, key: runId })
    })
    await Promise.race(asked)
    process.kill(process.pid, 'SIGKILL')
  },
  startMany: async (runs: { thread: string; input: string }[]) =>
    void (await Promise.all(runs.map((run) => threads.start({ agent: 'worker', ...run })))),
  serve: async (engine: { concurrency?: number } | null) => void (await threads.serve({ sweepMs: 100, ...engine })),
  /** How often the model of this process was asked. */
  asked: () => agent.model.requests.length,
  hash: async (thread: string) => stateHash(await threads.store.load(threads.thread(thread).stream)),
  owner: () => threads.backend.owners.self,
})
