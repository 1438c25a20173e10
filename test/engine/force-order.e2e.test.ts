import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openThreadlog, type RunHandle, type Wait } from '../../src/index.ts'
import { checkLog, dispatchedCalls } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { effects, timesByKey } from '../support/processes/ledger.ts'
import { places } from '../support/processes/place.ts'
import { eventsOf } from '../support/processes/streams.ts'
import { script, workerAgent } from '../support/processes/worker.ts'

const place = places()

test('runs of one thread are done in the order they were asked for, with the engine killed between', async () => {
  const files = place()
  await using threads = await openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })
  const runs: RunHandle[] = []
  for (let i = 0; i < 6; i++)
    for (const thread of ['queue_1', 'queue_2', 'queue_3'])
      runs.push(await threads.start({ agent: 'worker', thread, input: script([{ id: 'c1', name: 'note_again' }], `run ${i}`) }))
  for (let kills = 1; kills <= 4; kills++) {
    const engine = await Child.start('client.ts', files)
    await engine.must('serve', { concurrency: 2 })
    while (effects(files.ledger).length < kills * 4) await delay(1)
    await engine.kill()
  }
  await threads.serve({ sweepMs: 50 })
  for (const run of runs) expect((await run.result()).status).toBe('completed')
  for (const thread of ['queue_1', 'queue_2', 'queue_3']) {
    const asked = runs.filter((run) => run.thread === thread).map((run) => run.runId)
    const events = await eventsOf(threads.backend, threads.thread(thread).stream)
    for (const type of ['run.started/1', 'run.completed/1'])
      expect(events.filter((event) => event.type === type).map((event) => event.run_id)).toEqual(asked)
  }
  expect(timesByKey(effects(files.ledger)).size).toBe(runs.length)
  await checkLog(threads.store)
}, 60_000)

test('an approval counts for the attempt that claimed it: a call it did not get to is asked about again', async () => {
  const files = place()
  await using threads = await openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })
  const calls = [
    { id: 'c1', name: 'careful' },
    { id: 'c2', name: 'careful' },
  ]
  const run = await threads.start({ agent: 'worker', thread: 'alone_1', input: script(calls, 'done') })
  const engine = await Child.start('client.ts', { ...files, stalls: true })
  await engine.must('serve')
  const approved: Wait[] = []
  for await (const wait of threads.waits({ follow: true })) {
    expect((await threads.approve(wait.id, { digest: wait.digest })).verdict).toBe('accepted')
    if (approved.push(wait) === 2) break
  }
  while (effects(files.ledger).length < 1) await delay(5)
  await engine.kill()

  await threads.serve({ sweepMs: 50 })
  let again: Wait | undefined
  for await (again of threads.waits({ follow: true })) break
  expect(again).toMatchObject({ kind: 'approval', tool: 'careful', digest: approved[1]?.digest })
  expect(approved.map(({ id }) => id)).not.toContain(again?.id)
  expect(effects(files.ledger)).toHaveLength(1)
  expect((await threads.approve(again?.id ?? '', { digest: again?.digest })).verdict).toBe('accepted')
  expect(await run.result()).toMatchObject({ status: 'completed', output: 'done' })
  expect(dispatchedCalls(await eventsOf(threads.backend, threads.thread('alone_1').stream))).toMatchObject([
    { settlement: 'unknown', reason: 'interrupted', dispatches: 1 },
    { settlement: 'returned', dispatches: 1 },
  ])
  expect([...timesByKey(effects(files.ledger)).values()]).toEqual([1, 1])
  await checkLog(threads.store)
}, 60_000)
