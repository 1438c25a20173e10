import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineAgent, externalTool, HarnessState, openThreadlog } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { calls, says } from '../support/agents.ts'
import { caughtBy } from '../support/refusals.ts'

// Usage that a run goes on counting from (state spec §2.3 step 6, §2.7): `threadlog.usage` in exported states.

const used = { usage: { input: 100, output: 7 } }
const talker = (texts: number) =>
  defineAgent({
    name: 'agent',
    revision: '1',
    model: scriptedModel(Array.from({ length: texts }, () => ({ ...says('x'), ...used }))),
  })
const entry = (requests: number) => ({
  version: '1',
  data: { requests, input_tokens: 100 * requests, output_tokens: 7 * requests, cache_read_tokens: 0, cache_write_tokens: 0 },
})

test('each run counts from zero, and one that is asked to goes on; exports tell what the latest used', async () => {
  await using threads = await openThreadlog()
  const agent = talker(9)
  const thread = 't_1'
  expect(await caughtBy(threads.run(agent, { thread, input: 'a', resumeUsage: true }))).toMatchObject({
    ...{ code: 'usage_state_missing', kind: 'StateError', path: 'resumeUsage' },
  })
  const first = await threads.run(agent, { thread, input: 'a' })
  expect(first.state?.entries['threadlog.usage']).toEqual(entry(1))
  const second = await threads.run(agent, { thread, input: 'b' })
  expect(second.usage).toMatchObject({ requests: 1, inputTokens: 100 })
  const third = await threads.run(agent, { thread, input: 'c', resumeUsage: true })
  expect(third.usage).toMatchObject({ requests: 2, inputTokens: 200, outputTokens: 14 })
  const fourth = await threads.run(agent, { thread, input: 'd', resumeUsage: true })
  expect(fourth.state?.entries['threadlog.usage']).toEqual(entry(3))
  // A result tells what its own run used, whatever came after it.
  expect(third.usage.requests).toBe(2)
  expect((await threads.thread(thread).state({ at: first.version })).entries['threadlog.usage']).toEqual(entry(1))
})

test('limits count what was used before', async () => {
  await using threads = await openThreadlog()
  const agent = talker(9)
  await threads.run(agent, { thread: 't_1', input: 'a' })
  await threads.run(agent, { thread: 't_1', input: 'b', resumeUsage: true })
  const more = (usageLimits: object) => threads.run(agent, { thread: 't_1', input: 'c', resumeUsage: true, usageLimits })
  const exceeded = { status: 'failed', failure: { code: 'usage_limit_exceeded' } }
  expect(await more({ inputTokens: 250 })).toMatchObject(exceeded)
  expect(await more({ requests: 3 })).toMatchObject(exceeded)
  expect(await threads.run(agent, { thread: 't_1', input: 'c', usageLimits: { requests: 1 } })).toMatchObject({
    status: 'completed',
  })
})

test('the state of another log brings its usage along; one without it, or of another version, is refused', async () => {
  await using here = await openThreadlog()
  const { state } = await here.run(talker(1), { thread: 't_1', input: 'a' })
  const json = state!.toJSON()
  for (const previousState of [state!, state!.fork(), JSON.stringify(json)]) {
    await using there = await openThreadlog()
    const result = await there.run(talker(1), { previousState, input: 'b', resumeUsage: true })
    expect(result.usage).toMatchObject({ requests: 2, inputTokens: 200 })
    expect(result.state?.entries['threadlog.usage']).toEqual(entry(2))
  }
  const { entries } = json.agent_context_state as { entries: Record<string, object> }
  const { version, data } = entries['threadlog.usage'] as { version: string; data: Record<string, number> }
  for (const usage of [undefined, { version: '2', data }, { version, data: { ...data, requests: -1 } }, { version, data: [] }]) {
    await using there = await openThreadlog()
    const { 'threadlog.usage': _, ...others } = entries
    const agent_context_state = { entries: usage ? { ...others, 'threadlog.usage': usage } : others }
    const previousState = HarnessState.parse({ ...json, agent_context_state })
    const refused = await caughtBy(there.run(talker(1), { previousState, input: 'b', resumeUsage: true }))
    expect(refused).toMatchObject({ code: 'usage_state_missing' })
    expect((await there.run(talker(1), { previousState, input: 'b' })).usage.requests).toBe(1)
  }
})

test('a run that resumes a suspension goes on counting if the suspended one did', async () => {
  await using threads = await openThreadlog()
  const far = externalTool({ name: 'far', description: 'f', input: z.object({}), provider: 'outside' })
  const script = [
    { ...says('x'), ...used },
    { ...calls(['c1', 'far', {}]), ...used },
    { ...says('y'), ...used },
  ]
  const agent = defineAgent({ name: 'agent', revision: '1', model: scriptedModel(script), tools: [far] })
  await threads.run(agent, { thread: 't_1', input: 'a' })
  const suspended = await threads.run(agent, { thread: 't_1', input: 'b', resumeUsage: true })
  expect(suspended.usage.requests).toBe(2)
  const [wait] = suspended.waits
  await threads.submit({ provider: 'outside', external_id: wait!.externalId, result: 1 })
  const resumed = await threads.run(agent, { thread: 't_1' })
  expect(resumed).toMatchObject({ status: 'completed', usage: { requests: 3, inputTokens: 300 } })
})
