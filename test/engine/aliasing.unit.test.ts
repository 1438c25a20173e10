import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, openThreadlog } from '../../src/index.ts'
import { agentOf, calls, eventsOf, says } from '../support/agents.ts'

// Values of events are parsed once and shared by everything that reads them. What a caller is given must not be one of those: a person's tool
// would run with what somebody else wrote into a listing.

/** Writes into whatever of a value can be written to. */
function scribble(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const key of Object.keys(value)) {
    scribble((value as Record<string, unknown>)[key])
    try {
      ;(value as Record<string, unknown>)[key] = 'scribbled'
    } catch {
      // Frozen.
    }
  }
}

test('nothing a caller is given can change a thread', async () => {
  const ran: unknown[] = []
  const input = z.object({ to: z.object({ iban: z.string() }) })
  const pay = defineTool({
    ...{ name: 'pay', description: 'pays', input, needsApproval: true },
    execute: (args) => ran.push(structuredClone(args)) && scribble(args),
  })
  const find = defineTool({ name: 'find', description: 'finds', input, execute: () => ({ found: [1] }) })
  const to = { iban: 'DE89' }
  const agent = agentOf([calls(['c1', 'find', { to }]), calls(['c2', 'pay', { to }]), says('paid')], [pay, find])
  const threads = await openThreadlog({ agents: [agent] })
  const thread = 'thr_alias'
  const given = [{ kind: 'text-content', content: 'go', metadata: { m: [1] } }]
  const result = await threads.run(agent, { thread, input: given })
  const before = (await threads.thread(thread).state()).toText()
  const shown = JSON.stringify(result)
  scribble(given)
  scribble(structuredClone(result.waits))
  for await (const wait of threads.waits({ thread })) scribble(wait.arguments)
  for (const wait of result.waits) scribble(wait.arguments)
  scribble((await threads.thread(thread).state()).toJSON())
  scribble((await threads.thread(thread).state()).messageHistory)
  expect((await threads.thread(thread).state()).toText()).toBe(before)
  for await (const wait of threads.waits({ thread })) expect(wait.arguments).toEqual({ to })
  expect(shown).toContain('DE89')
  const [wait] = result.waits
  expect((await threads.approve(wait!.id, { digest: wait!.digest })).verdict).toBe('accepted')
  const done = await threads.run(agent, { thread })
  expect(done).toMatchObject({ status: 'completed', output: 'paid' })
  expect(ran).toEqual([{ to }])
  const { messageHistory } = await threads.thread(thread).state()
  expect(JSON.stringify(messageHistory)).not.toContain('scribbled')
  expect(
    JSON.stringify(await eventsOf(threads, thread), (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  ).not.toContain('scribbled')
  await threads.close()
})

test("a structured output is the caller's, and the log keeps its own", async () => {
  const agent = agentOf([says('{"a":[1]}')], [])
  const threads = await openThreadlog({ agents: [agent] })
  const result = await threads.run(agent, { thread: 'thr_out', input: 'go' })
  scribble(result.output)
  expect((await threads.thread('thr_out').state()).toText()).not.toContain('scribbled')
  await threads.close()
})
