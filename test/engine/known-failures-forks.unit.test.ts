import { expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import type { Message } from '../../src/messages/index.ts'
import { agentOf, calls, eventsOf, returnsOf, says, toolbox } from '../support/agents.ts'

// What broke in comparable systems where a thread was taken back, by its row in the list of known failures.

const texts = (messages: readonly Message[]) =>
  messages.flatMap((m) =>
    m.parts.flatMap((part) => (part.part_kind === 'text' || part.part_kind === 'user-prompt' ? [part.content] : [])),
  )

// After a rewind the same id met another question, and the answer to the first was taken for it.
// Here a wait belongs to the thread that asked; the same call made on a fork is another wait, with an id of its own.
test('row 21: an answer to what was asked before a rewind is not one to what is asked after it', async () => {
  const { tools } = toolbox()
  const agent = agentOf(
    (prompt) => (prompt.some(({ role }) => role === 'tool') ? says('done') : calls(['c1', 'far', { n: 1 }])),
    [tools.far],
  )
  const threads = await openThreadlog({ agents: [agent] })
  const asked = await threads.run(agent, { thread: 'thr_a', input: 'go' })
  const composed = (await eventsOf(threads, 'thr_a')).findIndex(({ event }) => event?.type === 'run.started/1')
  const fork = await threads.thread('thr_a').fork({ at: composed, thread: 'thr_b' })
  const again = await threads.run(agent, { thread: 'thr_b', input: 'go' })
  expect(again).toMatchObject({ status: 'suspended', waits: [{ arguments: { n: 1 } }] })
  expect(again.waits[0]?.id).not.toBe(asked.waits[0]?.id)
  const answer = { provider: 'outside', continuation_id: asked.waits[0]?.id ?? '', result: { ok: true } }
  expect((await threads.submit(answer)).verdict).toBe('accepted')
  expect(await threads.run(agent, { thread: 'thr_a' })).toMatchObject({ status: 'completed' })
  const pending: string[] = []
  for await (const wait of threads.waits({ thread: 'thr_b' })) pending.push(wait.status)
  expect(pending).toEqual(['pending'])
  expect(returnsOf((await fork.state()).messageHistory)).toEqual([])
  await threads.close()
})

test('row 21: a rewind that takes the place of its thread leaves the old question behind, and its answer is stale', async () => {
  const { tools } = toolbox()
  const agent = agentOf(
    (prompt) =>
      prompt.some(({ role }) => role === 'tool') ? says('done') : calls(['c1', 'far', { n: 1 }], ['c2', 'far', { n: 2 }]),
    [tools.far],
  )
  const threads = await openThreadlog({ agents: [agent] })
  const asked = await threads.run(agent, { thread: 'thr_a', input: 'go' })
  const answer = (i: number, ok = true) =>
    threads.submit({ provider: 'outside', continuation_id: asked.waits[i]?.id ?? '', result: { ok } })
  expect((await answer(0)).verdict).toBe('accepted')
  await threads.start({ agent: 'agent', thread: 'thr_a', input: 'queued' })
  const composed = (await eventsOf(threads, 'thr_a')).findIndex(({ event }) => event?.type === 'run.started/1')
  const rewind = () => threads.thread('thr_a').fork({ at: composed, thread: 'thr_b', supersede: true })
  const fork = await rewind()
  expect([(await answer(1)).verdict, (await answer(1, false)).verdict]).toEqual(['stale-branch', 'stale-branch'])
  // What was accepted before keeps its answer, and resumes nothing.
  expect([(await answer(0)).verdict, (await answer(0, false)).verdict]).toEqual(['duplicate', 'conflict'])
  const provider = threads.continuations('outside')
  expect(await provider.listPending()).toEqual([])
  expect((await threads.thread('thr_a').state()).messageHistory.at(-1)?.kind).toBe('request')
  const again = await threads.run(agent, { thread: 'thr_b', input: 'go' })
  expect(again).toMatchObject({ status: 'suspended', waits: [{ status: 'pending' }, { status: 'pending' }] })
  expect(returnsOf((await fork.state()).messageHistory)).toEqual([])
  // Once more changes nothing; another place is refused.
  const events = (await eventsOf(threads, 'thr_a')).length
  await rewind()
  expect((await eventsOf(threads, 'thr_a')).length).toBe(events)
  for (const at of [1, 3])
    await expect(threads.thread('thr_a').fork({ at, thread: 'thr_b', supersede: true })).rejects.toMatchObject({
      code: 'thread_exists',
    })
  await threads.close()
})

test('row 21: a rewind that was cut between its two threads is finished by the same call', async () => {
  const { tools } = toolbox()
  const agent = agentOf(
    (prompt) => (prompt.some(({ role }) => role === 'tool') ? says('done') : calls(['c1', 'far', { n: 1 }])),
    [tools.far],
  )
  const threads = await openThreadlog({ agents: [agent] })
  const asked = await threads.run(agent, { thread: 'thr_a', input: 'go' })
  // What a crash leaves: the fork is there, and the first thread has not heard of it.
  await threads.thread('thr_a').fork({ thread: 'thr_b' })
  await threads.thread('thr_a').fork({ thread: 'thr_b', supersede: true })
  const late = await threads.submit({ provider: 'outside', continuation_id: asked.waits[0]?.id ?? '', result: { ok: true } })
  expect(late.verdict).toBe('stale-branch')
  await threads.close()
})

// After a rewind the head stayed where it had been, so what was said next went on from the wrong place.
// Here each branch is a stream: its head is its last event, whatever is forked from it, and when.
test('row 11: after two rewinds each branch goes on from its own newest message', async () => {
  const agent = agentOf((prompt) => says(`answer ${prompt.length}`), [])
  const threads = await openThreadlog({ agents: [agent] })
  const say = (thread: string, input: string) => threads.run(agent, { thread, input })
  const first = await say('thr_a', 'one')
  await say('thr_a', 'two')
  await threads.thread('thr_a').fork({ at: first.version, thread: 'thr_b' })
  const second = await say('thr_b', 'left')
  await say('thr_b', 'further')
  await threads.thread('thr_b').fork({ at: second.version, thread: 'thr_c' })
  await say('thr_c', 'right')
  await say('thr_a', 'three')
  const said = async (thread: string) =>
    texts((await threads.thread(thread).state()).messageHistory).filter((text) => !String(text).startsWith('answer'))
  expect(await said('thr_a')).toEqual(['one', 'two', 'three'])
  expect(await said('thr_b')).toEqual(['one', 'left', 'further'])
  expect(await said('thr_c')).toEqual(['one', 'left', 'right'])
  await threads.close()
})

test('case 33, 37: a fork in the log leaves environments behind and gives retained children threads of their own', async () => {
  const agent = agentOf(() => says('hello'), [])
  const threads = await openThreadlog({ agents: [agent] })
  const child = { child_definition_id: 'd', child_instance_id: 'scout-00ff', child_thread_id: 'thr_child', refs: [], state: null }
  const children = { 'scout-00ff': { ...child, subagent_name: 'scout' } }
  await threads.run(agent, {
    input: 'go',
    previousState: {
      schema_version: '1',
      thread_id: 'thr_a',
      agent_context_state: { entries: { 'a13n.subagents': { version: '2', data: { children } }, x: { version: '1', data: 1 } } },
      environment_states: { w: { provider_key: 'local', state_version: '1', state: 1 } },
    },
  })
  const fork = await (await threads.thread('thr_a').fork({ thread: 'thr_b' })).state()
  expect(fork.environmentStates).toEqual({})
  expect(fork.entry('x')).toEqual({ version: '1', data: 1 })
  expect(JSON.stringify(fork.entry('a13n.subagents'))).not.toContain('thr_child')
  expect(fork.messageHistory).toEqual((await threads.thread('thr_a').state()).messageHistory)
  await threads.close()
})
