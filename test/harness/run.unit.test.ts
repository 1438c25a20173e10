import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, openThreadlog } from '../../src/index.ts'
import { CONTENT_LIMIT } from '../../src/log/index.ts'
import { agentOf, calls, eventsOf, returnsOf, says, toolbox, typesOf } from '../support/agents.ts'

const open = () => openThreadlog({ application: 'test' })

test('text completes the run; response and end share a commit (R12)', async () => {
  await using threads = await open()
  const result = await threads.run(agentOf([says('hello')], []), { thread: 'thread_a', input: 'hi' })
  expect(result).toMatchObject({ status: 'completed', output: 'hello', version: 6, failure: null })
  const events = await eventsOf(threads, 'thread_a')
  expect(events.map((e) => e.event?.type)).toEqual([
    'thread.opened/1',
    'run.requested/1',
    'run.started/1',
    'request.composed/1',
    'model.responded/1',
    'run.completed/1',
  ])
  expect(new Set(events.map((e) => e.event?.commit.id)).size).toBe(2)
})

test('parallel calls run together, a sequential one alone, and returns keep the order of the calls', async () => {
  await using threads = await open()
  const log: string[] = []
  const slow = (name: string, ms: number, sequential = false) =>
    defineTool({
      name,
      description: name,
      input: z.object({}),
      sequential,
      execute: async () => {
        log.push(`${name}+`)
        await new Promise((resolve) => setTimeout(resolve, ms))
        log.push(`${name}-`)
        return name
      },
    })
  const tools = [slow('a', 40), slow('b', 5), slow('alone', 5, true), slow('c', 5)]
  const made = tools.map((tool, i): [string, string, Record<string, unknown>] => [`c${i}`, tool.name, {}])
  await threads.run(agentOf([calls(...made), says('done')], tools), { thread: 'thread_a', input: 'go' })
  expect(log).toEqual(['a+', 'b+', 'b-', 'a-', 'alone+', 'alone-', 'c+', 'c-'])
  const state = await threads.thread('thread_a').state()
  expect(returnsOf(state.messageHistory).map(([id]) => id)).toEqual(['c0', 'c1', 'c2', 'c3'])
})

test('an unknown tool and invalid arguments are answered by retried returns, and nothing runs', async () => {
  await using threads = await open()
  const { tools, ran } = toolbox()
  const script = [
    calls(['c1', 'nowhere', {}], ['c2', 'plain', { n: 'x' }]),
    { parts: [{ tool_call: { id: 'c3', name: 'plain', args_text: '{"n": 1' } }] },
    says('ok'),
  ]
  const result = await threads.run(agentOf(script, [tools.plain]), { thread: 'thread_a', input: 'go' })
  expect(result.status).toBe('completed')
  expect(ran).toEqual([])
  const state = await threads.thread('thread_a').state()
  expect(returnsOf(state.messageHistory)).toEqual([
    ['c1', 'retried'],
    ['c2', 'retried'],
    ['c3', 'retried'],
  ])
  const causes = state.messageHistory.flatMap((m) =>
    m.kind === 'request' ? m.parts.flatMap((p) => (p.part_kind === 'tool-return' ? [p.retry?.cause] : [])) : [],
  )
  expect(causes).toEqual(['unknown_tool', 'validation_error', 'validation_error'])
})

test('a model that never mends its call fails the run after five retries', async () => {
  await using threads = await open()
  const { tools } = toolbox()
  const script = (_: unknown, i: number) => calls([`c${i}`, 'plain', { n: 'no' }])
  const result = await threads.run(agentOf(script, [tools.plain]), { thread: 'thread_a', input: 'go' })
  expect(result).toMatchObject({ status: 'failed', failure: { code: 'agent_run_failed' } })
  const responses = (await typesOf(threads, 'thread_a')).filter((type) => type === 'model.responded')
  expect(responses).toHaveLength(6)
})

test('an empty response is fed back three times, then fails the run', async () => {
  await using threads = await open()
  const result = await threads.run(
    agentOf(() => ({ parts: [] }), []),
    { thread: 'thread_a', input: 'go' },
  )
  expect(result).toMatchObject({ status: 'failed', failure: { code: 'agent_run_failed' } })
  expect((await typesOf(threads, 'thread_a')).filter((type) => type === 'model.responded')).toHaveLength(4)
})

test('two calls with one id in a response fail the request; nothing runs and other threads go on', async () => {
  await using threads = await open()
  const { tools, ran } = toolbox()
  const bad = agentOf([calls(['c1', 'plain', { n: 1 }], ['c1', 'plain', { n: 2 }])], [tools.plain])
  const result = await threads.run(bad, { thread: 'thread_a', input: 'go' })
  expect(result).toMatchObject({ status: 'failed', failure: { code: 'agent_run_failed' } })
  expect(ran).toEqual([])
  expect((await threads.run(agentOf([says('fine')], []), { thread: 'thread_b', input: 'go' })).status).toBe('completed')
})

test('a call id used again by a later response is another call, with another idempotency key (R13)', async () => {
  await using threads = await open()
  const { tools, ran } = toolbox()
  const script = [calls(['c1', 'plain', { n: 1 }]), calls(['c1', 'plain', { n: 1 }]), says('done')]
  const result = await threads.run(agentOf(script, [tools.plain]), { thread: 'thread_a', input: 'go' })
  expect(result.status).toBe('completed')
  expect(ran).toHaveLength(2)
  expect(ran[0]?.key).not.toBe(ran[1]?.key)
})

test('a tool that throws ends a library run: unknown result, position on the error; the thread goes on afterwards', async () => {
  await using threads = await open()
  const boom = defineTool({
    name: 'boom',
    description: 'throws',
    input: z.object({}),
    execute: () => {
      throw new RangeError('secret detail')
    },
  })
  const failing = threads.run(agentOf([calls(['c1', 'boom', {}])], [boom]), { thread: 'thread_a', input: 'go' })
  await expect(failing).rejects.toMatchObject({ code: 'tool_threw', cause: { message: 'secret detail' } })
  const events = await eventsOf(threads, 'thread_a')
  expect(events.map((e) => Buffer.from(e.bytes).includes('secret detail'))).not.toContain(true)
  const state = await threads.thread('thread_a').state()
  expect(returnsOf(state.messageHistory)).toEqual([['c1', 'failed']])
  const next = await threads.run(agentOf([says('again')], [boom]), { thread: 'thread_a', input: 'and now?' })
  expect(next.status).toBe('completed')
})

test("toolErrors 'return' tells the model the error's class, and nothing more", async () => {
  await using threads = await open()
  const boom = defineTool({
    name: 'boom',
    description: 'throws',
    input: z.object({}),
    execute: () => {
      throw new RangeError('secret detail')
    },
  })
  const agent = agentOf([calls(['c1', 'boom', {}]), says('noted')], [boom])
  const result = await threads.run(agent, { thread: 'thread_a', input: 'go', toolErrors: 'return' })
  expect(result.output).toBe('noted')
  const text = (await threads.thread('thread_a').state()).toText()
  expect(text).toContain('RangeError')
  expect(text).not.toContain('secret')
})

test('results that cannot be stored settle as failed: larger than the content store takes, not JSON, too slow', async () => {
  await using threads = await open()
  const make = (name: string, execute: () => unknown, timeoutMs?: number) =>
    defineTool({ name, description: name, input: z.object({}), execute, timeoutMs })
  const tools = [
    make('huge', () => 'x'.repeat(CONTENT_LIMIT)),
    make('odd', () => ({ at: Number.NaN })),
    make('slow', () => new Promise(() => {}), 20),
  ]
  const made = tools.map((tool, i): [string, string, Record<string, unknown>] => [`c${i}`, tool.name, {}])
  await threads.run(agentOf([calls(...made), says('done')], tools), { thread: 'thread_a', input: 'go' })
  const text = (await threads.thread('thread_a').state()).toText()
  for (const code of ['result_too_large', 'result_not_json', 'tool_timeout']) expect(text).toContain(code)
})

test('refused input writes nothing', async () => {
  await using threads = await open()
  const agent = agentOf([says('no')], [])
  await expect(threads.run(agent, { thread: 'Not A Thread', input: 'x' })).rejects.toMatchObject({ code: 'thread_id_invalid' })
  await expect(threads.run(agent, { thread: 'thread_a', input: 'x'.repeat(CONTENT_LIMIT) })).rejects.toMatchObject({
    code: 'input_too_large',
  })
  await expect(threads.run(agent, { thread: 'thread_a', user: ' ', input: 'x' })).rejects.toMatchObject({
    code: 'scope_id_invalid',
  })
  expect(await eventsOf(threads, 'thread_a')).toEqual([])
})

test('a changed system prompt replaces the old one in the history', async () => {
  await using threads = await open()
  await threads.run(agentOf([says('1')], [], { system: 'Old.' }), { thread: 'thread_a', input: 'one' })
  await threads.run(agentOf([says('2')], [], { system: 'New.' }), { thread: 'thread_a', input: 'two' })
  const state = await threads.thread('thread_a').state()
  const system = state.messageHistory.flatMap((m) =>
    m.kind === 'request' ? m.parts.flatMap((p) => (p.part_kind === 'system-prompt' ? [p.content] : [])) : [],
  )
  expect(system).toEqual(['New.'])
  expect(await typesOf(threads, 'thread_a')).toContain('history.revised')
})

test('a failed model request is recorded without the provider body and fails the run', async () => {
  await using threads = await open()
  const result = await threads.run(agentOf([{ parts: [], fail_before: true }], []), { thread: 'thread_a', input: 'go' })
  expect(result).toMatchObject({ status: 'failed', failure: { code: 'agent_run_failed' } })
  expect(await typesOf(threads, 'thread_a')).toContain('model.failed')
})

test('a response cut in the middle stays, filtered, and its calls are closed', async () => {
  await using threads = await open()
  const { tools, ran } = toolbox()
  const script = [
    {
      parts: [{ text: 'Let me see' }, { tool_call: { id: 'c1', name: 'plain', args: { n: 1 } } }, { text: 'and' }],
      then: 'disconnect' as const,
    },
  ]
  const result = await threads.run(agentOf(script, [tools.plain]), { thread: 'thread_a', input: 'go' })
  expect(result.status).toBe('failed')
  expect(ran).toEqual([])
  const history = (await threads.thread('thread_a').state()).messageHistory
  expect(history.map((m) => m.state)).toEqual(['complete', 'interrupted', 'complete'])
  expect(returnsOf(history)).toEqual([['c1', 'failed']])
})

test('stream() tells text, events and the result, and starts only when asked', async () => {
  await using threads = await open()
  const stream = threads.stream(agentOf([says('streamed')], []), { thread: 'thread_a', input: 'go' })
  expect(await eventsOf(threads, 'thread_a')).toEqual([])
  const seen: string[] = []
  let text = ''
  for await (const item of stream) {
    seen.push(item.type)
    if (item.type === 'text') text += item.text
  }
  expect(text).toBe('streamed')
  expect(seen.at(-1)).toBe('result')
  expect((await stream.result).output).toBe('streamed')
})
