import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/index.ts'
import { openThreadlog, type Wait } from '../../src/index.ts'
import { agentOf, calls, toolbox } from '../support/agents.ts'

test('open waits are listed oldest first, over all pages; with follow, those to come come after', async () => {
  const { tools } = toolbox()
  const made = Array.from({ length: 60 }, (_, i): [string, string, { n: number }] => [`c${i}`, 'far', { n: i }])
  const agent = agentOf(() => calls(...made), [tools.far])
  await using threads = await openThreadlog()
  const open = async (thread: string) => (await threads.run(agent, { thread, input: 'go' })).waits.map(({ id }) => id)
  const opened: string[] = []
  // Not in the order of their names.
  for (const thread of ['t_3', 't_1', 't_5', 't_2']) opened.push(...(await open(thread)))

  const listed: Wait[] = []
  for await (const wait of threads.waits()) listed.push(wait)
  expect(listed.map(({ id }) => id)).toEqual(opened)

  const told: string[] = []
  for await (const { id } of threads.waits({ follow: true })) {
    told.push(id)
    if (told.length === 4 * made.length) opened.push(...(await open('t_4')))
    if (told.length === 5 * made.length) break
  }
  expect(told).toEqual(opened)

  const one: string[] = []
  for await (const { id } of threads.waits({ thread: 't_5' })) one.push(id)
  expect(one).toEqual(opened.slice(120, 180))
})

test('open waits are counted by provider and kind, with the age of the oldest; those older than a time can be listed alone', async () => {
  const { tools } = toolbox()
  let time = 1_000
  const agent = agentOf(
    () => calls(['f1', 'far', { n: 1 }], ['f2', 'far', { n: 2 }], ['r1', 'guarded', { n: 5 }]),
    Object.values(tools),
  )
  await using threads = await openThreadlog({ clock: { ...systemClock, now: () => time } })
  expect(await threads.waitCounts()).toEqual([])
  const first = await threads.run(agent, { thread: 't_1', input: 'go' })
  time = 5_000
  await threads.run(agent, { thread: 't_2', input: 'go' })
  const [far] = first.waits.filter(({ kind }) => kind === 'external')
  const counts = [
    { provider: 'human', kind: 'approval', waits: 2, oldestAt: 1_000 },
    { provider: far!.provider, kind: 'external', waits: 4, oldestAt: 1_000 },
  ]
  expect(await threads.waitCounts()).toEqual(counts)
  expect(await threads.waitCounts({ kind: 'approval' })).toEqual(counts.slice(0, 1))
  await threads.submit({ provider: far!.provider, continuation_id: far!.id, result: { ok: true } })
  expect(await threads.waitCounts({ provider: far!.provider })).toEqual([{ ...counts[1], waits: 3 }])

  const old: string[] = []
  for await (const { id } of threads.waits({ createdBefore: 4_999 })) old.push(id)
  expect(old).toEqual(first.waits.map(({ id }) => id).filter((id) => id !== far!.id))
})
