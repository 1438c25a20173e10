import { expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { agentOf, calls, eventsOf, returnsOf, says, toolbox, typesOf } from '../support/agents.ts'

const open = () => openThreadlog({ application: 'test' })

test('a mixed batch suspends in one commit with armed waits, and resumes in one commit (R10, R11)', async () => {
  await using threads = await open()
  const { tools, ran } = toolbox()
  const question = {
    questions: [
      {
        question: 'Sure?',
        header: 'Sure',
        options: [
          { label: 'Yes', description: 'y' },
          { label: 'No', description: 'n' },
        ],
      },
    ],
  }
  const made = calls(
    ['c1', 'plain', { n: 1 }],
    ['c2', 'guarded', { n: 2 }],
    ['c3', 'far', { n: 3 }],
    ['c4', 'ask_user_question', question],
  )
  const agent = agentOf([made, says('all in')], Object.values(tools), { questions: true })
  const suspended = await threads.run(agent, { thread: 'thread_a', input: 'go' })
  expect(suspended.status).toBe('suspended')
  expect(suspended.waits.map((wait) => wait.kind)).toEqual(['approval', 'external', 'question'])
  expect(ran.map((r) => r.tool)).toEqual(['plain'])
  const before = await eventsOf(threads, 'thread_a')
  const tail = before.filter((e) => e.event?.commit.id === before.at(-1)?.event?.commit.id).map((e) => e.event?.type)
  expect(tail).toEqual([
    'tool.settled/1',
    'request.composed/1',
    'run.suspended/1',
    ...Array(3).fill(['continuation.suspended/1', 'continuation.armed/1']).flat(),
  ])
  const [approval, external, asked] = suspended.waits as [
    (typeof suspended.waits)[0],
    (typeof suspended.waits)[0],
    (typeof suspended.waits)[0],
  ]
  expect((await threads.run(agent, { thread: 'thread_a' })).status).toBe('suspended')
  expect((await threads.answer(asked.id, { answers: { 'Sure?': 'Yes' } })).verdict).toBe('accepted')
  expect((await threads.submit({ provider: 'outside', external_id: external.externalId, result: { ok: 'no' } })).verdict).toBe(
    'invalid',
  )
  expect((await threads.submit({ provider: 'outside', external_id: external.externalId, result: { ok: true } })).verdict).toBe(
    'accepted',
  )
  expect((await threads.run(agent, { thread: 'thread_a' })).status).toBe('suspended')
  expect((await threads.approve(approval.id, { digest: 'f'.repeat(64) })).verdict).toBe('proposal-changed')
  expect((await threads.approve(approval.id, { digest: approval.digest, by: 'lead' })).verdict).toBe('accepted')
  const done = await threads.run(agent, { thread: 'thread_a' })
  expect(done).toMatchObject({ status: 'completed', output: 'all in', invocationId: suspended.invocationId })
  expect(done.runId).not.toBe(suspended.runId)
  expect(ran.map((r) => [r.tool, r.approved])).toEqual([
    ['plain', false],
    ['guarded', true],
  ])
  const after = await eventsOf(threads, 'thread_a')
  const resumed = after.find((e) => e.event?.type === 'continuation.claimed/1')?.event?.commit.id
  expect(after.filter((e) => e.event?.commit.id === resumed).map((e) => e.event?.type)).toEqual([
    ...Array(3).fill('continuation.claimed/1'),
    'run.started/1',
    'tool.dispatched/1',
    'tool.settled/1',
    'tool.settled/1',
  ])
  const history = (await threads.thread('thread_a').state()).messageHistory
  expect(returnsOf(history)).toEqual([
    ['c1', 'success'],
    ['c2', 'success'],
    ['c3', 'success'],
    ['c4', 'success'],
  ])
})

test('overrides replace the arguments and are validated; history keeps the call of the model', async () => {
  await using threads = await open()
  const { tools, ran } = toolbox()
  const agent = agentOf([calls(['c1', 'guarded', { n: 1 }]), calls(['c2', 'guarded', { n: 2 }]), says('done')], [tools.guarded])
  const first = await threads.run(agent, { thread: 'thread_a', input: 'go' })
  await threads.approve(first.waits[0]?.id ?? '', { overrideArgs: { n: 7 } })
  const second = await threads.run(agent, { thread: 'thread_a' })
  expect(ran.map((r) => r.args)).toEqual([{ n: 7 }])
  await threads.approve(second.waits[0]?.id ?? '', { overrideArgs: { n: 'x' } })
  expect((await threads.run(agent, { thread: 'thread_a' })).status).toBe('completed')
  expect(ran).toHaveLength(1)
  const state = await threads.thread('thread_a').state()
  expect(returnsOf(state.messageHistory)).toEqual([
    ['c1', 'success'],
    ['c2', 'retried'],
  ])
  expect(state.toText()).toContain('{\\"n\\":1}')
})

test('a denial and an external failure are answers: the call does not run, the run goes on', async () => {
  await using threads = await open()
  const { tools, ran } = toolbox()
  const agent = agentOf([calls(['c1', 'guarded', { n: 1 }], ['c2', 'far', { n: 1 }]), says('sorry')], Object.values(tools))
  const { waits } = await threads.run(agent, { thread: 'thread_a', input: 'go' })
  await threads.deny(waits[0]?.id ?? '', { reason: 'too much' })
  const failure = { code: 'bank_closed', retryable: false }
  await threads.submit({ provider: 'outside', continuation_id: waits[1]?.id ?? '', failure })
  const done = await threads.run(agent, { thread: 'thread_a' })
  expect(done.output).toBe('sorry')
  expect(ran).toEqual([])
  const state = await threads.thread('thread_a').state()
  expect(returnsOf(state.messageHistory)).toEqual([
    ['c1', 'denied'],
    ['c2', 'failed'],
  ])
  expect(state.toText()).toContain('too much')
  expect(state.toText()).toContain('"error":{"code":"bank_closed","retryable":false}')
})

test('new input on a suspended thread gives up its waits; a late result is told so', async () => {
  await using threads = await open()
  const { tools } = toolbox()
  const agent = agentOf([calls(['c1', 'far', { n: 1 }]), says('moved on')], [tools.far])
  const suspended = await threads.run(agent, { thread: 'thread_a', input: 'go' })
  const { waits } = suspended
  const next = await threads.run(agent, { thread: 'thread_a', input: 'never mind' })
  expect(next).toMatchObject({ status: 'completed', output: 'moved on' })
  const state = await threads.store.load(threads.thread('thread_a').stream)
  expect(state.invocations.get(suspended.invocationId)).toMatchObject({ status: 'cancelled' })
  const receipt = await threads.submit({ provider: 'outside', continuation_id: waits[0]?.id ?? '', result: { ok: true } })
  expect(receipt.verdict).toBe('abandoned')
  expect(returnsOf((await threads.thread('thread_a').state()).messageHistory)).toEqual([['c1', 'failed']])
})

test('a resume that the agent no longer fits claims nothing, and succeeds once it fits again (R11)', async () => {
  await using threads = await open()
  const { tools } = toolbox()
  const script = [calls(['c1', 'far', { n: 1 }]), says('done')]
  const agent = agentOf(script, [tools.far])
  const { waits } = await threads.run(agent, { thread: 'thread_a', input: 'go' })
  await threads.submit({ provider: 'outside', continuation_id: waits[0]?.id ?? '', result: { ok: true } })
  const refused = await threads.run(agentOf([says('no')], [], { revision: '2' }), { thread: 'thread_a' })
  expect(refused).toMatchObject({ status: 'failed', failure: { code: 'deferred_surface_mismatch' } })
  expect(await typesOf(threads, 'thread_a')).not.toContain('continuation.claimed')
  expect((await threads.run(agent, { thread: 'thread_a' })).output).toBe('done')
})

test('cancel ends a suspended run with its waits', async () => {
  await using threads = await open()
  const { tools } = toolbox()
  const agent = agentOf([calls(['c1', 'far', { n: 1 }]), says('new')], [tools.far])
  const { waits } = await threads.run(agent, { thread: 'thread_a', input: 'go' })
  await threads.thread('thread_a').cancel({ reason: 'changed my mind' })
  expect((await typesOf(threads, 'thread_a')).slice(-4)).toEqual([
    'tool.settled',
    'request.composed',
    'continuation.cancelled',
    'run.cancelled',
  ])
  const late = await threads.submit({ provider: 'outside', continuation_id: waits[0]?.id ?? '', result: { ok: true } })
  expect(late.verdict).toBe('cancelled')
  expect((await threads.run(agent, { thread: 'thread_a', input: 'again' })).output).toBe('new')
})

test('aborting the signal cancels a run while its tool hangs', async () => {
  await using threads = await open()
  const { defineTool } = await import('../../src/index.ts')
  const { z } = await import('zod')
  const abort = new AbortController()
  const hang = defineTool({
    name: 'hang',
    description: 'hangs',
    input: z.object({}),
    execute: () => {
      abort.abort()
      return new Promise(() => {})
    },
  })
  const result = await threads.run(agentOf([calls(['c1', 'hang', {}])], [hang]), {
    thread: 'thread_a',
    input: 'go',
    signal: abort.signal,
  })
  expect(result.status).toBe('cancelled')
  const history = (await threads.thread('thread_a').state()).messageHistory
  expect(history.at(-1)?.state).toBe('interrupted')
  expect(returnsOf(history)).toEqual([['c1', 'failed']])
})
