import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { DeferredToolResume, recoveryRetryable } from '../../src/harness/index.ts'
import { defineAgent, defineTool, externalTool, HarnessState, openThreadlog, type Threadlog } from '../../src/index.ts'
import { type Message, responseMessage, toolCallPart } from '../../src/messages/index.ts'
import { type Script, scriptedModel } from '../../src/models/index.ts'
import { agentOf, calls, returnsOf, says, toolbox } from '../support/agents.ts'

// Cases of the state specification that no recorded vector holds (docs/parity.md).

const opened: Threadlog[] = []
afterEach(async () => {
  for (const threads of opened.splice(0)) await threads.close()
})
async function open(): Promise<Threadlog> {
  const threads = await openThreadlog()
  opened.push(threads)
  return threads
}

const timestamp = '2026-01-01T00:00:00Z'
const prompts = (messages: readonly Message[]) =>
  messages.flatMap((m) => m.parts.flatMap((part) => (part.part_kind === 'user-prompt' ? [part.content] : [])))

/** A state whose latest response made calls that nothing answers. */
const unanswered = (thread: string, ...names: string[]) =>
  HarnessState.of({
    threadId: thread,
    messageHistory: [
      responseMessage({
        parts: names.map((tool_name, i) => toolCallPart({ tool_name, tool_call_id: `c${i + 1}`, args: { n: i } })),
        timestamp,
      }),
    ],
  })

test('case 18, 19: two runs from one state see nothing of each other, and the state is what it was', async () => {
  const agent = agentOf(() => says('hello'), [])
  const first = await (await open()).run(agent, { thread: 'thr_a', input: 'one' })
  const text = first.state!.toText()
  const results = await Promise.all(
    ['left', 'right'].map(async (input) => (await open()).run(agent, { previousState: first.state!, input })),
  )
  expect(results.map((result) => prompts(result.allMessages()))).toEqual([
    ['one', 'left'],
    ['one', 'right'],
  ])
  expect(first.state!.toText()).toBe(text)
})

test('case 19: of two runs from one state in one log the second finds that the thread has moved', async () => {
  const threads = await open()
  const agent = agentOf(() => says('hello'), [])
  const { state } = await threads.run(agent, { thread: 'thr_a', input: 'one' })
  expect(await threads.run(agent, { previousState: state!, input: 'left' })).toMatchObject({ status: 'completed' })
  await expect(threads.run(agent, { previousState: state!, input: 'right' })).rejects.toMatchObject({ code: 'thread_moved' })
  expect(prompts((await threads.thread('thr_a').state()).messageHistory)).toEqual(['one', 'left'])
  // What the original does is had by a fork.
  expect(prompts((await threads.run(agent, { previousState: state!.fork(), input: 'right' })).allMessages())).toEqual([
    'one',
    'right',
  ])
})

test('case 47: two runs without a state are two threads, and two runs', async () => {
  const threads = await open()
  const agent = agentOf(() => says('hello'), [])
  const [a, b] = await Promise.all([threads.run(agent, { input: 'x' }), threads.run(agent, { input: 'x' })])
  expect(a!.threadId).toMatch(/^thread_[0-9a-f]{32}$/)
  expect(a!.threadId).not.toBe(b!.threadId)
  expect(a!.runId).not.toBe(b!.runId)
})

test('case 85: a tool that was gone after its answer was consumed is not missed', async () => {
  const threads = await open()
  const far = externalTool({ name: 'far', description: 'far', provider: 'outside', input: z.object({ n: z.int() }) })
  const { tools } = toolbox()
  const agent = (script: Script, ...offered: Parameters<typeof agentOf>[1][number][]) => agentOf(script, offered)
  const asked = await threads.run(agent([calls(['c1', 'far', { n: 1 }])], far), { thread: 'thr_a', input: 'go' })
  const results = asked.deferred!.buildResults({ calls: { c1: 'there' } })
  const deferredResume = new DeferredToolResume({ requests: asked.deferred!, results })
  const answered = await threads.run(agent([calls(['c2', 'plain', { n: 1 }]), says('ok')], far, tools.plain), {
    previousState: asked.state!,
    deferredResume,
  })
  expect(answered).toMatchObject({ status: 'completed' })
  const later = await threads.run(agent([says('still')], tools.plain), { previousState: answered.state!, input: 'more' })
  expect(later).toMatchObject({ status: 'completed', output: 'still' })
  expect(returnsOf(later.allMessages())).toEqual([
    ['c1', 'success'],
    ['c2', 'success'],
  ])
})

test("case 103, 105: accepted answers stand beside the state, shrink as history takes them in, and are nobody else's", async () => {
  const { tools, ran } = toolbox()
  const script = [calls(['c1', 'far', { n: 1 }], ['c2', 'guarded', { n: 2 }])]
  const asked = await (await open()).run(agentOf(script, [tools.far, tools.guarded]), { thread: 'thr_a', input: 'go' })
  const results = asked.deferred!.buildResults({ approveAll: true, calls: { c1: { ok: true } } })
  const deferredResume = new DeferredToolResume({ requests: asked.deferred!, results })
  let inside: () => void = () => {}
  const entered = new Promise<void>((resolve) => (inside = resolve))
  const slow = defineTool({
    ...{ name: 'guarded', description: 'a tool', input: z.object({ n: z.int() }), needsApproval: true },
    execute: (_, { signal }) => {
      inside()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
  })
  const threads = await open()
  const stream = threads.stream(agentOf([says('ok')], [tools.far, slow]), { previousState: asked.state!, deferredResume })
  await stream.enter()
  const idsOf = (resume: DeferredToolResume | null) =>
    resume && [...Object.keys(resume.results.calls), ...Object.keys(resume.results.approvals)]
  expect(idsOf(await stream.pendingDeferredInput())).toEqual(['c1', 'c2'])
  void entered.then(() => stream.cancel())
  for await (const _ of stream.events());
  const left = await stream.pendingDeferredInput()
  expect(idsOf(left)).toEqual(['c2'])
  const state = await stream.exportState()
  expect(JSON.stringify(state.entries)).not.toContain('c1')
  expect(Object.keys(state.entries)).toEqual(['threadlog.usage'])
  expect(returnsOf(state.messageHistory)).toEqual([['c1', 'success']])
  await stream.close()
  expect(idsOf(await stream.pendingDeferredInput())).toEqual(['c2'])
  expect(ran).toEqual([])

  const recovered = await (await open()).run(agentOf([says('ok')], [tools.far, tools.guarded]), {
    previousState: state,
    deferredResume: new DeferredToolResume({ requests: left!.requests, results: left!.results, recovery: true }),
    toolRecovery: 'never',
  })
  expect(returnsOf(recovered.allMessages())).toEqual([
    ['c1', 'success'],
    ['c2', 'failed'],
  ])
  expect(ran).toEqual([])
})

test('case 112: whether a call may run again is for the tool of today to say, not for that of yesterday', async () => {
  const state = unanswered('thr_a', 'step', 'step')
  const ran: boolean[] = []
  const step = (recovery?: 'retryable') =>
    defineTool({
      name: 'step',
      description: 'a step',
      input: z.object({ n: z.int() }),
      recovery,
      execute: () => void ran.push(true),
    })
  const run = async (recovery?: 'retryable') =>
    (await open()).run(agentOf([says('ok')], [step(recovery)]), { previousState: state })
  expect(returnsOf((await run('retryable')).allMessages())).toEqual([
    ['c1', 'success'],
    ['c2', 'success'],
  ])
  expect(ran).toHaveLength(2)
  expect(returnsOf((await run()).allMessages())).toEqual([
    ['c1', 'failed'],
    ['c2', 'failed'],
  ])
  expect(ran).toHaveLength(2)
})

test('case 132, 133: thinking that did not end is nowhere, however the run ends', async () => {
  for (const how of ['cancel', 'disconnect', 'limit'] as const) {
    const threads = await open()
    const entry = { parts: [{ thinking: 'half a thou' }], then: how === 'cancel' ? 'hang' : 'disconnect' } as const
    const stream = threads.stream(agentOf([entry], []), {
      thread: `thr_${how}`,
      input: 'go',
      ...(how === 'limit' ? { usageLimits: { requests: 1 } } : {}),
    })
    for await (const event of stream) if (event.type === 'thinking' && how === 'cancel') stream.cancel()
    const state = await threads.thread(`thr_${how}`).state()
    expect([how, state.messageHistory.map((m) => m.kind)]).toEqual([how, ['request']])
    expect(state.toText()).not.toContain('half a thou')
  }
})

test('case 137: a cancellation that the provider translates into an error of its own is still one', async () => {
  const threads = await open()
  const model = scriptedModel([])
  const asked: number[] = []
  const translating = {
    ...model,
    doStream: async ({ abortSignal }: { abortSignal?: AbortSignal }) => {
      asked.push(1)
      await new Promise((resolve) => abortSignal?.addEventListener('abort', resolve))
      throw new TypeError('fetch failed')
    },
  } as unknown as typeof model
  const agent = defineAgent({
    name: 'a',
    revision: '1',
    model: translating,
    tools: [],
    modelRecovery: { maxAttempts: 3, delayMs: () => 0 },
  })
  const abort = new AbortController()
  const running = threads.run(agent, { thread: 'thr_a', input: 'go', signal: abort.signal })
  while (asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  abort.abort()
  expect(await running).toMatchObject({ status: 'cancelled', output: null, failure: null })
  expect(asked).toEqual([1])
})

test('a call made twice under one id in an imported response runs once, and the model is shown an answer for each', async () => {
  const state = HarnessState.of({
    threadId: 'thr_twice',
    messageHistory: [
      responseMessage({
        parts: [1, 2].map((n) => toolCallPart({ tool_name: 'plain', tool_call_id: 'c1', args: { n } })),
        timestamp,
      }),
    ],
  })
  const { tools, ran } = toolbox()
  const model = scriptedModel([says('ok')])
  const agent = defineAgent({ name: 'a', revision: '1', model, tools: [tools.plain] })
  const result = await (await open()).run(agent, { previousState: state, toolRecovery: 'always' })
  expect(result).toMatchObject({ status: 'completed' })
  expect(ran.map(({ args }) => args)).toEqual([{ n: 1 }])
  expect(returnsOf(result.allMessages())).toEqual([['c1', 'success']])
  const shown = model.prompts[0]!.flatMap((m) => (m.role === 'tool' ? m.content : []))
  expect(shown.map((part) => ('toolCallId' in part ? part.toolCallId : ''))).toEqual(['c1', 'c1'])
})

test('case 113: a mark makes a copy of a tool, with all that it had; the tool itself stays unmarked', async () => {
  const plain = defineTool({
    ...{
      name: 'step',
      description: 'a step',
      input: z.object({ n: z.int() }),
      needsApproval: true,
      sequential: true,
      timeoutMs: 7,
    },
    execute: () => 'did',
  })
  const before = { ...plain }
  const marked = recoveryRetryable(plain)
  expect(marked).toEqual({ ...before, retryable: true })
  expect(plain).toEqual({ ...before, retryable: false })
  const run = async (tool: typeof plain) =>
    (await open()).run(agentOf([says('ok')], [tool]), { previousState: unanswered('thr_a', 'step') })
  expect(await run(marked)).toMatchObject({ status: 'suspended', deferred: { approvals: [{ modelCall: { toolCallId: 'c1' } }] } })
  expect(returnsOf((await run(plain)).allMessages())).toEqual([['c1', 'failed']])
})

// What was streamed of a failed attempt stayed on the screen beside what the next one said.
// Here a failure is an event of the stream, told before anything of the next attempt; what of the failed one counts is what history holds.
test('row 52: word of a failed attempt comes before anything of the next, and only what history holds counts', async () => {
  const threads = await open()
  const script = [
    { parts: [{ text: 'kept ' }, { thinking: 'dropped' }], then: 'disconnect' },
    { parts: [{ text: 'more' }] },
  ] as const
  const agent = defineAgent({
    ...{ name: 'a', revision: '1', tools: [], model: scriptedModel(script) },
    modelRecovery: { maxAttempts: 3, delayMs: () => 0 },
  })
  const told: string[] = []
  for await (const event of threads.stream(agent, { thread: 'thr_a', input: 'go' }))
    if (event.type === 'text' || event.type === 'thinking') told.push(event.text)
    else if (event.type === 'event' && event.event.startsWith('model.')) told.push(event.event.replace(/\/\d+$/, ''))
  expect(told.join(' ')).toMatch(/^kept {2}dropped model\.failed (model\.\w+ )*more( |$)/)
  const { messageHistory } = await threads.thread('thr_a').state()
  const texts = messageHistory.flatMap((m) => m.parts.flatMap((part) => (part.part_kind === 'text' ? [part.content] : [])))
  expect(texts).toEqual(['kept ', 'more'])
  expect(JSON.stringify(messageHistory)).not.toContain('dropped')
})

// A fork gave its children other ids, so they began again from the start.
// Here ids stand in the history and are copied with it: a fork goes on where its source stood, and nothing before it is run again.
test('row 10: a fork goes on where its source stood, and runs nothing again', async () => {
  const threads = await open()
  const { tools, ran } = toolbox()
  const agent = (script: Script) => agentOf(script, [tools.plain, tools.safe, tools.guarded])
  const asked = await threads.run(
    agent([calls(['c1', 'plain', { n: 1 }], ['c2', 'safe', { n: 2 }]), calls(['c3', 'guarded', { n: 3 }])]),
    {
      thread: 'thr_a',
      input: 'go',
    },
  )
  expect(asked.status).toBe('suspended')
  const fork = asked.state!.fork({ threadId: 'thr_b' })
  const results = asked.deferred!.buildResults({ approveAll: true })
  for (const toolRecovery of ['never', 'always'] as const) {
    const own = await openThreadlog()
    const result = await own.run(agent([says('done')]), {
      previousState: fork,
      deferredResume: new DeferredToolResume({ requests: asked.deferred!, results }),
      toolRecovery,
    })
    expect(result).toMatchObject({ status: 'completed', threadId: 'thr_b' })
    expect(returnsOf(result.allMessages())).toEqual([
      ['c1', 'success'],
      ['c2', 'success'],
      ['c3', 'success'],
    ])
    await own.close()
  }
  expect(ran.map(({ tool }) => tool)).toEqual(['plain', 'safe', 'guarded', 'guarded'])
  expect((await threads.thread('thr_a').state()).toText()).toBe(asked.state!.toText())
})
