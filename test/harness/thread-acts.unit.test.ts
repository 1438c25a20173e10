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
