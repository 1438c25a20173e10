// Lets threads wait for that many answers, then reads pages of them and counts them.
//   node bench/listing-process.ts <options as JSON>
import { z } from 'zod'
import { defineAgent, externalTool, openThreadlog } from '../src/index.ts'
import { scriptedModel } from '../src/models/index.ts'
import { countWaits, listWaits, pendingOfProvider, type WaitRow } from '../src/projections/index.ts'
import { now, quantile } from './statistics.ts'

const { log, waits } = JSON.parse(process.argv[2] ?? '{}') as { log: string; waits: number }

/** Waits of one thread. */
const PER_THREAD = 50
/** Rows of a page. */
const PAGE = 100
/** Pages read at each end. */
const TIMES = 200
const PROVIDERS = ['alpha', 'beta', 'gamma', 'delta']
const APPLICATION = 'bench'

const tools = PROVIDERS.map((provider) =>
  externalTool({ name: provider, description: 'asks it', provider, input: z.object({ n: z.int() }) }),
)
const call = (i: number) => ({ tool_call: { id: `c${i}`, name: PROVIDERS[i % PROVIDERS.length] ?? '', args: { n: i } } })
const agent = defineAgent({
  name: 'asker',
  revision: '1',
  model: scriptedModel(() => ({ parts: Array.from({ length: Math.min(PER_THREAD, waits) }, (_, i) => call(i)) })),
  tools,
})
const threads = await openThreadlog({ log: log as 'memory', application: APPLICATION, agents: [agent] })
const { tables } = threads.backend
const begun = now()
let opened = 0
const open = async () => {
  while (opened < waits) {
    const thread = `thread_${opened}`
    opened += PER_THREAD
    await threads.run(agent, { thread, input: 'go' })
  }
}
await Promise.all(Array.from({ length: 16 }, open))
const filled = now() - begun

/** Median milliseconds of one of `TIMES` reads. */
function timed(read: () => unknown[]): number {
  const taken: number[] = []
  for (let i = 0; i < TIMES + 20; i++) {
    const from = now()
    if (read().length === 0) throw new Error('An empty page.')
    if (i >= 20) taken.push(now() - from)
  }
  return quantile(taken, 0.5) ?? 0
}

const provider = PROVIDERS[0] ?? ''
const all = { application: APPLICATION, limit: PAGE }
const last = (walk: (after: WaitRow | undefined) => WaitRow[]): WaitRow => {
  let before: WaitRow | undefined
  for (let after: WaitRow | undefined; ; ) {
    const page = walk(after)
    if (page.length < PAGE) return (page.length > 1 ? after : before) as WaitRow
    before = after
    after = page.at(-1)
  }
}
const byId = (after: WaitRow | undefined, limit = PAGE) =>
  pendingOfProvider(tables, { application: APPLICATION, provider, after: after?.continuation_id ?? null, limit })
const ofOne = (after: WaitRow | undefined) => listWaits(tables, { ...all, provider, after })
const ofAll = (after: WaitRow | undefined) => listWaits(tables, { ...all, after })

/** The first page, and the last one with a whole page before it, read back to back. */
function pages(walk: (after: WaitRow | undefined) => WaitRow[]) {
  const end = last(walk)
  return { first: timed(() => walk(undefined)), last: timed(() => walk(end)) }
}

const ids = pages(byId)
const age = pages(ofOne)
const mixed = pages(ofAll)
const from = now()
const counts = countWaits(tables, { application: APPLICATION })
const count = now() - from
const counted = counts.reduce((sum, row) => sum + row.waits, 0)
await threads.close()
process.send?.({
  per_second: PAGE / (ids.last / 1e3),
  p50_ms: ids.last,
  p99_ms: null,
  rows_per_second: null,
  details: {
    waits: counted,
    ...{ by_id_first_ms: ids.first, by_id_last_ms: ids.last },
    ...{ by_age_first_ms: age.first, by_age_last_ms: age.last },
    ...{ all_first_ms: mixed.first, all_last_ms: mixed.last },
    ...{ count_ms: count, filled_s: filled / 1e3 },
  },
})
process.disconnect()
