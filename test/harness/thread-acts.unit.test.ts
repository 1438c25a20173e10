import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineAgent, defineTool, openThreadlog, type Policy, type Threadlog } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { agentOf, calls, eventsOf, returnsOf, says, toolbox } from '../support/agents.ts'

// What can be done with a thread beside running it, and what its runs may be given.

const open = () => openThreadlog({ application: 'test' })
const prompts = async (threads: Threadlog, thread: string) =>
  (await threads.thread(thread).state()).messageHistory.flatMap((message) =>
    message.kind === 'request' ? message.parts.flatMap((part) => (part.part_kind === 'user-prompt' ? [part.content] : [])) : [],
  )

/** An agent whose model says `text` once it is let. */
function hearing(text: string) {
  let asked: () => void = () => {}
  let answer: () => void = () => {}
  const hear = { asked: new Promise<void>((resolve) => (asked = resolve)), answer: () => answer() }
  const said = new Promise<void>((resolve) => (answer = resolve))
  const model = scriptedModel([says(text)])
  const doStream: typeof model.doStream = async (options) => {
    asked()
    await said
    return model.doStream(options)
  }
  return { agent: defineAgent({ name: 'agent', revision: '1', model: { ...model, doStream } }), hear }
}

test('steering: input for a running run is in its next request, once for each id', async () => {
  await using threads = await open()
  const tool = defineTool({
    ...{ name: 'work', description: 'Works', input: z.object({}) },
    async execute() {
      await threads.thread('thread_a').steer('hurry', { id: 'one' })
      await threads.thread('thread_a').steer('hurry', { id: 'one' })
      await threads.thread('thread_a').steer('please')
      return {}
    },
  })
  const result = await threads.run(agentOf([calls(['c1', 'work', {}]), says('done')], [tool]), {
    thread: 'thread_a',
    input: 'go',
  })
  expect(result.status).toBe('completed')
  expect(await prompts(threads, 'thread_a')).toEqual(['go', 'hurry', 'please'])
  await expect(threads.thread('thread_a').steer('late')).rejects.toMatchObject({ code: 'run_not_active' })
  await expect(threads.thread('thread_b').steer('where')).rejects.toMatchObject({ code: 'thread_unknown' })
})

test('fork: a copy with lineage goes on by itself; open waits stay with the parent', async () => {
  await using threads = await open()
  const { tools } = toolbox()
  const agent = agentOf([calls(['c1', 'guarded', { n: 1 }]), says('mine')], Object.values(tools))
  const { waits } = await threads.run(agent, { thread: 'thread_a', input: 'go' })
  const parent = threads.thread('thread_a')
  const version = (await eventsOf(threads, 'thread_a')).length
  const child = await parent.fork({ thread: 'thread_b' })
  expect((await child.state()).messageHistory).toEqual((await parent.state()).messageHistory)
  const [opened] = await eventsOf(threads, 'thread_b')
  expect(opened?.event?.data).toMatchObject({ origin: { kind: 'forked', parent: { stream: parent.stream, version } } })
  await expect(parent.fork({ thread: 'thread_b' })).rejects.toMatchObject({ code: 'thread_exists' })
  await expect(threads.thread('thread_c').fork()).rejects.toMatchObject({ code: 'thread_unknown' })

  const other = await threads.run(agentOf([says('other')], Object.values(tools)), {
    ...{ thread: 'thread_b', input: 'instead', toolRecovery: 'never' },
  })
  expect(other).toMatchObject({ status: 'completed', output: 'other' })
  expect(returnsOf((await child.state()).messageHistory)).toEqual([['c1', 'failed']])

  await threads.approve(waits[0]!.id, { digest: waits[0]!.digest, by: 'lead' })
  expect(await threads.run(agent, { thread: 'thread_a' })).toMatchObject({ status: 'completed', output: 'mine' })
  expect(returnsOf((await parent.state()).messageHistory)).toEqual([['c1', 'success']])
})

test('fork: at an earlier version, as the thread was then', async () => {
  await using threads = await open()
  const agent = agentOf([says('one'), says('two'), says('three')], [])
  const { version } = await threads.run(agent, { thread: 'thread_a', input: 'first' })
  await threads.run(agent, { thread: 'thread_a', input: 'second' })
  const child = await threads.thread('thread_a').fork({ at: version })
  expect(await prompts(threads, child.key.thread)).toEqual(['first'])
  expect(await threads.run(agent, { thread: child.key.thread, input: 'third' })).toMatchObject({ output: 'three' })
})

test('two runs from one state: one wins, the other gets thread_moved', async () => {
  await using threads = await open()
  const agent = agentOf([says('one'), says('two'), says('three')], [])
  const { state } = await threads.run(agent, { thread: 'thread_a', input: 'first' })
  const both = await Promise.allSettled([
    threads.run(agent, { previousState: state!, input: 'left' }),
    threads.run(agent, { previousState: state!, input: 'right' }),
  ])
  const [lost] = both.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  expect(['thread_moved', 'run_active']).toContain(lost.code)
  await expect(threads.run(agent, { previousState: state!, input: 'late' })).rejects.toMatchObject({ code: 'thread_moved' })
})

test('reconcile: what became of an unknown call is what the model reads', async () => {
  await using threads = await open()
  const broken = defineTool({
    ...{ name: 'broken', description: 'Throws', input: z.object({}) },
    execute() {
      throw new Error('cut off')
    },
  })
  const agent = agentOf([calls(['c1', 'broken', {}]), says('I see.')], [broken])
  await expect(threads.run(agent, { thread: 'thread_a', input: 'go' })).rejects.toMatchObject({ code: 'tool_threw' })
  const thread = threads.thread('thread_a')
  expect(returnsOf((await thread.state()).messageHistory)).toEqual([['c1', 'failed']])
  await thread.reconcile('c1', { result: { booked: true } }, { by: 'lead', reason: 'it is in the ledger' })
  expect(returnsOf((await thread.state()).messageHistory)).toEqual([['c1', 'success']])
  await expect(thread.reconcile('c1', { result: 1 })).rejects.toMatchObject({ code: 'call_not_unknown', path: 'callId' })
  await expect(thread.reconcile('c9', { failure: { code: 'x' } })).rejects.toMatchObject({ code: 'call_not_unknown' })
  await threads.run(agent, { thread: 'thread_a', input: 'and?' })
  const { prompt } = (agent.model as ReturnType<typeof scriptedModel>).requests.at(-1)!
  expect(JSON.stringify(prompt)).toContain('"booked":true')
  expect((await eventsOf(threads, 'thread_a')).map(({ event }) => event?.type)).toContain('tool.reconciled/1')
})

test('structured output: the model is asked for JSON, told of what does not fit, and given up after three retries', async () => {
  await using threads = await open()
  const answer = z.object({ city: z.string(), rooms: z.int().positive() })
  const agent = (...texts: string[]) =>
    defineAgent({ name: 'agent', revision: '1', model: scriptedModel(texts.map(says)), output: answer })
  const mended = agent('Berlin', '{"city": "Berlin"}', '{"city": "Berlin", "rooms": 2}')
  expect(await threads.run(mended, { thread: 'thread_a', input: 'where?' })).toMatchObject({
    status: 'completed',
    output: { city: 'Berlin', rooms: 2 },
  })
  const requests = (mended.model as ReturnType<typeof scriptedModel>).requests
  expect(requests).toHaveLength(3)
  expect(requests[0]?.responseFormat).toMatchObject({ type: 'json', schema: { properties: { city: { type: 'string' } } } })
  const failed = await threads.run(agent('no', 'no', 'no', 'no', 'no'), { thread: 'thread_b', input: 'where?' })
  expect(failed).toMatchObject({ status: 'failed', failure: { code: 'agent_run_failed' } })
})

test('usage limits end a run before it asks or calls again', async () => {
  await using threads = await open()
  const { tools, ran } = toolbox()
  const script = [calls(['c1', 'plain', { n: 1 }], ['c2', 'plain', { n: 2 }]), says('never')]
  const limited = (usageLimits: object, thread: string) =>
    threads.run(agentOf(script, Object.values(tools)), { thread, input: 'go', usageLimits })
  expect(await limited({ requests: 1 }, 'thread_a')).toMatchObject({ failure: { code: 'usage_limit_exceeded' } })
  ran.length = 0
  expect(await limited({ toolCalls: 1 }, 'thread_b')).toMatchObject({ failure: { code: 'usage_limit_exceeded' } })
  expect(ran).toEqual([])
})

test('a policy is asked at each dispatch; an approval satisfies its question and never its refusal', async () => {
  await using threads = await open()
  const { tools, ran } = toolbox()
  const asked: boolean[] = []
  let refuses = false
  const policy: Policy = ({ approved, principal }) => {
    expect(principal).toBe('u-17')
    asked.push(approved)
    return refuses ? 'deny' : 'approval_required'
  }
  const bindings = { policy, principal: 'u-17' }
  for (const thread of ['thread_a', 'thread_b']) {
    const agent = agentOf([calls(['c1', 'plain', { n: 1 }]), says('ok')], Object.values(tools))
    const { waits } = await threads.run(agent, { thread, input: 'go', bindings })
    expect(waits).toMatchObject([{ kind: 'approval', tool: 'plain' }])
    await threads.approve(waits[0]!.id, { digest: waits[0]!.digest, by: 'lead' })
    refuses = thread === 'thread_b'
    expect(await threads.run(agent, { thread, bindings })).toMatchObject({ status: 'completed' })
  }
  expect(asked).toEqual([false, true, false, true])
  expect(ran.map(({ approved }) => approved)).toEqual([true])
  expect(returnsOf((await threads.thread('thread_b').state()).messageHistory)).toEqual([['c1', 'failed']])
})

test('a caller that is refused stops and steers nobody else', async () => {
  await using threads = await open()
  const { agent, hear } = hearing('A')
  const first = threads.run(agent, { thread: 'thread_a', input: 'a' })
  await hear.asked
  const other = threads.stream(agentOf([says('B')], []), { thread: 'thread_a', input: 'b' })
  const refused = other.result.catch((error) => error.code)
  await expect(other.steer('for b')).rejects.toMatchObject({ code: 'run_not_active' })
  other.cancel()
  expect(await refused).toBe('run_active')
  await other.close()
  hear.answer()
  expect(await first).toMatchObject({ status: 'completed', output: 'A' })
  expect(await prompts(threads, 'thread_a')).toEqual(['a'])
  await expect(other.result).rejects.toMatchObject({ code: 'run_active' })
})

test('an abort while the input is made keeps the run from beginning', async () => {
  await using threads = await open()
  const stop = new AbortController()
  const inputFactory = async () => {
    stop.abort()
    return 'x'
  }
  const run = threads.run(agentOf([says('never')], []), { thread: 'thread_a', signal: stop.signal, inputFactory })
  await expect(run).rejects.toMatchObject({ code: 'aborted' })
})

test('a state that moves while the input is made is refused', async () => {
  await using threads = await open()
  const agent = agentOf([says('one'), says('two'), says('never')], [])
  const { state } = await threads.run(agent, { thread: 'thread_a', input: 'first' })
  const inputFactory = async () => {
    await threads.run(agent, { thread: 'thread_a', input: 'second' })
    return 'third'
  }
  await expect(threads.run(agent, { previousState: state!, inputFactory })).rejects.toMatchObject({ code: 'thread_moved' })
})

test('no tool begins behind a policy that took longer than the run', async () => {
  await using threads = await open()
  const { tools, ran } = toolbox()
  const agent = agentOf([calls(['c1', 'plain', { n: 1 }]), says('x')], Object.values(tools))
  let decide: () => void = () => {}
  const decided = new Promise<void>((resolve) => (decide = resolve))
  const policy: Policy = async () => {
    await threads.thread('thread_a').cancel()
    await decided
    return 'allow' as const
  }
  expect(await threads.run(agent, { thread: 'thread_a', input: 'go', bindings: { policy } })).toMatchObject({
    status: 'cancelled',
  })
  decide()
  await new Promise(setImmediate)
  expect(ran).toEqual([])
})

test.each(['DENY', 'denied', false, {}, 42, null, { decision: 'reject' }])('%o is no permission', async (decision) => {
  await using threads = await open()
  const { tools, ran } = toolbox()
  const agent = agentOf([calls(['c1', 'plain', { n: 1 }]), says('ok')], Object.values(tools))
  await threads.run(agent, { thread: 'thread_a', input: 'go', bindings: { policy: () => decision as never } })
  expect(ran).toEqual([])
})

test('a call that waits for its policy too long times out', async () => {
  await using threads = await open()
  const slow = defineTool({ name: 'slow', description: 'd', input: z.object({}), timeoutMs: 20, execute: () => 'never' })
  const agent = agentOf([calls(['c1', 'slow', {}]), says('ok')], [slow])
  const policy = () => new Promise<undefined>(() => {})
  expect(await threads.run(agent, { thread: 'thread_a', input: 'go', bindings: { policy } })).toMatchObject({
    status: 'completed',
  })
  expect(returnsOf((await threads.thread('thread_a').state()).messageHistory)).toEqual([['c1', 'failed']])
})

test('what was said is kept when the run that was to hear it ends behind its calls', async () => {
  await using threads = await open()
  let guards = 0
  const guarded = defineTool({
    ...{ name: 'guarded', description: 'd', input: z.object({}), recovery: 'retryable' },
    needsApproval: () => guards++ === 0,
    execute() {
      throw new Error('no')
    },
  })
  const agent = agentOf([calls(['c1', 'guarded', {}]), says('never')], [guarded])
  expect(await threads.run(agent, { thread: 'thread_a', input: 'one' })).toMatchObject({ status: 'suspended' })
  await expect(threads.run(agent, { thread: 'thread_a', input: 'two' })).rejects.toMatchObject({ code: 'tool_threw' })
  expect(await prompts(threads, 'thread_a')).toEqual(['one', 'two'])
})

test.each([5, 'x', [], { requests: '3' }, { requests: 1.5 }, { requests: Number.NaN }, { requests: -1 }, { request: 1 }])(
  'the limit %o is refused',
  async (usageLimits) => {
    await using threads = await open()
    await expect(threads.run(agentOf([], []), { input: 'x', usageLimits: usageLimits as never })).rejects.toMatchObject({
      code: 'option_invalid',
      path: expect.stringMatching(/^usageLimits/),
    })
  },
)

test.each([undefined, null, 'x', {}, { failure: null }, { failure: {} }, { result: 1, failure: { code: 'x' } }])(
  'the outcome %o is refused, and the call stays unknown',
  async (outcome) => {
    await using threads = await open()
    const broken = defineTool({
      ...{ name: 'broken', description: 'd', input: z.object({}) },
      execute() {
        throw new Error('no')
      },
    })
    const thread = threads.thread('thread_a')
    await threads.run(agentOf([calls(['c1', 'broken', {}])], [broken]), { thread: 'thread_a', input: 'go' }).catch(() => {})
    await expect(thread.reconcile('c1', outcome as never)).rejects.toMatchObject({ code: 'outcome_invalid' })
    await thread.reconcile('c1', { result: null })
  },
)

test.each([0, -1, 1.5, Number.NaN, 99, '3'])('there is no version %o to fork at', async (at) => {
  await using threads = await open()
  await threads.run(agentOf([says('x')], []), { thread: 'thread_a', input: 'x' })
  await expect(threads.thread('thread_a').fork({ at: at as never })).rejects.toMatchObject({
    code: 'version_unknown',
    path: 'at',
  })
})
