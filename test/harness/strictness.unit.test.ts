import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineAgent, defineTool, openThreadlog } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { calls, eventsOf, says, toolbox, typesOf } from '../support/agents.ts'
import { codeOf } from '../support/refusals.ts'

// Where an agent may be stricter, or less strict, than the original: input for a suspended thread, and approvals of what has changed since.

const waiting = (onNewInput?: 'supersede' | 'require-abandon', name = 'agent') => {
  const { tools } = toolbox()
  const model = scriptedModel((prompt) => (prompt.length > 1 ? says('done') : calls(['c1', 'far', { n: 1 }])))
  return defineAgent({ name, revision: '1', model, tools: [tools.far], ...(onNewInput && { onNewInput }) })
}

test('new input for a suspended thread gives up what it waits for, and the log says so', async () => {
  await using threads = await openThreadlog()
  const agent = waiting()
  const { waits } = await threads.run(agent, { thread: 't_1', input: 'go' })
  expect((await threads.run(agent, { thread: 't_1', input: 'leave it' })).status).toBe('completed')
  expect(await typesOf(threads, 't_1')).toEqual(expect.arrayContaining(['continuation.abandoned', 'run.cancelled']))
  const late = await threads.submit({ provider: 'outside', continuation_id: waits[0]?.id ?? '', result: { ok: true } })
  expect(late.verdict).toBe('abandoned')
})

test('a strict agent refuses it, with nothing written, until the run says that it gives that up', async () => {
  await using threads = await openThreadlog()
  const agent = waiting('require-abandon')
  const { waits } = await threads.run(agent, { thread: 't_1', input: 'go' })
  const before = await typesOf(threads, 't_1')
  const refused = { code: 'suspension_open', path: 'abandon', details: { waits: 1 } }
  await expect(threads.run(agent, { thread: 't_1', input: 'leave it' })).rejects.toMatchObject(refused)
  await expect(threads.start({ agent, thread: 't_1', input: 'leave it' })).rejects.toMatchObject(refused)
  expect(await typesOf(threads, 't_1')).toEqual(before)
  // Without input it is no new run, and with an answer it goes on.
  expect((await threads.run(agent, { thread: 't_1' })).status).toBe('suspended')
  const abandoned = await threads.run(agent, { thread: 't_1', input: 'leave it', abandon: true })
  expect(abandoned.status).toBe('completed')
  const late = await threads.submit({ provider: 'outside', continuation_id: waits[0]?.id ?? '', result: { ok: true } })
  expect(late.verdict).toBe('abandoned')
})

test('answers that no run has taken are not given up either', async () => {
  await using threads = await openThreadlog()
  const agent = waiting('require-abandon')
  const { waits } = await threads.run(agent, { thread: 't_1', input: 'go' })
  await threads.submit({ provider: 'outside', continuation_id: waits[0]?.id ?? '', result: { ok: true } })
  await expect(threads.run(agent, { thread: 't_1', input: 'more' })).rejects.toMatchObject({ code: 'suspension_open' })
  expect((await threads.run(agent, { thread: 't_1' })).output).toBe('done')
})

test('a run that another process asked for ends as refused, and the suspension stands', async () => {
  const strict = waiting('require-abandon')
  await using threads = await openThreadlog({ agents: [strict] })
  const { waits } = await threads.run(strict, { thread: 't_1', input: 'go' })
  await using elsewhere = await openThreadlog({ log: threads.backend })
  const asked = await elsewhere.start({ agent: 'agent', thread: 't_1', input: 'leave it' })
  const meant = await elsewhere.start({ agent: 'agent', thread: 't_2', input: 'go' })
  const engine = await threads.serve()
  expect(await asked.result()).toMatchObject({ status: 'failed', failure: { code: 'suspension_open' } })
  const submitted = await threads.submit({ provider: 'outside', continuation_id: waits[0]?.id ?? '', result: { ok: true } })
  expect(submitted.verdict).toBe('accepted')
  for await (const wait of threads.waits({ thread: 't_2', follow: true })) {
    expect(wait.status).toBe('pending')
    break
  }
  const last = await elsewhere.start({ agent: 'agent', thread: 't_2', input: 'leave it', abandon: true })
  expect((await last.result()).status).toBe('completed')
  expect(meant.thread).toBe('t_2')
  await engine.close()
})

/** The same tool, described and typed otherwise by each revision. */
function guarded(description: string, onChangedProposal?: 'refuse' | 'report') {
  const ran: unknown[] = []
  const tool = defineTool({
    ...{ name: 'pay', description, input: z.object({ cents: z.int() }), needsApproval: true },
    execute: (args) => ran.push(args),
  })
  const model = scriptedModel((prompt) => (prompt.length > 1 ? says('done') : calls(['c1', 'pay', { cents: 1 }])))
  const agent = defineAgent({
    name: 'agent',
    revision: description,
    model,
    tools: [tool],
    ...(onChangedProposal && { onChangedProposal }),
  })
  return { agent, ran }
}

test('what was approved and has changed since is refused, or runs and is reported, as the agent says', async () => {
  for (const [mode, runs] of [
    ['refuse', 0],
    [undefined, 0],
    ['report', 1],
  ] as const) {
    await using threads = await openThreadlog()
    const { waits } = await threads.run(guarded('Pays').agent, { thread: 't_1', input: 'go' })
    await threads.approve(waits[0]?.id ?? '', { digest: waits[0]?.digest ?? '' })
    const { agent, ran } = guarded('Pays at once', mode)
    const result = await threads.run(agent, { thread: 't_1' })
    expect(result.status).toBe(mode === 'report' ? 'completed' : 'failed')
    expect(ran).toHaveLength(runs)
    const dispatched = (await eventsOf(threads, 't_1')).flatMap(({ event }) =>
      event?.type === 'tool.dispatched/1' ? event.data : [],
    )
    expect(dispatched.map(({ changed_proposal }) => changed_proposal)).toEqual(
      runs ? [expect.stringMatching(/^[0-9a-f]{64}$/)] : [],
    )
    if (runs) expect(dispatched[0]?.changed_proposal).not.toBe(waits[0]?.digest)
  }
  await using threads = await openThreadlog()
  const { agent } = guarded('Pays', 'report')
  const { waits } = await threads.run(agent, { thread: 't_1', input: 'go' })
  await threads.approve(waits[0]?.id ?? '', { overrideArgs: { cents: 2 } })
  await threads.run(agent, { thread: 't_1' })
  const [dispatched] = (await eventsOf(threads, 't_1')).flatMap(({ event }) =>
    event?.type === 'tool.dispatched/1' ? event.data : [],
  )
  expect(dispatched?.changed_proposal).toBeNull()
})

test('choices that do not exist are refused', () => {
  const model = scriptedModel([])
  for (const o of [{ onNewInput: 'ask' }, { onChangedProposal: true }, { onNewInput: null }])
    expect(codeOf(() => defineAgent({ name: 'a', revision: '1', model, ...(o as object) }))).toBe('agent_invalid')
})
