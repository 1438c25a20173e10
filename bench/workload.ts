import type { LanguageModelV4, LanguageModelV4Prompt, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { z } from 'zod'
import { type Agent, defineAgent, externalTool } from '../src/index.ts'

/** Characters of each message the model writes. */
export const MESSAGE_BYTES = 2_000
/** Bytes of a result as JSON, about. */
export const RESULT_BYTES = 1_000

export const AGENT = 'payer'
export const PROVIDER = 'payouts'
export const threadOf = (order: number): string => `thread_${order}`
export const inputOf = (order: number): string => `Pay out order ${order}`

/** What the outside world answers: 1 KB. */
export const resultOf = (order: number) => ({ order, answer: 'z'.repeat(900), nested: { list: [1, 2, 3, order], ok: true } })

const payout = externalTool({
  name: 'payout',
  description: 'Pays out an order',
  provider: PROVIDER,
  input: z.object({ order: z.int() }),
  result: z.object({ order: z.int(), answer: z.string(), nested: z.object({ list: z.array(z.int()), ok: z.boolean() }) }),
})

/**
 * The agent of all benchmarks: one message of 2 KB with a call that the outside answers, then a second one of 2 KB, and the end. Its
 * model answers at once.
 * @param asked told of the order when the model is asked after the answer: the first foreign code that runs once a resume is durable
 */
export const workAgent = (asked: (order: number) => void): Agent =>
  defineAgent({ name: AGENT, revision: '1', model: model(asked), tools: [payout] })

const model = (asked: (order: number) => void): LanguageModelV4 => ({
  specificationVersion: 'v4',
  provider: 'bench',
  modelId: 'bench',
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error('The benchmarks stream.')),
  doStream: async ({ prompt }) => {
    const answered = answeredOrder(prompt)
    if (answered !== undefined) asked(answered)
    return { stream: streamOf(answered === undefined ? callFor(wantedOrder(prompt)) : last) }
  },
})

/** The order whose result the prompt ends with, if it ends with one. */
function answeredOrder(prompt: LanguageModelV4Prompt): number | undefined {
  const message = prompt.at(-1)
  const part = message?.role === 'tool' ? message.content[0] : undefined
  if (part?.type !== 'tool-result' || part.output.type !== 'json') return undefined
  return (part.output.value as { order: number }).order
}

function wantedOrder(prompt: LanguageModelV4Prompt): number {
  const message = prompt.at(-1)
  const part = message?.role === 'user' ? message.content[0] : undefined
  return Number(part?.type === 'text' ? part.text.slice(part.text.lastIndexOf(' ') + 1) : Number.NaN)
}

const usage = {
  inputTokens: { total: 500, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 500, text: undefined, reasoning: undefined },
}
const text = (delta: string): LanguageModelV4StreamPart[] => [
  { type: 'stream-start', warnings: [] },
  { type: 'text-start', id: '0' },
  { type: 'text-delta', id: '0', delta },
  { type: 'text-end', id: '0' },
]

const last: readonly LanguageModelV4StreamPart[] = [
  ...text('y'.repeat(MESSAGE_BYTES)),
  { type: 'finish', usage, finishReason: { unified: 'stop', raw: undefined } },
]

const first = text('x'.repeat(MESSAGE_BYTES))
const callFor = (order: number): LanguageModelV4StreamPart[] => {
  const input = JSON.stringify({ order })
  return [
    ...first,
    { type: 'tool-input-start', id: 'call', toolName: 'payout' },
    { type: 'tool-input-delta', id: 'call', delta: input },
    { type: 'tool-input-end', id: 'call' },
    { type: 'tool-call', toolCallId: 'call', toolName: 'payout', input },
    { type: 'finish', usage, finishReason: { unified: 'tool-calls', raw: undefined } },
  ]
}

const streamOf = (parts: readonly LanguageModelV4StreamPart[]): ReadableStream<LanguageModelV4StreamPart> =>
  new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    },
  })
