import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineAgent, defineTool, openThreadlog } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { threadStatus } from '../../src/projections/index.ts'
import { checkStream, codeOf, dispatchedCalls } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { effect, effects } from '../support/processes/ledger.ts'
import { type Place, places } from '../support/processes/place.ts'
import { turnOf } from '../support/processes/prompt.ts'
import { eventsOf } from '../support/processes/streams.ts'
import { script, workerAgent } from '../support/processes/worker.ts'

const place = places()

/** A worker whose tool comes back when the gate opens. */
function gated({ ledger }: Place) {
  const gate = Promise.withResolvers<void>()
  const tool = defineTool({
    name: 'note',
    description: 'Waits at a gate',
    input: z.object({}),
    execute: async (_, { callId, idempotencyKey }) => {
      effect(ledger, { tool: 'note', call: callId, key: idempotencyKey })
      await gate.promise
      return 'through'
    },
  })
  const model = scriptedModel((prompt) =>
    turnOf(prompt).step === 0 ? { parts: [{ tool_call: { id: 'c1', name: 'note' } }] } : { parts: [{ text: 'done' }] },
  )
  return { agent: defineAgent({ name: 'worker', revision: '1', model, tools: [tool] }), gate, model }
}

const input = script([{ id: 'c1', name: 'note' }], 'done')

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(5)
}

test('closing an engine lets a running tool settle, asks the model nothing more, and the next engine goes on', async () => {
  const files = place()
  const { agent, gate, model } = gated(files)
  const first = await openThreadlog({ log: files.log, application: 'shop', agents: [agent] })
  const engine = await first.serve()
  await first.start({ agent: 'worker', thread: 'close_1', input })
  await until(() => effects(files.ledger).length === 1)
  const closing = engine.close()
  gate.resolve()
  await closing
  const { stream } = first.thread('close_1')
  expect(dispatchedCalls(await eventsOf(first.backend, stream))).toMatchObject([{ settlement: 'returned', dispatches: 1 }])
  expect(threadStatus(await first.store.load(stream))).toBe('running')
  expect(model.requests).toHaveLength(1)
  await first.close()

  await using second = await openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })
  await second.serve({ sweepMs: 20 })
  await until(async () => threadStatus(await second.store.load(stream)) === 'idle')
  const state = await checkStream(second.store, stream)
  expect([...state.invocations].map(([, end]) => end.status)).toEqual(['completed'])
  expect(effects(files.ledger)).toHaveLength(1)
}, 60_000)

test('a second engine of the same process takes over what the closed one left', async () => {
  const files = place()
  const { agent, gate } = gated(files)
  await using threads = await openThreadlog({ log: files.log, application: 'shop', agents: [agent] })
  const engine = await threads.serve()
  const run = await threads.start({ agent: 'worker', thread: 'close_2', input })
  await until(() => effects(files.ledger).length === 1)
  const closing = engine.close()
  gate.resolve()
  await closing
  await threads.serve({ sweepMs: 20 })
  expect(await run.result()).toMatchObject({ status: 'completed', output: 'done' })
  expect(effects(files.ledger)).toHaveLength(1)
  await checkStream(threads.store, threads.thread('close_2').stream)
}, 60_000)

// A run in the caller's process went on without its log, or hung with it.
test('closing the log lets the tool of a library run settle and tells its caller; the next process goes on', async () => {
  const files = place()
  const { agent, gate, model } = gated(files)
  const first = await openThreadlog({ log: files.log, application: 'shop', agents: [agent] })
  const running = codeOf(() => first.run('worker', { thread: 'close_3', input }))
  await until(() => effects(files.ledger).length === 1)
  const closing = first.close()
  gate.resolve()
  expect(await running).toBe('closed')
  await closing
  expect(model.requests).toHaveLength(1)

  await using second = await openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })
  expect(await second.run('worker', { thread: 'close_3' })).toMatchObject({ status: 'completed', output: 'done' })
  const { stream } = second.thread('close_3')
  expect(dispatchedCalls(await eventsOf(second.backend, stream))).toMatchObject([{ settlement: 'returned', dispatches: 1 }])
  await checkStream(second.store, stream)
}, 60_000)

test('closing loses neither requests nor results that arrive meanwhile', async () => {
  const files = place()
  await using threads = await openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })
  const first = await Child.start('client.ts', files)
  await first.must('serve')
  const runs = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      threads.start({
        agent: 'worker',
        thread: `meanwhile_${i}`,
        input: script([{ id: 'c1', name: 'ask' }], [{ id: 'c1', name: 'note' }], 'done'),
      }),
    ),
  )
  const answered = (async () => {
    let left = runs.length
    for await (const { id } of threads.waits({ follow: true })) {
      const value = JSON.stringify({ provider: 'desk', continuation_id: id, result: { said: 'yes' } })
      await threads.backend.topics.publish('results', [{ key: id, value: Buffer.from(value) }])
      if (--left === 6) await first.must('close')
      if (left === 6) await Child.start('client.ts', files).then((next) => (second = next).must('serve'))
      if (left === 0) return
    }
  })()
  let second: Child | undefined
  await answered
  for (const run of runs) expect((await run.result()).status).toBe('completed')
  expect(effects(files.ledger)).toHaveLength(12)
  for (const { thread } of runs) await checkStream(threads.store, threads.thread(thread).stream)
  await first.kill()
  await second?.kill()
}, 60_000)
