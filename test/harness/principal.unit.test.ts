import { expect, test, vi } from 'vitest'
import { defineAgent, openThreadlog, type PolicyCall } from '../../src/index.ts'
import { openLog } from '../../src/log/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { calls, says, toolbox } from '../support/agents.ts'

// What a run may do crosses its waits (continuation spec §1.6; case 70).

type Seen = { id: string; permissions: readonly string[] } | undefined

/** An agent that suspends twice, with a local call behind each wait that its reviewer is asked about. */
function shop() {
  const seen: Seen[] = []
  const { tools } = toolbox()
  const script = [
    calls(['c1', 'far', { n: 1 }]),
    calls(['c2', 'plain', { n: 2 }]),
    calls(['c3', 'far', { n: 3 }]),
    calls(['c4', 'plain', { n: 4 }]),
    says('done'),
  ]
  const agent = defineAgent({
    // Every process tells from the history how far it is.
    model: scriptedModel((prompt) => script[prompt.filter(({ role }) => role === 'tool').length] ?? says('lost')),
    ...{ name: 'agent', revision: '1', tools: [tools.far, tools.plain] },
    permissions: { plain: 'review' },
    reviewer: ({ principal }: PolicyCall) => {
      seen.push(principal as Seen)
      return 'allow'
    },
  })
  return { agent, seen }
}

test('70: an engine on another replica goes on with the permissions of the suspended run, under another id, from wait to wait', async () => {
  const log = await openLog('memory')
  const here = shop()
  const there = shop()
  await using threads = await openThreadlog({ log, agents: [here.agent] })
  const principal = { id: 'ann', secret: 'token-of-ann', permissions: ['ship.order', 'order.read', 'ship.order'] }
  const asked = await threads.run(here.agent, { thread: 'thr_a', input: 'go', bindings: { principal } })
  await using other = await openThreadlog({ log, agents: [there.agent] })
  await using _engine = await other.serve()
  let answered = 0
  for await (const { id } of other.waits({ thread: 'thr_a', follow: true })) {
    await other.submit({ provider: 'outside', continuation_id: id, result: { ok: true } })
    if (++answered === 2) break
  }
  await vi.waitFor(async () => expect((await other.store.load(other.thread('thr_a').stream)).invocations.size).toBe(1), 30_000)
  expect(asked.status).toBe('suspended')
  expect(here.seen).toEqual([])
  const permissions = ['order.read', 'ship.order']
  expect(there.seen).toEqual([
    { id: expect.stringMatching(/^arp_/), permissions },
    { id: expect.stringMatching(/^arp_/), permissions },
  ])
  // Names only: neither who it was nor what that one had with it.
  const texts: string[] = []
  for await (const { bytes } of other.thread('thr_a').events()) texts.push(Buffer.from(bytes).toString('latin1'))
  expect(texts.join()).toContain('order.read')
  expect(texts.join()).not.toContain('token-of-ann')
})

test('70: what the caller says when it resumes counts; nothing kept is nothing restored; an empty list allows nothing', async () => {
  for (const [kept, given, expected] of [
    [['a.b'], { id: 'bob', permissions: ['c.d'] }, { id: 'bob', permissions: ['c.d'] }],
    [undefined, undefined, undefined],
    [[], undefined, { id: expect.stringMatching(/^arp_/), permissions: [] }],
  ] as const) {
    const { agent, seen } = shop()
    await using threads = await openThreadlog({ agents: [agent] })
    const principal = kept && { id: 'ann', permissions: kept }
    const { waits } = await threads.run(agent, { thread: 'thr_a', input: 'go', bindings: { principal } })
    await threads.submit({ provider: 'outside', continuation_id: waits[0]?.id ?? '', result: { ok: true } })
    await threads.run(agent, { thread: 'thr_a', ...(given && { bindings: { principal: given } }) })
    expect(seen).toEqual([expected])
  }
})

test('70: a permission that is no name is refused before anything is written', async () => {
  const { agent } = shop()
  await using threads = await openThreadlog({ agents: [agent] })
  const run = threads.run(agent, { thread: 'thr_a', input: 'go', bindings: { principal: { permissions: ['not a name'] } } })
  await expect(run).rejects.toMatchObject({ code: 'invalid_argument' })
  expect((await threads.store.load(threads.thread('thr_a').stream)).version).toBe(0)
})
