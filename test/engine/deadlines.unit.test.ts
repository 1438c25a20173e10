import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineAgent, externalTool, openThreadlog, type Threadlog, type Wait } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { calls, eventsOf, returnsOf, says, toolbox, typesOf } from '../support/agents.ts'
import { places } from '../support/processes/place.ts'
import { type SetClock, setClock } from '../support/set-clock.ts'

const place = places()
const opened: Threadlog[] = []
afterEach(async () => {
  for (const threads of opened.splice(0)) await threads.close()
})

const far = (deadlineMs?: number) =>
  externalTool({ name: 'far', description: 'far away', input: z.object({ n: z.int() }), provider: 'outside', deadlineMs })

const asking = (...made: Parameters<typeof calls>) =>
  scriptedModel((prompt) => (prompt.some((m) => m.role === 'tool') ? says('done') : calls(...made)))

const HOUR = 3_600_000

async function waitsOf(threads: Threadlog, thread: string, n: number): Promise<Wait[]> {
  const waits: Wait[] = []
  for await (const wait of threads.waits({ thread, follow: true })) if (waits.push(wait) === n) break
  return waits
}

const requests = (threads: Threadlog) =>
  threads.backend.tables.all<{ continuation_id: string; cancelled: number | null }>(
    'SELECT continuation_id, cancelled FROM threadlog_requests ORDER BY offset',
  )

describe.each(['memory', 'sqlite'] as const)('deadlines on %s', (kind) => {
  const open = async (clock: SetClock, o: Parameters<typeof openThreadlog>[0] = {}) => {
    const threads = await openThreadlog({ log: kind === 'memory' ? 'memory' : place().log, clock, ...o })
    opened.push(threads)
    return threads
  }

  test('a wait that nobody answered in time expires: the model reads a failure, the provider a cancelled request, a late result `expired`', async () => {
    const clock = setClock()
    const agent = defineAgent({ name: 'agent', revision: '1', model: asking(['c1', 'far', { n: 1 }]), tools: [far(HOUR)] })
    const threads = await open(clock, { agents: [agent] })
    await threads.serve({ sweepMs: 5 })
    const run = await threads.start({ agent, thread: 'thread_a', input: 'go' })
    const [wait] = (await waitsOf(threads, 'thread_a', 1)) as [Wait]
    expect(wait.deadline).toBeGreaterThan(clock.now())
    clock.pass(HOUR + 1)
    const result = await run.result()
    expect(result.output).toBe('done')
    expect(returnsOf(result.state?.messageHistory ?? [])).toEqual([['c1', 'failed']])
    expect(JSON.stringify(result.state?.messageHistory ?? [])).toContain('{"error":{"code":"expired","retryable":false}}')
    expect(await typesOf(threads, 'thread_a')).toEqual([
      ...['thread.opened', 'run.requested', 'run.started', 'request.composed', 'model.responded', 'run.suspended'],
      ...['continuation.suspended', 'continuation.armed', 'continuation.expired'],
      ...['run.started', 'tool.settled', 'request.composed', 'model.responded', 'run.completed'],
    ])
    expect(await threads.submit({ provider: 'outside', continuation_id: wait.id, result: 1 })).toMatchObject({
      verdict: 'expired',
    })
    expect(requests(threads)).toEqual([
      { continuation_id: wait.id, cancelled: null },
      { continuation_id: wait.id, cancelled: 1 },
    ])
  })

  test('of a batch one may expire and another be answered; approvals and questions take the time their agent gives people', async () => {
    const clock = setClock()
    const { ran, tools } = toolbox()
    const model = asking(['c1', 'far', { n: 1 }], ['c2', 'guarded', { n: 2 }])
    const agent = defineAgent({
      ...{ name: 'agent', revision: '1', model, tools: [far(), tools.guarded] },
      deadlines: { outside: 2 * HOUR, human: HOUR },
    })
    const threads = await open(clock, { agents: [agent] })
    await threads.serve({ sweepMs: 5 })
    const run = await threads.start({ agent, thread: 'thread_a', input: 'go' })
    const waits = await waitsOf(threads, 'thread_a', 2)
    const [external, approval] = ['external', 'approval'].map((of) => waits.find((wait) => wait.kind === of) as Wait)
    expect((external?.deadline ?? 0) - (approval?.deadline ?? 0)).toBe(HOUR)
    clock.pass(HOUR + 1)
    await expect.poll(async () => (await typesOf(threads, 'thread_a')).includes('continuation.expired')).toBe(true)
    expect(await threads.approve(approval?.id ?? '')).toMatchObject({ verdict: 'expired' })
    expect(await threads.submit({ provider: 'outside', continuation_id: external?.id ?? '', result: 1 })).toMatchObject({
      verdict: 'accepted',
    })
    const result = await run.result()
    expect(returnsOf(result.state?.messageHistory ?? [])).toEqual([
      ['c1', 'success'],
      ['c2', 'failed'],
    ])
    expect(ran).toEqual([])
  })

  test('in library mode the next run of the thread finds that the time is over', async () => {
    const clock = setClock()
    const agent = defineAgent({ name: 'agent', revision: '1', model: asking(['c1', 'far', { n: 1 }]), tools: [far(HOUR)] })
    const threads = await open(clock)
    expect((await threads.run(agent, { thread: 'thread_a', input: 'go' })).status).toBe('suspended')
    expect((await threads.run(agent, { thread: 'thread_a' })).status).toBe('suspended')
    clock.pass(HOUR)
    const result = await threads.run(agent, { thread: 'thread_a' })
    expect([result.status, returnsOf(result.state?.messageHistory ?? [])]).toEqual(['completed', [['c1', 'failed']]])
    const expired = (await eventsOf(threads, 'thread_a')).find(({ event }) => event?.type === 'continuation.expired/1')
    expect(expired?.event).toMatchObject({
      actor: { kind: 'library', source: 'deadline' },
      data: { failure: { code: 'expired' } },
    })
  })

  test('an overdue wait that nobody has recorded as expired still takes its result: the log decides, not the clock', async () => {
    const clock = setClock()
    const agent = defineAgent({ name: 'agent', revision: '1', model: asking(['c1', 'far', { n: 1 }]), tools: [far(HOUR)] })
    const threads = await open(clock)
    const { waits } = await threads.run(agent, { thread: 'thread_a', input: 'go' })
    clock.pass(2 * HOUR)
    const late = { provider: 'outside', continuation_id: waits[0]?.id ?? '', result: 1 }
    expect(await threads.submit(late)).toMatchObject({ verdict: 'accepted' })
    const result = await threads.run(agent, { thread: 'thread_a' })
    expect(returnsOf(result.state?.messageHistory ?? [])).toEqual([['c1', 'success']])
    expect(await typesOf(threads, 'thread_a')).not.toContain('continuation.expired')
  })

  test('an expired call is closed as failed when its run is cancelled, and needs no tool of that name any more', async () => {
    const clock = setClock()
    const model = asking(['c1', 'far', { n: 1 }], ['c2', 'far', { n: 2 }])
    const agent = defineAgent({ name: 'agent', revision: '1', model, tools: [far(HOUR)] })
    const threads = await open(clock)
    await threads.run(agent, { thread: 'thread_a', input: 'go' })
    await threads.run(agent, { thread: 'thread_b', input: 'go' })
    clock.pass(HOUR)
    const without = defineAgent({ name: 'agent', revision: '2', model, tools: [] })
    expect((await threads.run(without, { thread: 'thread_a' })).status).toBe('completed')
    await threads.store.commit(threads.thread('thread_b').stream, (state) => {
      const [wait] = [...state.waits.values()]
      const data = { continuation_id: wait?.id ?? '', revision: 2, failure: null }
      const context = { stream: threads.thread('thread_b').stream, now: clock.now(), runId: null, attempt: null }
      return {
        context: { ...context, actor: { kind: 'engine', id: '', source: 'deadline' } },
        drafts: [{ type: 'continuation.expired/1', data }],
      }
    })
    await threads.thread('thread_b').cancel()
    const state = await threads.thread('thread_b').state()
    expect(returnsOf(state.messageHistory)).toEqual([
      ['c1', 'failed'],
      ['c2', 'failed'],
    ])
    expect(JSON.stringify(state.messageHistory)).toContain('"code":"expired"')
  })
})

test('a deadline that is no number of milliseconds is refused where the agent is declared', () => {
  const declare = (ms: number) => defineAgent({ name: 'a', revision: '1', model: asking(), tools: [], deadlines: { human: ms } })
  for (const ms of [0, -1, 1.5, Number.NaN])
    expect(() => declare(ms)).toThrow(expect.objectContaining({ code: 'deadline_invalid', path: 'deadlines.human' }))
})
