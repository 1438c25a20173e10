import { expect } from 'vitest'
import { z } from 'zod'
import { externalIdKey, reservationStream } from '../../src/continuations/index.ts'
import type { EventType } from '../../src/events/index.ts'
import { type Agent, defineAgent, externalTool, openThreadlog, type Threadlog } from '../../src/index.ts'
import type { LogBackend } from '../../src/log/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { calls, eventsOf, returnsOf, says, typesOf } from './agents.ts'
import { gatedLog } from './gated-log.ts'

// What holds of tools that submit their jobs themselves, on every log: the cases of `submit.unit` and `submit.kafka`.

/** A place for logs: each is empty; `again` opens one once more, as another process would. */
export interface LogPlace {
  fresh(): Promise<LogBackend>
  again(log: LogBackend): Promise<LogBackend>
}

/** A job system that keeps its jobs by key, as the contract of `submit` asks for. */
export function jobs() {
  const submissions: { key: string; name: string; deps: unknown }[] = []
  /** What a submission of this name answers with, where that is not the job of its key. */
  const answers = new Map<string, () => unknown>()
  const idOf = (key: string) => `job-${key.slice(0, 12)}`
  const submit = ({ job }: { job: string }, { idempotencyKey: key, deps }: { idempotencyKey: string; deps: unknown }) => {
    submissions.push({ key, name: job, deps })
    const answer = answers.get(job)
    return (answer ? answer() : { externalId: idOf(key) }) as { externalId: string }
  }
  return { submissions, answers, idOf, submit }
}
export type Jobs = ReturnType<typeof jobs>

export const jobTool = (submit: Jobs['submit'], recovery?: 'retryable') =>
  externalTool({
    name: 'job',
    description: 'Runs a job elsewhere',
    provider: 'jobs',
    input: z.object({ job: z.string() }),
    result: z.object({ ok: z.boolean() }),
    recovery,
    submit,
  })

const ask = externalTool({ name: 'ask', description: 'Asks', provider: 'desk', input: z.object({}) })

/** Calls `job` once for each name, at once, then ends. */
export function jobAgent(work: Jobs, names: readonly string[], more: { permissions?: Record<string, 'ask'> } = {}): Agent {
  const made = names.map((job, i): [string, string, Record<string, unknown>] =>
    job === 'ask' ? [`c${i}`, 'ask', {}] : [`c${i}`, 'job', { job }],
  )
  const model = scriptedModel((prompt) => (prompt.some(({ role }) => role === 'tool') ? says('done') : calls(...made)))
  return defineAgent({ name: 'agent', revision: '1', model, tools: [jobTool(work.submit), ask], ...more })
}

const given = (id: string) => () => ({ externalId: id })
const result = (external_id: string, ok = true) => ({ provider: 'jobs', external_id, result: { ok } })
const streamOf = (id: string) =>
  reservationStream({ kind: 'external_id', application: 'default', provider: 'jobs', key: externalIdKey('jobs', id) })

const holderOf = async (threads: Threadlog, id: string) => {
  const { reservation } = await threads.store.load(streamOf(id))
  return reservation?.status === 'taken' ? reservation.holder : undefined
}

const settledCode = async (threads: Threadlog, thread: string, callId: string): Promise<unknown> => {
  for (const { event } of (await eventsOf(threads, thread)).toReversed())
    if (event?.type === 'tool.settled/1' && event.data.call_id === callId)
      return (event.data.part.value as { content?: { error?: { code: string } } }).content?.error?.code
  return undefined
}

/** Runs `agent` on a log of its own that stands still at an event; resolves when it does. */
async function stoppedAt(log: LogBackend, type: EventType, run: (threads: Threadlog) => Promise<unknown>) {
  const gate = gatedLog(log, type, { after: true })
  const threads = await openThreadlog({ log: gate.log })
  const running = run(threads)
  running.catch(() => {})
  await gate.reached
  return { gate, threads, running }
}

type Case = (place: LogPlace) => Promise<void>

export const submitCases: Readonly<Record<string, Case>> = {
  'dispatches, submits, reserves, then suspends in one commit that quotes the generation': async (place) => {
    const log = await place.fresh()
    await using threads = await openThreadlog({ log })
    const work = jobs()
    const agent = jobAgent(work, ['one', 'ask'])
    const { status, waits } = await threads.run(agent, { thread: 'thread_a', input: 'go', bindings: { deps: 'live' } })
    expect(status).toBe('suspended')
    const [submission] = work.submissions
    expect(work.submissions).toEqual([{ key: submission?.key, name: 'one', deps: 'live' }])
    const id = work.idOf(submission?.key ?? '')
    const [wait] = waits.filter(({ provider }) => provider === 'jobs')
    expect(wait).toMatchObject({ externalId: id, kind: 'external', arguments: { job: 'one' } })
    expect(await holderOf(threads, id)).toEqual({ application: 'default', user: 'default', thread: 'thread_a', id: wait?.id })
    const events = (await eventsOf(threads, 'thread_a')).flatMap(({ event }) => event ?? [])
    const last = events.at(-1)?.commit.id
    expect(events.filter(({ commit }) => commit.id === last).map(({ type }) => type)).toEqual([
      'run.suspended/1',
      ...Array(2).fill(['continuation.suspended/1', 'continuation.armed/1']).flat(),
    ])
    expect(events.flatMap((e) => (e.type === 'continuation.suspended/1' ? [e.data.generation] : []))).toEqual([1, 0])
    const dispatch = events.find(({ type }) => type === 'tool.dispatched/1')
    expect(dispatch).toMatchObject({ data: { idempotency_key: submission?.key } })
    expect((await threads.submit(result(id))).verdict).toBe('accepted')
    const [other] = waits.filter(({ provider }) => provider === 'desk')
    await threads.submit({ provider: 'desk', external_id: other?.externalId ?? '', result: 'yes' })
    expect(await threads.run(agent, { thread: 'thread_a' })).toMatchObject({ status: 'completed', output: 'done' })
    expect(work.submissions).toHaveLength(1)
  },

  'a thrown submission follows toolErrors; nothing is reserved': async (place) => {
    const log = await place.fresh()
    await using threads = await openThreadlog({ log })
    const work = jobs()
    work.answers.set('bad', () => {
      throw new RangeError('secret')
    })
    const agent = jobAgent(work, ['bad', 'good'])
    const told = await threads.run(agent, { thread: 'thread_a', input: 'go', toolErrors: 'return' })
    expect(told.waits).toHaveLength(1)
    expect(await settledCode(threads, 'thread_a', 'c0')).toBe('tool_threw')
    await expect(threads.run(agent, { thread: 'thread_b', input: 'go' })).rejects.toMatchObject({ code: 'tool_threw' })
    const good = work.submissions.findLast(({ name }) => name === 'good')
    expect(await holderOf(threads, work.idOf(good?.key ?? ''))).toBeUndefined()
    expect(await typesOf(threads, 'thread_b')).not.toContain('run.suspended')
  },

  'an answer without a usable id fails the call; an outcome of its own is one': async (place) => {
    await using threads = await openThreadlog({ log: await place.fresh() })
    const work = jobs()
    work.answers.set('none', () => ({ job: 7 }))
    work.answers.set('blank', given(' '))
    work.answers.set('long', given('x'.repeat(1025)))
    const agent = jobAgent(work, ['none', 'blank', 'long'])
    expect(await threads.run(agent, { thread: 'thread_a', input: 'go' })).toMatchObject({ status: 'completed' })
    for (const call of ['c0', 'c1', 'c2']) expect(await settledCode(threads, 'thread_a', call)).toBe('external_id_invalid')
  },

  'arguments that do not fit are mended by the model, not submitted': async (place) => {
    await using threads = await openThreadlog({ log: await place.fresh() })
    const work = jobs()
    const made = calls(['c0', 'job', { job: 7 }])
    const model = scriptedModel([made, says('never mind')])
    const agent = defineAgent({ name: 'agent', revision: '1', model, tools: [jobTool(work.submit)] })
    await threads.run(agent, { thread: 'thread_a', input: 'go' })
    expect(work.submissions).toEqual([])
    expect(returnsOf((await threads.thread('thread_a').state()).messageHistory)).toEqual([['c0', 'retried']])
  },

  'a permission and a policy stand before the submission, and a person may be asked first': async (place) => {
    await using threads = await openThreadlog({ log: await place.fresh() })
    const work = jobs()
    const agent = jobAgent(work, ['one'], { permissions: { job: 'ask' } })
    const asked = await threads.run(agent, { thread: 'thread_a', input: 'go' })
    expect(asked.waits.map(({ kind }) => kind)).toEqual(['approval'])
    expect(work.submissions).toEqual([])
    await threads.approve(asked.waits[0]?.id ?? '', { digest: asked.waits[0]?.digest })
    const waiting = await threads.run(agent, { thread: 'thread_a' })
    expect(waiting.waits.map(({ kind }) => kind)).toEqual(['external'])
    expect(work.submissions).toHaveLength(1)
    await threads.submit(result(waiting.waits[0]?.externalId ?? ''))
    expect((await threads.run(agent, { thread: 'thread_a' })).status).toBe('completed')
    const denied = await threads.run(jobAgent(work, ['one']), {
      thread: 'thread_b',
      input: 'go',
      bindings: { policy: () => 'deny' },
    })
    expect([denied.status, work.submissions.length]).toEqual(['completed', 1])
  },

  'an external id has one wait: a second thread fails with external_id_taken, and its other calls wait': async (place) => {
    await using threads = await openThreadlog({ log: await place.fresh() })
    const work = jobs()
    work.answers.set('shared', given('job-shared'))
    const first = await threads.run(jobAgent(work, ['shared']), { thread: 'thread_a', input: 'go' })
    expect(first.waits[0]?.externalId).toBe('job-shared')
    const second = await threads.run(jobAgent(work, ['own', 'shared']), { thread: 'thread_b', input: 'go' })
    expect(second.waits.map(({ arguments: args }) => args)).toEqual([{ job: 'own' }])
    expect(await settledCode(threads, 'thread_b', 'c1')).toBe('external_id_taken')
    expect((await holderOf(threads, 'job-shared'))?.thread).toBe('thread_a')
    // In the batch of the loser what was reserved was given back, and reserved anew for the batch that was left.
    const own = second.waits[0]?.externalId ?? ''
    expect((await threads.submit(result(own))).verdict).toBe('accepted')
    expect((await threads.submit(result('job-shared'))).verdict).toBe('accepted')
    for (const thread of ['thread_a', 'thread_b'])
      expect((await threads.run(jobAgent(work, []), { thread })).status).toBe('completed')
  },

  'two calls of one batch with one id: the first waits, the second fails': async (place) => {
    await using threads = await openThreadlog({ log: await place.fresh() })
    const work = jobs()
    work.answers.set('shared', given('job-shared'))
    const { waits } = await threads.run(jobAgent(work, ['shared', 'shared']), { thread: 'thread_a', input: 'go' })
    expect(waits).toHaveLength(1)
    expect(await settledCode(threads, 'thread_a', 'c1')).toBe('external_id_taken')
    expect(await settledCode(threads, 'thread_a', 'c0')).toBeUndefined()
  },

  'two batches that want the same two ids: one has both, in whatever order they asked': async (place) => {
    const log = await place.fresh()
    await using here = await openThreadlog({ log })
    await using there = await openThreadlog({ log: await place.again(log) })
    const work = jobs()
    work.answers.set('x', given('job-x'))
    work.answers.set('y', given('job-y'))
    const both = await Promise.all([
      here.run(jobAgent(work, ['x', 'y']), { thread: 'thread_a', input: 'go' }),
      there.run(jobAgent(work, ['y', 'x']), { thread: 'thread_b', input: 'go' }),
    ])
    expect(both.map(({ waits }) => waits.length).sort()).toEqual([0, 2])
    expect(both.map(({ status }) => status).sort()).toEqual(['completed', 'suspended'])
  },

  'a foreign host and a run race for one id: one has it': async (place) => {
    await using threads = await openThreadlog({ log: await place.fresh() })
    const work = jobs()
    work.answers.set('shared', given('job-shared'))
    await threads.run(jobAgent(work, ['shared']), { thread: 'thread_a', input: 'go' })
    const store = threads.continuationStore()
    const scope = { applicationId: 'default', userId: 'ann', sessionId: 'session', runId: 'run-1' }
    await store.beginRun({ scope, framework: 'adk' })
    const provider = threads.continuations('jobs')
    const { userId, sessionId, runId } = scope
    const wanted = { userId, sessionId, runId, externalId: 'job-shared', capability: 'pay', schemaId: 'result/v1' }
    await expect(provider.suspend(wanted)).rejects.toMatchObject({ reason: 'external_id_taken' })
    expect((await provider.lookup({ externalId: 'job-shared' }))?.record.sessionId).toBe('thread_a')
  },

  'a cancelled run gives back what it had reserved': async (place) => {
    const log = await place.fresh()
    const { gate, threads, running } = await stoppedAt(log, 'reservation.taken/1', (t) => {
      const work = jobs()
      work.answers.set('shared', given('job-shared'))
      return t.run(jobAgent(work, ['shared']), { thread: 'thread_a', input: 'go' })
    })
    await threads.thread('thread_a').cancel()
    gate.open()
    expect(await running).toMatchObject({ status: 'cancelled' })
    expect(await holderOf(threads, 'job-shared')).toBeUndefined()
    expect(await typesOf(threads, 'thread_a')).toContain('reservation.withdrawn')
    await threads.close()
  },

  'a reservation that was taken over before its thread suspended is lost: the thread is told, another one waits': async (
    place,
  ) => {
    const log = await place.fresh()
    const work = jobs()
    work.answers.set('shared', given('job-shared'))
    const slow = gatedLog(log, 'continuation.suspended/1')
    await using here = await openThreadlog({ log: slow.log })
    await using there = await openThreadlog({ log: await place.again(log) })
    const first = here.run(jobAgent(work, ['shared']), { thread: 'thread_a', input: 'go' })
    await slow.reached
    const second = await there.run(jobAgent(work, ['shared']), { thread: 'thread_b', input: 'go' })
    expect(second.waits[0]?.externalId).toBe('job-shared')
    slow.open()
    expect(await first).toMatchObject({ status: 'completed' })
    expect(await settledCode(here, 'thread_a', 'c0')).toBe('external_id_taken')
    expect((await typesOf(there, 'thread_a')).filter((type) => type === 'reservation.withdrawn')).toHaveLength(1)
  },
}
