import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineAgent, defineTool, externalTool, openThreadlog } from '../../src/index.ts'
import { finish, rawModel } from '../models/raw-model.ts'
import { agentOf, calls, eventsOf, returnsOf, says, toolbox, typesOf } from '../support/agents.ts'

const open = () => openThreadlog({ application: 'test' })

test('an approval counts for the definition it was given for: another one claims nothing (R11)', async () => {
  await using threads = await open()
  const ran: string[] = []
  const tool = (description: string) =>
    defineTool({
      name: 'erase',
      description,
      needsApproval: true,
      input: z.object({ n: z.int() }),
      execute: () => void ran.push(description),
    })
  const script = [calls(['c1', 'erase', { n: 1 }]), says('done')]
  const one = agentOf(script, [tool('Delete one row')])
  const { waits } = await threads.run(one, { thread: 'thread_a', input: 'go' })
  await threads.approve(waits[0]?.id ?? '', { digest: waits[0]?.digest })
  const all = agentOf([says('no')], [tool('Delete all rows')], { revision: '2' })
  expect(await threads.run(all, { thread: 'thread_a' })).toMatchObject({ failure: { code: 'deferred_surface_mismatch' } })
  expect(ran).toEqual([])
  expect((await threads.run(one, { thread: 'thread_a' })).output).toBe('done')
  expect(ran).toEqual(['Delete one row'])
})

test.each([
  [
    'asks for approval by throwing',
    z.object({}),
    () => {
      throw new TypeError('private')
    },
  ],
  ['checks its arguments asynchronously', z.object({}).refine(async () => true), false],
])('a tool that %s fails its call, and the run goes on', async (_, input, needsApproval) => {
  await using threads = await open()
  const ran: string[] = []
  const odd = defineTool({ name: 'odd', description: 'odd', input, needsApproval, execute: () => void ran.push('odd') })
  const agent = agentOf([calls(['c1', 'odd', {}]), says('went on')], [odd])
  expect((await threads.run(agent, { thread: 'thread_a', input: 'go' })).output).toBe('went on')
  const state = await threads.thread('thread_a').state()
  expect(returnsOf(state.messageHistory)).toEqual([['c1', 'failed']])
  expect(state.toText()).not.toContain('private')
  expect(ran).toEqual([])
})

test('a provider that pauses for ever is asked as often as a run may ask, each time under the next step', async () => {
  await using threads = await open()
  const model = rawModel([
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: '…' },
    { type: 'text-end', id: '0' },
    finish('stop', 'pause_turn'),
  ])
  const agent = defineAgent({ name: 'agent', revision: '1', model })
  const result = await threads.run(agent, { thread: 'thread_a', input: 'go' })
  expect(result).toMatchObject({ status: 'failed', failure: { code: 'usage_limit_exceeded' } })
  const asked = (await eventsOf(threads, 'thread_a')).flatMap(({ event }) =>
    event?.type === 'model.requested/1' ? [event.data.step] : [],
  )
  expect(asked.slice(0, 3)).toEqual([2, 3, 4])
  expect(asked.at(-1)).toBe(1001)
})

test('validators given to serve() are asked', async () => {
  const { tools } = toolbox()
  const far = externalTool({ name: 'far', description: 'far', provider: 'outside', input: z.object({ n: z.int() }) })
  const agent = agentOf(
    (prompt: readonly { role: string }[]) =>
      prompt.some((m) => m.role === 'tool') ? says('ok') : calls(['c1', 'far', { n: 1 }]),
    [far, tools.plain],
  )
  await using threads = await openThreadlog({ agents: [agent] })
  const asked: unknown[] = []
  const validate = (value: unknown) => {
    asked.push(value)
    if (value !== 'good') throw new Error('no')
    return value
  }
  await threads.serve({ validators: { find: (provider) => (provider === 'outside' ? validate : undefined) } })
  const run = await threads.start({ agent: 'agent', thread: 'thread_a', input: 'go' })
  for await (const wait of threads.waits({ follow: true })) {
    expect((await threads.submit({ provider: 'outside', continuation_id: wait.id, result: 'bad' })).verdict).toBe('invalid')
    expect((await threads.submit({ provider: 'outside', continuation_id: wait.id, result: 'good' })).verdict).toBe('accepted')
    break
  }
  expect((await run.result()).status).toBe('completed')
  expect(asked).toEqual(['bad', 'good'])
})

test('an engine that could not start serves nothing', async () => {
  await using threads = await open()
  const engine = await threads.serve({ http: {} })
  const port = Number(new URL(engine.http?.url ?? '').port)
  await engine.close()
  const blocked = await threads.serve({ http: { port } })
  await expect(threads.serve({ http: { port } })).rejects.toMatchObject({ code: 'http_unavailable' })
  await blocked.close()
  const { tools, ran } = toolbox()
  const agent = agentOf([calls(['c1', 'guarded', { n: 1 }])], [tools.guarded])
  const { waits } = await threads.run(agent, { thread: 'thread_a', input: 'go' })
  expect((await threads.approve(waits[0]?.id ?? '')).verdict).toBe('accepted')
  expect(ran).toEqual([])
  expect((await typesOf(threads, 'thread_a')).at(-1)).toBe('continuation.completed')
})

test('the same command asks once, also when it names no thread', async () => {
  await using threads = await open()
  const one = await threads.start({ agent: 'agent', input: 'go', commandId: 'order-991' })
  const two = await threads.start({ agent: 'agent', input: 'go', commandId: 'order-991' })
  expect([two.thread, two.runId]).toEqual([one.thread, one.runId])
})

test('definitions that cannot work are refused with a code', () => {
  const input = z.object({})
  expect(() => externalTool({ name: 'x', description: '', input, provider: 'human' })).toThrow(
    expect.objectContaining({ code: 'provider_name_invalid' }),
  )
  const dated = { name: 'x', description: '', input: z.object({ at: z.date() }), execute: () => 1 }
  expect(() => defineTool(dated)).toThrow(expect.objectContaining({ code: 'tool_schema_unsupported' }))
})
