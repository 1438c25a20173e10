// A process that finds a log whose engine was killed: says when it serves, when it knows all waits, and when runs resume.
//   node bench/recovery-process.ts <log> [results]
// With `results` nobody asks for the waits, since their results are there.
import { openThreadlog } from '../src/index.ts'
import { now } from './statistics.ts'
import { workAgent } from './workload.ts'

const resumed: number[] = []
const agent = workAgent(() => resumed.push(now()))
const threads = await openThreadlog({ log: process.argv[2] as 'memory', application: 'bench', agents: [agent] })
const opened = now()
const engine = await threads.serve({ concurrency: 256, http: { token: 'bench' } })
const serving = now()
let waits = 0
let some: string | undefined
if (process.argv[3] !== 'results')
  for await (const { id } of threads.waits()) {
    waits++
    some ??= id
  }
process.send?.({ opened, serving, known: now(), waits, some, url: `${engine.http?.url}/results` })
process.on('message', () => process.send?.({ resumed: { count: resumed.length, first: resumed[0], last: resumed.at(-1) } }))
process.on('disconnect', () => process.exit())
