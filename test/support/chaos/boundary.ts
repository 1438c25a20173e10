import { openThreadlog } from '../../../src/index.ts'
import { openLog, type Projector } from '../../../src/log/index.ts'
import { options, serve } from '../processes/child.ts'
import { workerAgent } from '../processes/worker.ts'
import { live } from './life.ts'

/** Which side of an append the engine dies on: nothing is sent yet, it is being written, it is written and nobody has heard of it. */
export type Side = 'before' | 'within' | 'after'

// An engine that lives the whole life of a thread when it is told to, and kills itself at its n-th commit:
// `boundary.ts '{"file": …, "ledger": …, "side": …, "commit": …}'`.

const o = options<{ file: string; ledger: string; side: Side; commit: number }>()
const die = (): never => {
  process.kill(process.pid, 'SIGKILL')
  for (;;);
}

let accepted = 0
const at = (side: Side) => side === o.side && accepted + 1 === o.commit

const deadly: Projector = {
  name: 'deadly',
  version: 1,
  schema: '',
  drop: '',
  apply: () => void (at('within') && die()),
}

const backend = await openLog(`sqlite:${o.file}`)
const { events } = backend
const watched: typeof events = new Proxy(events, {
  get: (target, name) => {
    const value: unknown = Reflect.get(target, name, target)
    if (name !== 'append') return typeof value === 'function' ? value.bind(target) : value
    return async (commit: Parameters<typeof events.append>[0]) => {
      if (at('before')) die()
      const appended = await target.append(commit)
      if (appended.accepted && at('after')) die()
      if (appended.accepted) accepted++
      return appended
    }
  },
})
const log = new Proxy(backend, {
  get: (target, name) => (name === 'events' ? watched : Reflect.get(target, name, target)),
})
const threads = await openThreadlog({ log, application: 'shop', agents: [workerAgent(o)] })
// Last of all projectors, so that the tables and topics of this package are written when it dies.
await backend.install([deadly])
serve({ live: async () => (await live(threads)).status })
