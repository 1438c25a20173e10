import { openThreadlog, type RunOptions } from '../../../src/index.ts'
import { openKafkaLog } from '../../../src/log/kafka/index.ts'
import { options, serve } from '../../support/processes/child.ts'
import { type WorkerOptions, workerAgent } from '../../support/processes/worker.ts'

// A node of its own: a replica in memory, and whatever it is asked for. `ownership-node.ts '{"brokers": […], "prefix": …, "ledger": …}'`.

const o = options<WorkerOptions & { brokers: string[]; prefix: string }>()
const log = await openKafkaLog({ brokers: o.brokers, prefix: o.prefix })
const agent = workerAgent(o)
const threads = await openThreadlog({ log, application: 'shop', agents: [agent] })
const problems: string[] = []

serve({
  serve: async () => {
    await threads.serve({ sweepMs: 200, onProblem: ({ where, code }) => problems.push(`${where} ${code}`) })
  },
  share: () => [...(log.assignment?.share ?? [])],
  owner: () => log.owners.self,
  /** How often the model of this process was asked. */
  asked: () => agent.model.requests.length,
  problems: () => problems,
  run: async (run: RunOptions) => (await threads.run('worker', run)).status,
  submit: async (result: string) => (await threads.submit(result)).verdict,
  approve: async (wait: { id: string; digest: string }) => (await threads.approve(wait.id, { digest: wait.digest })).verdict,
  start: async (run: { thread: string; input: string }) => (await threads.start({ agent: 'worker', ...run })).runId,
  /** Closes all, and lets go of the parent: what still runs then keeps the process up. */
  close: async () => {
    await threads.close()
    await log.close()
    setImmediate(() => process.removeAllListeners('disconnect').disconnect())
  },
})
