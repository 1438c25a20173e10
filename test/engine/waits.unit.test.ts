import { expect, test } from 'vitest'
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
