import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineAgent, defineTool, externalTool, openThreadlog } from '../../src/index.ts'
import { finish, rawModel } from '../models/raw-model.ts'
import { agentOf, calls, eventsOf, returnsOf, says, toolbox } from '../support/agents.ts'

// What can never be decided must end, not be tried for ever: each turn of such a loop asked, and paid, the model again.

test('a call id that no event can hold fails the run, in an engine too', async () => {
  const parts = [{ type: 'tool-call', toolCallId: 'c\ud83d', toolName: 'plain', input: '{"n":1}' }, finish('tool-calls')]
  const { tools, ran } = toolbox()
  const agent = defineAgent({ name: 'agent', revision: '1', model: rawModel(parts), tools: [tools.plain] })
  await using threads = await openThreadlog({ agents: [agent] })
  await threads.serve()
  const run = await threads.start({ agent: 'agent', thread: 'thread_a', input: 'go' })
  expect(await run.result()).toMatchObject({ status: 'failed', failure: { code: 'agent_run_failed' } })
  expect(ran).toEqual([])
})

test('arguments that are no JSON once they are checked end the run', async () => {
  await using threads = await openThreadlog({})
  const big = defineTool({
    name: 'big',
    description: 'big',
    input: z.object({ n: z.string().transform((text) => BigInt(text)) }),
    execute: () => 'never',
  })
  const result = await threads.run(agentOf([calls(['c1', 'big', { n: '1' }])], [big]), { thread: 'thread_a', input: 'go' })
  expect(result).toMatchObject({ status: 'failed', failure: { code: 'agent_run_failed' } })
  const next = await threads.run(agentOf([says('fine')], [big]), { thread: 'thread_a', input: 'again' })
  expect(next.output).toBe('fine')
})

test.each<[string, object, string]>([
  ['a number as input', { input: 5 }, 'input_invalid'],
  ['items of no kind', { input: [{ foo: 1 }] }, 'input_invalid'],
  ['an unknown recovery', { input: 'go', toolRecovery: 'bogus' }, 'option_invalid'],
  ['no agent', { agent: '', input: 'go' }, 'agent_invalid'],
])('start() refuses %s before anything is recorded', async (_, wrong, code) => {
  await using threads = await openThreadlog({})
  const asked = threads.start({ agent: 'agent', thread: 'thread_a', ...wrong } as never)
  await expect(asked).rejects.toMatchObject({ code })
  expect(await eventsOf(threads, 'thread_a')).toEqual([])
})

test('definitions that could never run are refused', () => {
  const far = { name: 'far', description: '', provider: 'outside', input: z.object({}) }
  for (const deadlineMs of [1.5, Number.POSITIVE_INFINITY, 0, -1])
    expect(() => externalTool({ ...far, deadlineMs })).toThrow(expect.objectContaining({ code: 'deadline_invalid' }))
  for (const system of ['x'.repeat(70_000), [undefined as never], 'a\ud800'])
    expect(() => agentOf([], [], { system: system as string })).toThrow(expect.objectContaining({ code: 'agent_invalid' }))
})

test('two openings of one log in a process are one owner: neither takes over what the other runs', async () => {
  await using first = await openThreadlog({ application: 'one' })
  const slow = defineTool({
    name: 'slow',
    description: 'slow',
    input: z.object({}),
    recovery: 'retryable',
    execute: () => new Promise((resolve) => setTimeout(resolve, 1500, 'done')),
  })
  const agent = agentOf([calls(['c1', 'slow', {}]), says('over')], [slow])
  const second = await openThreadlog({ application: 'one', log: first.backend, agents: [agent] })
  await second.serve({ sweepMs: 50 })
  expect(await first.run(agent, { thread: 'thread_a', input: 'go' })).toMatchObject({ status: 'completed', output: 'over' })
  expect((await eventsOf(first, 'thread_a')).filter(({ event }) => event?.type === 'run.recovered/1')).toEqual([])
  await second.close()
})

test('an answer that was accepted is told to the model, also when new input came first', async () => {
  await using threads = await openThreadlog({})
  const { tools } = toolbox()
  const agent = agentOf([calls(['c1', 'far', { n: 1 }], ['c2', 'far', { n: 2 }]), says('noted')], [tools.far])
  const { waits } = await threads.run(agent, { thread: 'thread_a', input: 'go' })
  await threads.submit({ provider: 'outside', continuation_id: waits[0]?.id ?? '', result: { ok: true } })
  expect((await threads.run(agent, { thread: 'thread_a', input: 'and?' })).output).toBe('noted')
  const state = await threads.thread('thread_a').state()
  expect(returnsOf(state.messageHistory)).toEqual([
    ['c1', 'success'],
    ['c2', 'failed'],
  ])
})

test('a run is gone on with by its own agent only', async () => {
  await using threads = await openThreadlog({})
  const { tools } = toolbox()
  const { waits } = await threads.run(agentOf([calls(['c1', 'far', { n: 1 }])], [tools.far]), { thread: 'thread_a', input: 'go' })
  await threads.submit({ provider: 'outside', continuation_id: waits[0]?.id ?? '', result: { ok: true } })
  const other = defineAgent({ name: 'other', revision: '1', model: agentOf([says('no')], []).model, tools: [tools.far] })
  await expect(threads.run(other, { thread: 'thread_a' })).rejects.toMatchObject({ code: 'agent_mismatch' })
})

test('an engine leaves the threads of other applications alone', async () => {
  const agent = agentOf(() => says('bank'), [])
  await using shop = await openThreadlog({ application: 'shop', agents: [agent] })
  await shop.serve({ sweepMs: 20 })
  const bank = await openThreadlog({ application: 'bank', log: shop.backend })
  await bank.start({ agent: 'agent', thread: 'thread_a', input: 'go' })
  const own = await shop.start({ agent: 'agent', thread: 'thread_a', input: 'go' })
  await own.result()
  expect((await eventsOf(bank, 'thread_a')).map(({ event }) => event?.type)).toEqual(['thread.opened/1', 'run.requested/1'])
  await bank.close()
})
