import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { LogEvent } from '../../src/events/index.ts'
import { openThreadlog, type RunHandle, type Threadlog } from '../../src/index.ts'
import { checkLog, checkReceipts, dispatchedCalls } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { effects, timesByKey } from '../support/processes/ledger.ts'
import { ordersAgent } from '../support/processes/orders.ts'
import { places } from '../support/processes/place.ts'
import { eventsOf, streamsOf } from '../support/processes/streams.ts'

const place = places()
const THREADS = 40

test('two engines on one file share the work, and no thread is driven by two at a time', async () => {
  const { log, ...files } = place()
  await using threads = await openThreadlog({ log, application: 'shop', agents: [ordersAgent(files)] })
  const engine = () => Child.start('engine.ts', { ...files, concurrency: 4, paceMs: 8, thinkMs: 1, sweepMs: 100 })
  await using first = await engine()
  await using second = await engine()
  const handles: RunHandle[] = []
  for (let i = 0; i < THREADS; i++)
    handles.push(await threads.start({ agent: 'orders', thread: `order_${i}`, input: `order-${i}` }))
  const answered = answerAll(threads)
  const results = await Promise.all(handles.map((handle) => handle.result()))
  expect(results.map(({ output }) => output)).toEqual(handles.map((_, i) => `settled order-${i}`))
  await answered

  await checkLog(threads.store)
  checkReceipts(threads.backend)
  const drivers = new Map<string, number>()
  for (const stream of streamsOf(threads.backend)) {
    const events = await eventsOf(threads.backend, stream)
    for (const owner of driversOf(events)) drivers.set(owner, (drivers.get(owner) ?? 0) + 1)
    for (const call of dispatchedCalls(events)) expect(call).toMatchObject({ settlement: 'returned', dispatches: 1 })
  }
  const owners = [await first.must<string>('owner'), await second.must<string>('owner')]
  expect([...drivers.keys()].sort()).toEqual(owners.sort())
  const done = effects(files.ledger)
  expect(new Set(done.map(({ pid }) => pid))).toEqual(new Set([first.pid, second.pid]))
  expect([...timesByKey(done).values()].filter((times) => times !== 1)).toEqual([])
}, 60_000)

test('one of two engines is killed: the other takes over its runs, and finishes everything', async () => {
  const { log, ...files } = place()
  await using threads = await openThreadlog({ log, application: 'shop', agents: [ordersAgent(files)] })
  const engine = () => Child.start('engine.ts', { ...files, concurrency: 8, paceMs: 20, thinkMs: 1, sweepMs: 100 })
  const first = await engine()
  await using second = await engine()
  const handles: RunHandle[] = []
  for (let i = 0; i < THREADS; i++)
    handles.push(await threads.start({ agent: 'orders', thread: `order_${i}`, input: `order-${i}` }))
  const answered = answerAll(threads)
  while (effects(files.ledger).filter(({ pid }) => pid === first.pid).length < 5) await delay(5)
  await first.kill()
  const results = await Promise.all(handles.map((handle) => handle.result()))
  expect(results.map(({ output }) => output)).toEqual(handles.map((_, i) => `settled order-${i}`))
  await answered
  await checkLog(threads.store)
  checkReceipts(threads.backend)
  expect(effects(files.ledger).some(({ pid }) => pid === second.pid)).toBe(true)
  const more = [...timesByKey(effects(files.ledger).filter(({ tool }) => tool !== 'look')).values()].filter(
    (times) => times !== 1,
  )
  expect(more).toEqual([])
}, 60_000)

/** Answers what the orders wait for, as it comes, by API. */
async function answerAll(threads: Threadlog): Promise<void> {
  let left = THREADS + THREADS / 5
  for await (const wait of threads.waits({ follow: true })) {
    if (wait.kind === 'approval') await threads.approve(wait.id, { digest: wait.digest })
    else await threads.submit({ provider: wait.provider, continuation_id: wait.id, result: { parcel: `P-${wait.id}` } })
    if (--left === 0) return
  }
}

/** The owner of each run of a thread: no other's events carry the run's id. */
function driversOf(events: readonly LogEvent[]): string[] {
  const owners = new Map(
    events.flatMap((event) => (event.type === 'run.started/1' ? [[event.data.run_id, event.data.owner.id] as const] : [])),
  )
  for (const { type, attempt, run_id, actor } of events) {
    expect(type).not.toBe('run.recovered/1')
    if (attempt !== null) expect(actor).toMatchObject({ kind: 'engine', id: owners.get(run_id ?? '') })
  }
  return [...owners.values()]
}
