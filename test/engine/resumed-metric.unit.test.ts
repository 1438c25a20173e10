import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, test } from 'vitest'
import { openThreadlog, RESUMED_CHANNEL, type ResumedMessage } from '../../src/index.ts'
import { agentOf, calls, says, toolbox } from '../support/agents.ts'
import { setClock } from '../support/set-clock.ts'

// Row 37: minutes went by between a result and the run that it resumes, and nothing told of it.
test('row 37: an alert on the age of results at their resume fires for a backlog, and only for that', async () => {
  const clock = setClock()
  const { tools } = toolbox()
  const agent = agentOf(
    (prompt) =>
      prompt.some(({ role }) => role === 'tool') ? says('done') : calls(['c1', 'far', { n: 1 }], ['c2', 'far', { n: 2 }]),
    [tools.far],
  )
  await using threads = await openThreadlog({ application: 'shop', agents: [agent], clock })
  const told: ResumedMessage[] = []
  const alerts: string[] = []
  const listener = (message: unknown) => {
    const resumed = message as ResumedMessage
    told.push(resumed)
    if (resumed.resultAgeMs > 60_000) alerts.push(resumed.runId)
  }
  subscribe(RESUMED_CHANNEL, listener)
  for (const [thread, wait] of [
    ['thr_a', 200],
    ['thr_b', 180_000],
  ] as const) {
    const { waits } = await threads.run(agent, { thread, input: 'go' })
    const answer = (i: number) => threads.submit({ provider: 'outside', continuation_id: waits[i]!.id, result: { ok: true } })
    await answer(0)
    // What counts is the last answer that was needed.
    clock.pass(500_000)
    await answer(1)
    clock.pass(wait)
    expect((await threads.run(agent, { thread })).output).toBe('done')
  }
  unsubscribe(RESUMED_CHANNEL, listener)
  expect(told).toMatchObject([
    { waits: 2, application: 'shop', agent: 'agent' },
    { waits: 2, application: 'shop', agent: 'agent' },
  ])
  const [fresh, old] = told.map(({ resultAgeMs }) => resultAgeMs)
  expect(fresh).toBeGreaterThanOrEqual(200)
  expect(fresh).toBeLessThan(60_000)
  expect(old).toBeGreaterThanOrEqual(180_000)
  expect(alerts).toEqual([told[1]?.runId])
  expect(JSON.stringify(told)).not.toContain('ok')
})
