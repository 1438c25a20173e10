import { generateText, jsonSchema, streamText, tool } from 'ai'
import { expect, test } from 'vitest'
import { RECORDED_MODEL, type ScriptEntry, scriptedModel } from '../../src/models/index.ts'
import { ask } from './raw-model.ts'

const script: ScriptEntry[] = [
  {
    parts: [
      { thinking: 'plan', signature: 'sig' },
      { text: 'adding' },
      { tool_call: { id: 'c1', name: 'add', args: { a: 1, b: 2 } } },
    ],
  },
  { parts: [{ text: 'done' }] },
]
const add = tool({
  inputSchema: jsonSchema<{ a: number; b: number }>({ type: 'object' }),
  execute: async ({ a, b }) => a + b,
})

test('a scripted model is a model for the AI SDK: streamText', async () => {
  const model = scriptedModel(script)
  const result = streamText({ model, prompt: 'go', tools: { add }, stopWhen: ({ steps }) => steps.length === 2 })
  let text = ''
  for await (const delta of result.textStream) text += delta
  expect(text).toBe('addingdone')
  expect(model.prompts).toHaveLength(2)
  expect(model.prompts[1]!.at(-1)).toMatchObject({ role: 'tool', content: [{ toolCallId: 'c1', output: { value: 3 } }] })
})

test('a scripted model is a model for the AI SDK: generateText', async () => {
  const { toolCalls, reasoningText } = await generateText({ model: scriptedModel(script), prompt: 'go', tools: { add } })
  expect(toolCalls).toMatchObject([{ toolCallId: 'c1', input: { a: 1, b: 2 } }])
  expect(reasoningText).toBe('plan')
})

test('a function as script serves several threads', async () => {
  const model = scriptedModel((prompt, call) => ({ parts: [{ text: `${call}:${prompt.length}` }] }))
  const outcomes = await Promise.all([ask(model), ask(model)])
  expect(outcomes.map((o) => (o.kind === 'response' ? (o.message.parts[0] as { content: string }).content : o.kind))).toEqual([
    '0:1',
    '1:1',
  ])
})

test('a request beyond the script says so', async () => {
  const model = scriptedModel([])
  await expect(model.doStream({ prompt: [] })).rejects.toMatchObject({ code: 'script_exhausted' })
  await expect(model.doGenerate({ prompt: [] })).rejects.toMatchObject({ code: 'script_exhausted' })
})

test('hang honours the signal, in both ways of asking', async () => {
  const model = scriptedModel(() => ({ parts: [{ text: 'a' }], then: 'hang' }))
  const generated = model.doGenerate({ prompt: [], abortSignal: AbortSignal.timeout(5) })
  await expect(generated).rejects.toMatchObject({ name: 'TimeoutError' })
  expect(await ask(model, { signal: AbortSignal.timeout(5) })).toMatchObject({
    kind: 'cancelled',
    partial: { parts: [{ content: 'a' }] },
  })
})

test('args_text and native parts are streamed as they are', async () => {
  const outcome = await ask(
    scriptedModel(
      [
        {
          parts: [
            { tool_call: { id: 'c', name: 't', args_text: '{"a":' } },
            { native_call: { id: 'n', name: 'web', args: { q: 1 } } },
            { native_return: { id: 'n', name: 'web', content: [1] } },
          ],
        },
      ],
      RECORDED_MODEL,
    ),
  )
  expect(outcome).toMatchObject({
    message: {
      provider_name: null,
      finish_reason: null,
      parts: [
        { part_kind: 'tool-call', args: '{"a":', provider_name: null },
        { part_kind: 'builtin-tool-call', provider_name: 'function', provider_details: null },
        { part_kind: 'builtin-tool-return', content: [1], provider_name: 'function' },
      ],
    },
  })
})
