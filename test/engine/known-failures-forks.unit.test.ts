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
