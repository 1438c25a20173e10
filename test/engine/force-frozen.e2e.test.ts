import { writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { checkLog, dispatchedCalls } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { effects } from '../support/processes/ledger.ts'
import { places } from '../support/processes/place.ts'
import { eventsOf } from '../support/processes/streams.ts'
import { gateOf, script, workerAgent } from '../support/processes/worker.ts'

const place = places()

test('an engine that freezes until its runs are taken over writes nothing more of them when it wakes', async () => {
  const files = place()
  await using threads = await openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })
  await using frozen = await Child.start('client.ts', { ...files, stalls: true })
  await frozen.must('serve')
  const calls = [
    { id: 'c1', name: 'gate' },
    { id: 'c2', name: 'stall_again' },
  ]
  const runs = [
    await threads.start({ agent: 'worker', thread: 'frozen_1', input: script(calls, 'done') }),
    await threads.start({ agent: 'worker', thread: 'frozen_2', input: script({ hang: 'thinking' }, 'done') }),
  ]
  while (effects(files.ledger).length < 2) await delay(5)
  process.kill(frozen.pid, 'SIGSTOP')
  await threads.serve({ sweepMs: 100 })
  for (const run of runs) expect((await run.result()).status).toBe('completed')

  const before = await threads.backend.events.barrier()
  process.kill(frozen.pid, 'SIGCONT')
  writeFileSync(gateOf(files.ledger), '')
  // It answers, so it has woken; then it does whatever else it would.
  await frozen.must('asked')
  await delay(300)
  expect(await threads.backend.events.barrier()).toEqual(before)
  expect(dispatchedCalls(await eventsOf(threads.backend, threads.thread('frozen_1').stream))).toMatchObject([
    { tool: 'gate', settlement: 'unknown', reason: 'interrupted', dispatches: 1 },
    { tool: 'stall_again', settlement: 'returned', dispatches: 2 },
  ])
  const done = effects(files.ledger)
  expect(done.filter(({ tool }) => tool === 'gate')).toHaveLength(1)
  expect(new Set(done.filter(({ tool }) => tool === 'stall_again').map(({ key }) => key)).size).toBe(1)
  // It takes new work like any other.
  const again = await threads.start({ agent: 'worker', thread: 'frozen_3', input: script([{ id: 'c1', name: 'note' }], 'done') })
  expect((await again.result()).status).toBe('completed')
  await checkLog(threads.store)
}, 60_000)
