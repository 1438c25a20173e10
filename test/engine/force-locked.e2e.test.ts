import { expect, test } from 'vitest'
import { z } from 'zod'
import { type Agent, defineAgent, defineTool, openThreadlog } from '../../src/index.ts'
import { openSqliteLog } from '../../src/log/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { checkStream, dispatchedCalls } from '../support/processes/checks.ts'
import { effect, effects } from '../support/processes/ledger.ts'
import { outsider, type Place, places } from '../support/processes/place.ts'
import { turnOf } from '../support/processes/prompt.ts'
import { eventsOf } from '../support/processes/streams.ts'

const place = places()

/** A worker whose tool does its effect while another program takes the write lock of the file, and keeps it. */
function locking({ file, ledger }: Place): { agent: Agent; release(): void } {
  const database = outsider(file)
  const tool = defineTool({
    name: 'note',
    description: 'Does something',
    input: z.object({}),
    execute: (_, { callId, idempotencyKey }) => {
      effect(ledger, { tool: 'note', call: callId, key: idempotencyKey })
      database.exec('BEGIN IMMEDIATE')
      return 'done'
    },
  })
  const model = scriptedModel((prompt) =>
    turnOf(prompt).step === 0 ? { parts: [{ tool_call: { id: 'c1', name: 'note' } }] } : { parts: [{ text: 'over' }] },
  )
  const release = () => {
    database.exec('ROLLBACK')
    database.close()
  }
  return { agent: defineAgent({ name: 'locking', revision: '1', model, tools: [tool] }), release }
}

const open = async (files: Place) => {
  const backend = await openSqliteLog({ file: files.file, busyTimeoutMs: 100 })
  const { agent, release } = locking(files)
  const threads = await openThreadlog({ log: backend, application: 'shop', agents: [agent] })
  return { backend, threads, release }
}

// What was done must be recorded: the attempt waits for the log, however long that takes, and nothing becomes unknown.
test('a run whose log is locked longer than a commit waits records what its tool did once the lock is gone', async () => {
  const files = place()
  const { backend, threads, release } = await open(files)
  const running = threads.run('locking', { thread: 'lock_1', input: 'go' })
  await expect.poll(() => effects(files.ledger)).toHaveLength(1)
  await new Promise((resolve) => setTimeout(resolve, 400))
  release()
  expect(await running).toMatchObject({ status: 'completed', output: 'over' })
  const { stream } = threads.thread('lock_1')
  expect(dispatchedCalls(await eventsOf(backend, stream))).toMatchObject([{ settlement: 'returned', dispatches: 1 }])
  expect(effects(files.ledger)).toHaveLength(1)
  await checkStream(threads.store, stream)
  await threads.close()
  await backend.close()
}, 60_000)

test('an engine whose log was locked too long says so, and goes on by itself', async () => {
  const files = place()
  const { backend, threads, release } = await open(files)
  const problem = Promise.withResolvers<string>()
  await threads.serve({ sweepMs: 20, onProblem: ({ where, code }) => where.startsWith('thread') && problem.resolve(code) })
  const run = await threads.start({ agent: 'locking', thread: 'lock_2', input: 'go' })
  expect(await problem.promise).toBe('log_busy')
  release()
  expect(await run.result()).toMatchObject({ status: 'completed', output: 'over' })
  expect(effects(files.ledger)).toHaveLength(1)
  await checkStream(threads.store, threads.thread('lock_2').stream)
  await threads.close()
  await backend.close()
}, 60_000)
