import { systemClock, systemIds } from '../../../src/base/index.ts'
import { openLog } from '../../../src/log/index.ts'
import { emptyFold, type Folded, findWait, foldRecord, type ThreadState, ThreadStore } from '../../../src/projections/index.ts'
import { options, serve } from './child.ts'
import { streamsOf } from './streams.ts'

// A reader in a process of its own: folds every record as it comes, and again and again whatever is there.

const backend = await openLog(`sqlite:${options<{ file: string }>().file}`)
const store = await ThreadStore.open({ backend, clock: systemClock, ids: systemIds })
const folds = new Map<string, Folded>()
const stop = new AbortController()
const seen = { events: 0, resumes: 0, looks: 0, wrong: [] as string[] }

/** A run that resumed must never be seen without the outcomes it resumed with. */
function check(state: ThreadState, where: string): void {
  if (state.run?.trigger.kind !== 'batch') return
  for (const id of state.run.trigger.continuationIds) {
    const wait = findWait(state, id)
    if (wait?.status !== 'claimed' || !wait.outcome) seen.wrong.push(`${where}: ${wait?.status}`)
  }
}

async function follow(): Promise<void> {
  for await (const records of backend.events.follow({ from: new Map([[0, 1n]]), signal: stop.signal }))
    for (const record of records) {
      const folded = foldRecord(folds.get(record.stream) ?? emptyFold, record)
      folds.set(record.stream, folded)
      if (folded.quarantine) seen.wrong.push(`quarantine: ${folded.quarantine.code}`)
      check(folded.state, 'follow')
      seen.events++
      if (record.event?.type === 'run.started/1' && record.event.data.trigger.kind === 'batch') seen.resumes++
    }
}

async function look(): Promise<void> {
  while (!stop.signal.aborted) {
    for (const stream of streamsOf(backend)) check(await store.load(stream), 'look')
    seen.looks++
    await systemClock.sleep(1)
  }
}

const done = Promise.all([follow(), look()])
serve({
  finish: async (events: number) => {
    while (seen.events < events) await systemClock.sleep(5)
    stop.abort()
    await done
    return seen
  },
})
