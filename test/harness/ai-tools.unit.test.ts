import { dynamicTool, jsonSchema, tool } from 'ai'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { isThreadlogError } from '../../src/base/index.ts'
import { aiTools, openThreadlog } from '../../src/index.ts'
import { agentOf, calls, returnsOf, says } from '../support/agents.ts'

const inputSchema = z.object({ n: z.int() })
const open = () => openThreadlog({ application: 'test' })

const forms = () => {
  const ran: unknown[] = []
  const execute = (input: { n: number }, { toolCallId }: { toolCallId: string }) => {
    ran.push([toolCallId, input])
    return { twice: 2 * input.n }
  }
  const tools = aiTools({
    local: tool({ description: 'Doubles', inputSchema, execute }),
    plain: tool({ inputSchema: jsonSchema<{ n: number }>({ type: 'object', properties: { n: { type: 'number' } } }), execute }),
    remote: tool({ description: 'Asks the page', inputSchema, outputSchema: z.object({ ok: z.boolean() }) }),
    guarded: tool({ inputSchema, execute, needsApproval: true }),
    large: tool({ inputSchema, execute, needsApproval: ({ n }) => n > 9 }),
    told: tool({ description: () => 'From a function', inputSchema, execute }),
    free: dynamicTool({ inputSchema, execute: (input) => execute(input as { n: number }, { toolCallId: 'free' }) }),
  })
  return { tools, ran }
}

test('tools of the AI SDK run here, go out, and ask, as they are written', async () => {
  await using threads = await open()
  const { tools, ran } = forms()
  const made = calls(
    ['c1', 'local', { n: 1 }],
    ['c2', 'plain', { n: 2 }],
    ['c3', 'remote', { n: 3 }],
    ['c4', 'guarded', { n: 4 }],
    ['c5', 'large', { n: 5 }],
    ['c6', 'large', { n: 10 }],
  )
  const agent = agentOf([made, says('done')], tools)
  const { waits, ...suspended } = await threads.run(agent, { thread: 'thread_a', input: 'go' })
  expect(suspended.status).toBe('suspended')
  expect(waits.map((wait) => [wait.kind, wait.provider, wait.tool])).toEqual([
    ['external', 'client', 'remote'],
    ['approval', 'human', 'guarded'],
    ['approval', 'human', 'large'],
  ])
  expect(ran).toEqual([
    ['c1', { n: 1 }],
    ['c2', { n: 2 }],
    ['c5', { n: 5 }],
  ])
  for (const wait of waits)
    if (wait.kind === 'approval') await threads.approve(wait.id, { digest: wait.digest })
    else await threads.submit({ provider: 'client', external_id: wait.externalId, result: { ok: true } })
  expect(await threads.run(agent, { thread: 'thread_a' })).toMatchObject({ status: 'completed', output: 'done' })
  expect(ran.slice(3)).toEqual([
    ['c4', { n: 4 }],
    ['c6', { n: 10 }],
  ])
  const history = (await threads.thread('thread_a').state()).messageHistory
  expect(returnsOf(history).map(([, outcome]) => outcome)).toEqual(Array(6).fill('success'))
})

test('a description is text, whatever it is given as', () => {
  const { tools } = forms()
  const [needy] = aiTools({
    needy: tool({
      description: ({ context }) => context.language,
      contextSchema: z.object({ language: z.string() }),
      inputSchema,
      execute: () => 1,
    }),
  })
  expect([...tools, needy].map((each) => each?.description)).toEqual([
    'Doubles',
    '',
    'Asks the page',
    '',
    '',
    'From a function',
    '',
    '',
  ])
})

// The answer of an async function is not waited for. Without somebody who takes its rejection, Node ends the process.
test('a needsApproval that answers later, or fails later, asks', async () => {
  await using threads = await open()
  const execute = () => 'ran'
  const tools = aiTools({
    later: tool({ inputSchema, execute, needsApproval: async () => false }),
    fails: tool({
      inputSchema,
      execute,
      needsApproval: async (_, { messages }) => {
        throw new Error(`after ${messages.length}`)
      },
    }),
    throws: tool({
      inputSchema,
      execute,
      needsApproval: () => {
        throw new Error('at once')
      },
    }),
  })
  const made = calls(['c1', 'later', { n: 1 }], ['c2', 'fails', { n: 2 }], ['c3', 'throws', { n: 3 }])
  const { status, waits } = await threads.run(agentOf([made], tools), { thread: 'thread_a', input: 'go' })
  expect(status).toBe('suspended')
  expect(waits.map((wait) => [wait.kind, wait.tool])).toEqual([
    ['approval', 'later'],
    ['approval', 'fails'],
  ])
})

const refusal = (make: () => unknown): unknown => {
  try {
    return make()
  } catch (error) {
    return isThreadlogError(error) ? [error.code, error.path, error.expected !== undefined, error.hint !== undefined] : error
  }
}

test('what cannot be carried out is refused where it is defined', () => {
  const approval = tool({ inputSchema, outputSchema: z.string(), needsApproval: true })
  expect(refusal(() => aiTools({ approval }))).toEqual(['tool_unsupported', 'approval.needsApproval', true, true])
  const search = tool({
    type: 'provider',
    id: 'maker.search',
    isProviderExecuted: true,
    args: {},
    inputSchema,
    outputSchema: inputSchema,
  })
  expect(refusal(() => aiTools({ search }))).toEqual(['tool_unsupported', 'search', true, true])
  expect(aiTools({ open: tool({ inputSchema, outputSchema: z.string(), needsApproval: false }) })[0]?.kind).toBe('external')
})
