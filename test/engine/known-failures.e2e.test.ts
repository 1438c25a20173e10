import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { RunHandle, Threadlog } from '../../src/index.ts'
import { listThreads, threadStatus } from '../../src/projections/index.ts'
import { checkLog, checkReceipts, checkStream, dispatchedCalls } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { effects, timesByKey } from '../support/processes/ledger.ts'
import { outsider, places, seeded } from '../support/processes/place.ts'
import { shops } from '../support/processes/shops.ts'
import { eventsOf } from '../support/processes/streams.ts'
import { type Call, script } from '../support/processes/worker.ts'

// As known-failures.unit.test.ts, with processes that race and die.

const place = places()
const open = shops()

const statusCounts = (threads: Threadlog): Record<string, number> =>
  Object.fromEntries(
    threads.backend.tables
      .all<{ status: string; n: number }>('SELECT status, count(*) AS n FROM threads GROUP BY status')
      .map(({ status, n }) => [status, n]),
  )

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(10)
}

// Two writers each took a transition from the same revision and both were told that it held; one result became unreachable.
// Here a transition is accepted only on the version it was decided on, so of two that disagree one is told `conflict`.
test('row 6: of two processes that answer one wait at once, one makes the transition and the other is told so', async () => {
  const files = place()
  const threads = await open(files)
  await using first = await Child.start('client.ts', files)
  await using second = await Child.start('client.ts', files)
  for (let round = 0; round < 10; round++) {
    const thread = `fence_${round}`
    const calls = [
      { id: 'c1', name: 'ask' },
      { id: 'c2', name: 'confirm' },
    ]
    const { waits } = await threads.run('worker', { thread, input: script(calls, 'done') })
    const [asked, confirmed] = waits
    const result = (said: string) => JSON.stringify({ provider: 'desk', continuation_id: asked?.id, result: { said } })
    const verdicts = await Promise.all([
      first.must<string>('submit', result('yes')),
      second.must<string>('submit', result(round % 2 === 0 ? 'no' : 'yes')),
    ])
    expect(verdicts.sort()).toEqual(['accepted', round % 2 === 0 ? 'conflict' : 'duplicate'])
    const decisions = await Promise.all([first.must<string>('approve', confirmed), second.must<string>('deny', confirmed)])
    expect(decisions.sort()).toEqual(['accepted', 'conflict'])
    const { stream } = threads.thread(thread)
    const completed = (await eventsOf(threads.backend, stream)).filter((event) => event.type === 'continuation.completed/1')
    expect(completed.map((event) => event.data.revision)).toEqual([2, 2])
    expect((await threads.run('worker', { thread })).status).toBe('completed')
    await checkStream(threads.store, stream)
  }
}, 60_000)

// A run was acknowledged before anything of it was durable, and a crash before its first checkpoint lost it.
// Here `start` resolves when the log has accepted the request, so whatever was acknowledged exists and is run by the next engine.
test('row 8: a run whose start was acknowledged exists and runs, even if the process dies at once', async () => {
  const files = place()
  for (let round = 0; round < 4; round++) {
    const child = await Child.start('client.ts', files)
    const runs = Array.from({ length: round === 0 ? 1 : 8 }, (_, i) => ({
      thread: `ack_${round}x${i}`,
      input: script([{ id: 'c1', name: 'note' }], 'done'),
    }))
    expect(await child.ask('startAndDie', runs)).toMatchObject({ code: 'exited' })
    await child.end()
  }
  const acknowledged = effects(files.ledger).filter(({ tool }) => tool === 'acknowledged')
  expect(acknowledged.length).toBeGreaterThanOrEqual(4)
  const threads = await open(files)
  for (const { call: thread, key: runId } of acknowledged) {
    const state = await threads.store.load(threads.thread(thread).stream)
    expect(state.requested.map((requested) => requested.runId)).toEqual([runId])
  }
  await threads.serve()
  await until(() => statusCounts(threads)['requested'] === undefined && statusCounts(threads)['running'] === undefined)
  for (const { call: thread } of acknowledged) {
    const [row] = listThreads(threads.backend.tables, { application: 'shop', user: 'default', limit: 1000 }).filter(
      (each) => each.thread === thread,
    )
    expect(row).toMatchObject({ status: 'idle', last_end: 'completed' })
  }
  await checkLog(threads.store)
}, 60_000)

// An event was taken off its queue and never reached its instance, and nobody could tell.
// Here progress and receipt of a record are one transaction, so each offset has exactly one final receipt whenever the intake died.
test('row 34: every record of the results topic gets exactly one final receipt, with the intake killed between', async () => {
  const files = place()
  const threads = await open(files)
  const database = outsider(files.file)
  const insert = database.prepare('INSERT INTO threadlog_results(key, value) VALUES (?, ?)')
  const random = seeded(34)
  const { waits } = await threads.run('worker', {
    thread: 'conserve_1',
    input: script(
      Array.from({ length: 20 }, (_, i) => ({ id: `c${i}`, name: 'ask' })),
      'done',
    ),
  })
  const kinds: ((id: string, i: number) => string | Uint8Array)[] = [
    (id) => JSON.stringify({ provider: 'desk', continuation_id: id, result: { said: 'yes' } }),
    (id, i) => JSON.stringify({ provider: 'desk', continuation_id: id, result: { said: `other ${i}` } }),
    (id) => JSON.stringify({ provider: 'desk', continuation_id: id, result: { wrong: true } }),
    (id) => JSON.stringify({ provider: 'human', continuation_id: id, result: { approved: true } }),
    (id) => JSON.stringify({ provider: 'desk', external_id: `${id}x`, result: { said: 'yes' } }),
    () => '{"provider": "desk", ',
    () => Buffer.from([0, 0, 0, 0, 9, 1]),
    () => '',
  ]
  for (let part = 0; part < 4; part++) {
    const engine = await Child.start('client.ts', files)
    await engine.must('serve')
    for (let i = 0; i < 60; i++) {
      const kind = kinds[Math.floor(random() * kinds.length)] as (typeof kinds)[number]
      insert.run(`${i}`, kind(waits[Math.floor(random() * waits.length)]?.id ?? '', i))
      if (i % 20 === 19) await delay(random() * 5)
    }
    await delay(random() * 20)
    await engine.kill()
  }
  database.close()
  await threads.serve({ sweepMs: 100 })
  const left = () =>
    threads.backend.tables.get<{ n: number }>('SELECT max(offset) + 1 - (SELECT next FROM progress) AS n FROM results')?.n
  await until(() => left() === 0)
  const verdicts = checkReceipts(threads.backend)
  expect(verdicts.size).toBe(240)
  const completed = (await eventsOf(threads.backend, threads.thread('conserve_1').stream)).filter(
    ({ type }) => type === 'continuation.completed/1',
  )
  expect([...verdicts.values()].filter((verdict) => verdict === 'accepted')).toHaveLength(completed.length)
  await checkLog(threads.store)
}, 60_000)

// The resume and its payload were two writes, and a reader between them took the resume without a payload, once and for all.
// Here one commit claims the outcomes, starts the run and settles its calls: a reader sees all of it or nothing.
test('row 41: no reader in another process ever sees a resume without its results', async () => {
  const files = place()
  const threads = await open(files)
  await using follower = await Child.start('follower.ts', files)
  const engine = await threads.serve({ sweepMs: 100 })
  const turn = (i: number): Call[] => [
    { id: 'c1', name: 'ask' },
    { id: 'c2', name: i % 2 === 0 ? 'confirm' : 'ask' },
  ]
  const handles: RunHandle[] = []
  for (let i = 0; i < 12; i++)
    handles.push(
      await threads.start({ agent: 'worker', thread: `atomic_${i}`, input: script(turn(i), turn(i + 1), turn(i), 'done') }),
    )
  let left = handles.length * 6
  for await (const wait of threads.waits({ follow: true })) {
    if (wait.kind === 'approval') await threads.approve(wait.id)
    else await threads.submit({ provider: 'desk', continuation_id: wait.id, result: { said: 'yes' } })
    if (--left === 0) break
  }
  for (const handle of handles) expect((await handle.result()).status).toBe('completed')
  await engine.close()
  const events = Number((await threads.backend.events.barrier()).get(0)) - 1
  const seen = await follower.must<{ events: number; resumes: number; looks: number; wrong: string[] }>('finish', events)
  expect(seen).toMatchObject({ events, resumes: 36, wrong: [] })
  expect(seen.looks).toBeGreaterThan(0)
}, 60_000)

// Threads that were running when the process died stood still until somebody called them again.
// Here the first sweep of an engine finds every run without a living owner, and takes it up where its log ends.
test('row 46: 1,000 threads left in the middle of a step all go on after a restart, without a call', async () => {
  const files = place()
  const stalled: (Call[] | { hang: string })[] = [
    { hang: 'thinking' },
    [{ id: 'c1', name: 'stall' }],
    { hang: 'thinking' },
    [{ id: 'c1', name: 'stall_again' }],
  ]
  const runs = Array.from({ length: 1000 }, (_, i) => ({ thread: `mid_${i}`, input: script(stalled[i % 4] ?? 'done', 'done') }))
  const crowded = await Child.start('client.ts', { ...files, stalls: true })
  await crowded.must('serve', { concurrency: 1000, sweepMs: 1000 })
  await crowded.must('startMany', runs)
  const threads = await open(files)
  await until(() => effects(files.ledger).length === 500 && statusCounts(threads)['running'] === 1000)
  await crowded.kill()

  await threads.serve()
  await until(() => statusCounts(threads)['idle'] === 1000)
  const ends = threads.backend.tables.all<{ last_end: string; n: number }>(
    'SELECT last_end, count(*) AS n FROM threads GROUP BY last_end',
  )
  expect(ends).toMatchObject([{ last_end: 'completed', n: 1000 }])
  const done = effects(files.ledger)
  const times = [...timesByKey(done).entries()].map(([key, n]) => [done.find((one) => one.key === key)?.tool, n])
  expect(times.filter(([tool, n]) => tool === 'stall' && n === 1)).toHaveLength(250)
  expect(times.filter(([tool, n]) => tool === 'stall_again' && n === 2)).toHaveLength(250)
  for (let i = 0; i < 40; i++) await checkStream(threads.store, threads.thread(`mid_${i}`).stream)
}, 60_000)

// A process was killed right after a side effect, and nothing told the run that went on that the effect may have happened.
// Here the dispatch is in the log before the effect begins, so a later owner settles the call as unknown, and tells the model.
test('row 82: killed right after a side effect, the run exists and its ledger lists the call as unknown', async () => {
  const files = place()
  const threads = await open(files)
  const run = await threads.start({ agent: 'worker', thread: 'effect_1', input: script([{ id: 'c1', name: 'die' }], 'done') })
  const engine = await Child.start('client.ts', { ...files, stalls: true })
  await engine.must('serve')
  await engine.end()
  const left = await threads.store.load(threads.thread('effect_1').stream)
  expect(threadStatus(left)).toBe('running')
  expect(left.batch?.calls.get('c1')).toMatchObject({ dispatch: { number: 1 }, settled: undefined })

  await threads.serve({ sweepMs: 100 })
  expect(await run.result()).toMatchObject({ status: 'completed', output: 'done' })
  const { stream } = threads.thread('effect_1')
  const [call] = dispatchedCalls(await eventsOf(threads.backend, stream))
  expect(call).toMatchObject({ tool: 'die', settlement: 'unknown', reason: 'interrupted', dispatches: 1 })
  expect(effects(files.ledger)).toMatchObject([{ tool: 'die', key: call?.key }])
  await checkStream(threads.store, stream)
}, 60_000)
