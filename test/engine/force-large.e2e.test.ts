import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { defineAgent, defineTool, externalTool, openThreadlog, type Threadlog } from '../../src/index.ts'
import { type ScriptEntry, scriptedModel } from '../../src/models/index.ts'
import { checkStream, dispatchedCalls } from '../support/processes/checks.ts'
import { places } from '../support/processes/place.ts'
import { turnOf } from '../support/processes/prompt.ts'
import { eventsOf } from '../support/processes/streams.ts'

const place = places()
const opened: Threadlog[] = []
afterEach(async () => {
  for (const threads of opened.splice(0)) await threads.close()
})

/** A thread whose model first makes `count` calls of one tool, then is done. */
async function open(name: 'load' | 'ask' | 'confirm', count: number): Promise<Threadlog> {
  const execute = () => ({ text: 'x'.repeat(60_000) })
  const calls: ScriptEntry = { parts: Array.from({ length: count }, (_, i) => ({ tool_call: { id: `c${i}`, name } })) }
  const model = scriptedModel((prompt) => (turnOf(prompt).step === 0 ? calls : { parts: [{ text: 'done' }] }))
  const input = z.object({})
  const tools = [
    defineTool({ name: 'load', description: 'Loads much', input, execute }),
    defineTool({ name: 'confirm', description: 'Needs a yes', input, needsApproval: true, execute: () => 'small' }),
    externalTool({ name: 'ask', description: 'Asks', provider: 'desk', input }),
  ]
  const agent = defineAgent({ name: 'large', revision: '1', model, tools })
  const threads = await openThreadlog({ log: place().log, application: 'shop', agents: [agent] })
  opened.push(threads)
  return threads
}

// Twenty results that came in together made one commit, too large for any log; the run died with the effects done and their results lost.
test('results that are together larger than a commit all settle', async () => {
  const threads = await open('load', 40)
  expect(await threads.run('large', { thread: 'large_1', input: 'go' })).toMatchObject({ status: 'completed', output: 'done' })
  const { stream } = threads.thread('large_1')
  const calls = dispatchedCalls(await eventsOf(threads.backend, stream))
  expect(calls.map(({ settlement }) => settlement)).toEqual(Array(40).fill('returned'))
  await checkStream(threads.store, stream)
})

test('the most calls a response may have can be suspended, answered, approved and cancelled', async () => {
  for (const [i, name] of (['ask', 'confirm'] as const).entries()) {
    const threads = await open(name, 200)
    const { waits } = await threads.run('large', { thread: `most_${i}`, input: 'go' })
    expect(waits).toHaveLength(200)
    await Promise.all(
      waits.map(({ id }) =>
        name === 'ask' ? threads.submit({ provider: 'desk', continuation_id: id, result: 1 }) : threads.approve(id),
      ),
    )
    expect(await threads.run('large', { thread: `most_${i}` })).toMatchObject({ status: 'completed', output: 'done' })
    await checkStream(threads.store, threads.thread(`most_${i}`).stream)
    await threads.run('large', { thread: `cancelled_${i}`, input: 'go' })
    await threads.thread(`cancelled_${i}`).cancel()
    expect((await checkStream(threads.store, threads.thread(`cancelled_${i}`).stream)).run).toBeUndefined()
  }
})

test('a response with more calls is a failed request, and the thread goes on', async () => {
  const threads = await open('ask', 201)
  const { status, failure } = await threads.run('large', { thread: 'large_2', input: 'go' })
  expect(status).toBe('failed')
  expect(failure?.message).toContain('response_too_large')
  const state = await checkStream(threads.store, threads.thread('large_2').stream)
  expect(state.run).toBeUndefined()
})
