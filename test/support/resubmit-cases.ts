import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { z } from 'zod'
import { defineAgent, externalTool, openThreadlog, type Threadlog } from '../../src/index.ts'
import type { LogBackend } from '../../src/log/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { calls, eventsOf, returnsOf, says } from './agents.ts'
import { gatedLog } from './gated-log.ts'

// What holds of jobs that are submitted again because the one before failed for the time being, on every log.

interface Policy {
  attempts?: number
  delayMs?: (attempt: number) => number
  deadlineMs?: number
}

/** An agent with a tool that submits, and the keys under which it has. */
function submitting({ attempts = 2, delayMs = () => 1, deadlineMs }: Policy = {}) {
  const keys: string[] = []
  const job = externalTool({
    ...{ name: 'job', description: 'Runs a job', provider: 'jobs', input: z.object({}), resubmit: { attempts, delayMs } },
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    submit: (_, { idempotencyKey }) => {
      keys.push(idempotencyKey)
      return { externalId: `job-${idempotencyKey.slice(0, 12)}` }
    },
  })
  const model = scriptedModel((prompt) => (prompt.some(({ role }) => role === 'tool') ? says('done') : calls(['c1', 'job', {}])))
  return {
    agent: defineAgent({ name: 'agent', revision: '1', model, tools: [job] }),
    keys,
    idOf: (i: number) => `job-${keys[i]?.slice(0, 12)}`,
  }
}

const failure = (external_id: string, retryable = true) => ({
  provider: 'jobs',
  external_id,
  failure: { code: 'busy', retryable },
})
const dispatches = async (threads: Threadlog) =>
  (await eventsOf(threads, 't_1')).flatMap(({ event }) => (event?.type === 'tool.dispatched/1' ? event.data : []))

export const resubmitCases: Record<string, (log: LogBackend) => Promise<void>> = {
  'a job that failed for the time being is followed by another, under a key and a wait of its own': async (log) => {
    await using threads = await openThreadlog({ log })
    const { agent, keys, idOf } = submitting()
    const first = await threads.run(agent, { thread: 't_1', input: 'go' })
    expect((await threads.submit(failure(idOf(0)))).verdict).toBe('accepted')
    const second = await threads.run(agent, { thread: 't_1' })
    expect(second.status).toBe('suspended')
    expect(second.waits[0]?.externalId).toBe(idOf(1))
    expect(second.waits[0]?.id).not.toBe(first.waits[0]?.id)
    expect(new Set(keys).size).toBe(2)
    // What comes late for the first job is judged by its own wait.
    expect((await threads.submit({ provider: 'jobs', external_id: idOf(0), result: 1 })).verdict).toBe('conflict')
    expect((await threads.submit({ provider: 'jobs', external_id: idOf(1), result: 2 })).verdict).toBe('accepted')
    expect((await threads.run(agent, { thread: 't_1' })).output).toBe('done')
    expect((await dispatches(threads)).map(({ number, idempotency_key }) => [number, idempotency_key])).toEqual([
      [1, keys[0]],
      [2, keys[1]],
    ])
    expect(returnsOf((await threads.thread('t_1').state()).messageHistory)).toEqual([['c1', 'success']])
  },

  'no more jobs than agreed, and none for a failure that is final: then the model reads it': async (log) => {
    await using threads = await openThreadlog({ log })
    const { agent, keys, idOf } = submitting({ attempts: 2 })
    await threads.run(agent, { thread: 't_1', input: 'go' })
    for (const i of [0, 1, 2]) {
      await threads.submit(failure(idOf(i)))
      expect((await threads.run(agent, { thread: 't_1' })).status).toBe(i < 2 ? 'suspended' : 'completed')
    }
    expect(keys).toHaveLength(3)
    expect(returnsOf((await threads.thread('t_1').state()).messageHistory)).toEqual([['c1', 'failed']])
    const other = submitting()
    await threads.run(other.agent, { thread: 't_2', input: 'go' })
    await threads.submit(failure(other.idOf(0), false))
    expect((await threads.run(other.agent, { thread: 't_2' })).output).toBe('done')
    expect(other.keys).toHaveLength(1)
  },

  'row 112: the deadline of the second job is its own, and fires': async (log) => {
    await using threads = await openThreadlog({ log })
    const { agent, idOf } = submitting({ deadlineMs: 400 })
    const first = await threads.run(agent, { thread: 't_1', input: 'go' })
    await threads.submit(failure(idOf(0)))
    await delay(100)
    const second = await threads.run(agent, { thread: 't_1' })
    expect(second.waits[0]?.deadline).toBeGreaterThan(first.waits[0]?.deadline ?? Number.POSITIVE_INFINITY)
    while ((await threads.run(agent, { thread: 't_1' })).status !== 'completed') await delay(20)
    const expired = (await eventsOf(threads, 't_1')).flatMap(({ event }) =>
      event?.type === 'continuation.expired/1' ? event.data.continuation_id : [],
    )
    expect(expired).toEqual([second.waits[0]?.id])
  },

  'a process that dies while it waits for the next job, or behind its dispatch, is followed by one that submits once': async (
    log,
  ) => {
    for (const [thread, point] of [
      ['t_1', 'run.started/1'],
      ['t_2', 'tool.dispatched/1'],
    ] as const) {
      const patient = submitting({ delayMs: () => (point === 'run.started/1' ? 200 : 0) })
      const begun = await openThreadlog({ log })
      await begun.run(patient.agent, { thread, input: 'go' })
      await begun.submit(failure(patient.idOf(0)))
      await begun.close()
      const gate = gatedLog(log, point, { after: true })
      const dying = await openThreadlog({ log: gate.log })
      const running = dying.run(patient.agent, { thread })
      running.catch(() => {})
      await gate.reached
      const closing = dying.close()
      gate.open()
      await closing
      await using next = await openThreadlog({ log })
      const result = await next.run(patient.agent, { thread })
      expect(result.waits[0]?.externalId).toBe(patient.idOf(1))
      expect(new Set(patient.keys).size).toBe(2)
      await next.submit({ provider: 'jobs', external_id: patient.idOf(1), result: 1 })
      expect((await next.run(patient.agent, { thread })).output).toBe('done')
    }
  },

  'a cancel ends the pause, and closes the call': async (log) => {
    await using threads = await openThreadlog({ log })
    const { agent, keys, idOf } = submitting({ delayMs: () => 3_600_000 })
    await threads.run(agent, { thread: 't_1', input: 'go' })
    await threads.submit(failure(idOf(0)))
    const running = threads.run(agent, { thread: 't_1' })
    while ((await threads.store.load(threads.thread('t_1').stream)).run?.status !== 'running') await delay(5)
    await threads.thread('t_1').cancel()
    expect((await running).status).toBe('cancelled')
    expect(keys).toHaveLength(1)
    expect(returnsOf((await threads.thread('t_1').state()).messageHistory)).toEqual([['c1', 'failed']])
  },

  'under an engine it goes by itself': async (log) => {
    const { agent, keys, idOf } = submitting({ delayMs: (attempt) => attempt * 20 })
    await using threads = await openThreadlog({ log, agents: [agent] })
    const engine = await threads.serve({ sweepMs: 50 })
    const run = await threads.start({ agent: 'agent', thread: 't_1', input: 'go' })
    for (const i of [0, 1]) {
      while (keys.length <= i) await delay(5)
      await threads.submit(failure(idOf(i)))
    }
    while (keys.length <= 2) await delay(5)
    await threads.submit({ provider: 'jobs', external_id: idOf(2), result: 1 })
    expect((await run.result()).output).toBe('done')
    await engine.close()
  },
}
