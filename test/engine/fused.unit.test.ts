import { expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { foldStream, stateHash } from '../../src/projections/index.ts'
import { agentOf, calls, eventsOf, says, toolbox } from '../support/agents.ts'

const script = (prompt: readonly { role: string }[]) =>
  prompt.some((m) => m.role === 'tool') ? says('done') : calls(['c1', 'far', { n: 1 }], ['c2', 'guarded', { n: 2 }])

test('the last result of a batch joins the commit that resumes the run, under the name of who gave it (R11)', async () => {
  const { tools } = toolbox()
  const agent = agentOf(script, [tools.far, tools.guarded])
  await using threads = await openThreadlog({ agents: [agent] })
  await threads.serve()
  const run = await threads.start({ agent: 'agent', thread: 'thread_a', input: 'go' })
  const waits = []
  for await (const wait of threads.waits({ follow: true })) if (waits.push(wait) === 2) break
  const [external, approval] = waits[0]?.kind === 'external' ? waits : waits.toReversed()
  expect((await threads.submit({ provider: 'outside', continuation_id: external?.id ?? '', result: { ok: true } })).verdict).toBe(
    'accepted',
  )
  expect((await threads.approve(approval?.id ?? '', { by: 'lead' })).verdict).toBe('accepted')
  expect((await run.result()).output).toBe('done')
  const records = await eventsOf(threads, 'thread_a')
  const completed = records.flatMap(({ event }) => (event?.type === 'continuation.completed/1' ? [event] : []))
  expect(completed.map((event) => event.commit.size)).toEqual([1, 6])
  expect(completed[1]).toMatchObject({ actor: { kind: 'human', id: 'lead' }, run_id: null, attempt: null })
  const started = records.find(
    ({ event }) => event?.commit.id === completed[1]?.commit.id && event?.type === 'run.started/1',
  )?.event
  expect(started).toMatchObject({ actor: { kind: 'engine' }, attempt: 1 })
  const live = await threads.store.fold(threads.thread('thread_a').stream)
  expect(stateHash(foldStream(records).state)).toBe(stateHash(live.state))
})
