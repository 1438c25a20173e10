import { systemIds } from '../../../src/base/index.ts'
import { openThreadlog } from '../../../src/index.ts'
import { openLog, type Projector } from '../../../src/log/index.ts'
import { options, serve } from '../processes/child.ts'
import { workerAgent } from '../processes/worker.ts'

/** When the engine dies: its wait has an id, the suspension is being written, or it is written and nothing has followed. */
export type Moment = 'id-made' | 'in-commit' | 'committed'

// An engine that kills itself around a suspension: `dying.ts '{"file": …, "ledger": …, "moment": …}'`.

const o = options<{ file: string; ledger: string; moment: Moment }>()
const die = (): never => {
  process.kill(process.pid, 'SIGKILL')
  for (;;);
}

const deadly: Projector = {
  name: 'deadly',
  version: 1,
  schema: '',
  drop: '',
  apply(_, events) {
    if (events.some(({ event }) => event?.type === 'continuation.armed/1')) die()
  },
}

const backend = await openLog(`sqlite:${o.file}`)
const { events } = backend
const log = new Proxy(backend, {
  get: (target, name) => (name === 'events' ? watched : Reflect.get(target, name, target)),
})
const watched: typeof events = new Proxy(events, {
  get: (target, name) => {
    const value: unknown = Reflect.get(target, name, target)
    if (name !== 'append') return typeof value === 'function' ? value.bind(target) : value
    return async (commit: Parameters<typeof events.append>[0]) => {
      const appended = await target.append(commit)
      if (o.moment === 'committed' && commit.records.some(({ event }) => event.type === 'run.suspended/1')) die()
      return appended
    }
  },
})
const ids = { ...systemIds, continuation: () => (o.moment === 'id-made' ? die() : systemIds.continuation()) }
const threads = await openThreadlog({ log, application: 'shop', agents: [workerAgent(o)], ids })
if (o.moment === 'in-commit') await backend.install([deadly])
await threads.serve({ sweepMs: 50 })
serve({})
