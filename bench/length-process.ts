// Writes one long thread, then measures what one more event costs on it.
//   node bench/length-process.ts <options as JSON>
import { Payload } from '../src/base/index.ts'
import { threadStream } from '../src/events/index.ts'
import { defineAgent, openThreadlog, type RecordedEvent } from '../src/index.ts'
import { scriptedModel } from '../src/models/index.ts'
import { emptyFold, foldRecord } from '../src/projections/index.ts'
import { now, quantile } from './statistics.ts'
import { byCommit, keyOf, nothingWritten, write } from './templates.ts'

const { log, events } = JSON.parse(process.argv[2] ?? '{}') as { log: string; events: number }

/** Events of a commit while the thread is written: one checkpoint each. */
const PER_COMMIT = 400
/** What is measured at the end of the thread. */
const RUNS = 20
const STEERS = 200

const agent = defineAgent({
  name: 'talker',
  revision: '1',
  model: scriptedModel(() => ({ parts: [{ text: 'y'.repeat(100) }] })),
  tools: [],
})
const threads = await openThreadlog({ log: log as 'memory', application: 'bench', agents: [agent] })
const key = keyOf(0)
const stream = threadStream(key)
const { events: eventLog } = threads.backend
const say = () => threads.run(agent, { thread: key.thread, input: 'x'.repeat(100) })

await say()
const opened = await recorded()
await say()
const turn = byCommit((await recorded()).slice(opened.length)).flat()
const thread = nothingWritten(key)
const head = await eventLog.head(stream)
thread.version = head?.version ?? 0
thread.previous = head?.hash ?? ''
while (thread.version < events) {
  const turns = Math.max(1, Math.min(Math.floor(PER_COMMIT / turn.length), Math.ceil((events - thread.version) / turn.length)))
  const { accepted } = await eventLog.append(write(thread, Array.from({ length: turns }, () => turn).flat()))
  if (!accepted) throw new Error('The thread could not be written.')
}

async function recorded(): Promise<RecordedEvent[]> {
  const all: RecordedEvent[] = []
  for await (const batch of eventLog.read(stream)) all.push(...batch)
  return all
}

/** Microseconds to fold one event at the end of the thread, and to fold one on average over all. */
async function foldCost() {
  const all = await recorded()
  const tail = Math.min(100, Math.floor(all.length / 2))
  let folded = emptyFold
  const begun = now()
  for (const record of all.slice(0, -tail)) folded = foldRecord(folded, record)
  const before = now()
  for (const record of all.slice(-tail)) folded = foldRecord(folded, record)
  const after = now()
  if (folded.quarantine) throw new Error(folded.quarantine.message)
  return { fold_last_us: ((after - before) / tail) * 1e3, fold_mean_us: ((after - begun) / all.length) * 1e3 }
}

/** Milliseconds of each of `n`. */
async function times(n: number, work: () => Promise<unknown>): Promise<number[]> {
  const taken: number[] = []
  for (let i = 0; i < n; i++) {
    const begun = now()
    await work()
    taken.push(now() - begun)
  }
  return taken
}

const context = { stream, now: Date.now(), actor: { kind: 'api', id: '', source: 'bench' }, runId: null, attempt: null }
/** A commit of one event that changes no history: load, decide, encode, append, fold, index. */
const note = () =>
  threads.store.commit(stream, () => ({
    drafts: [{ type: 'capability.written/1', data: { capability_id: 'bench', version: '1', data: Payload.of({}) } }],
    context,
  }))

const [load] = await times(1, () => threads.store.load(stream))
await times(10, note)
const noted = await times(STEERS, note)
await times(2, say)
const said = await times(RUNS, say)
const cost = await foldCost()
const { version = 0 } = (await eventLog.head(stream)) ?? {}
await threads.close()
const runMs = quantile(said, 0.5) ?? 0
process.send?.({
  per_second: (turn.length * 1e3) / runMs,
  p50_ms: runMs / turn.length,
  p99_ms: (quantile(said, 0.99) ?? 0) / turn.length,
  rows_per_second: null,
  details: { events, version, event_commit_ms: quantile(noted, 0.5), run_ms: runMs, load_ms: load, ...cost },
})
process.disconnect()
