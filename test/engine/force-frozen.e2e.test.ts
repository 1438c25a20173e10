import { writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openThreadlog, type RunHandle } from '../../src/index.ts'
import { checkLog, dispatchedCalls } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { effects, timesByKey } from '../support/processes/ledger.ts'
import { places } from '../support/processes/place.ts'
import { eventsOf } from '../support/processes/streams.ts'
import { gateOf, script, workerAgent } from '../support/processes/worker.ts'

const place = places()

test('an engine that freezes until its runs are taken over writes nothing more of them when it wakes', async () => {
  const files = place()
  const agents = [workerAgent({ ...files, stalls: true })]
  await using threads = await openThreadlog({ log: files.log, application: 'shop', agents })
  await using frozen = await Child.start('client.ts', { ...files, stalls: true })
  await frozen.must('serve')
  const calls = [
    { id: 'c1', name: 'gate' },
    { id: 'c2', name: 'gate_again' },
  ]
  const runs: RunHandle[] = []
  for (const thread of ['frozen_1', 'frozen_2', 'frozen_3'])
    runs.push(await threads.start({ agent: 'worker', thread, input: script(calls, 'done') }))
  const done = (tool: string) => effects(files.ledger).filter((each) => each.tool === tool)
  while (done('gate_again').length < 3) await delay(5)
  process.kill(frozen.pid, 'SIGSTOP')
  // Once the other one is taken for dead, its calls are unknown or run again here, and here they take a while.
  const engine = await threads.serve({ sweepMs: 100 })
  while (done('gate_again').length < 6) await delay(5)

  const before = await threads.backend.events.barrier()
  writeFileSync(gateOf(files.ledger, frozen.pid), '')
  process.kill(frozen.pid, 'SIGCONT')
  // It answers, so it has woken; then it does whatever else it would.
  await frozen.must('asked')
  await delay(300)
  expect(await threads.backend.events.barrier()).toEqual(before)

  writeFileSync(gateOf(files.ledger, process.pid), '')
  for (const run of runs) {
    expect(await run.result()).toMatchObject({ status: 'completed', output: 'done' })
    expect(dispatchedCalls(await eventsOf(threads.backend, threads.thread(run.thread).stream))).toMatchObject([
      { tool: 'gate', settlement: 'unknown', reason: 'interrupted', dispatches: 1 },
      { tool: 'gate_again', settlement: 'returned', dispatches: 2 },
    ])
  }
  expect([...timesByKey(done('gate')).values()]).toEqual([1, 1, 1])
  expect([...timesByKey(done('gate_again')).values()]).toEqual([2, 2, 2])
  // It takes new work like any other.
  await engine.close()
  const again = await threads.start({ agent: 'worker', thread: 'frozen_4', input: script([{ id: 'c1', name: 'note' }], 'done') })
  expect((await again.result()).status).toBe('completed')
  await checkLog(threads.store)
}, 60_000)
