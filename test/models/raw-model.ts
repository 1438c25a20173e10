import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { requestMessage, userPromptPart } from '../../src/messages/index.ts'
import { type ModelOutcome, type StreamRequest, streamResponse } from '../../src/models/index.ts'

export const NOW = '2026-01-01T00:00:00Z'
export const prompt = (content = 'go') => requestMessage({ parts: [userPromptPart({ content, timestamp: NOW })], timestamp: NOW })

/** A model that streams exactly these parts; an `Error` among them breaks the stream there. */
export const rawModel = (parts: readonly unknown[], more: Partial<LanguageModelV4> = {}): LanguageModelV4 => ({
  specificationVersion: 'v4',
  provider: 'raw.chat',
  modelId: 'raw-1',
  supportedUrls: {},
  async doGenerate() {
    throw new Error('not used')
  },
  async doStream() {
    const left = [...parts]
    const stream = new ReadableStream<LanguageModelV4StreamPart>(
      {
        pull(controller) {
          const next = left.shift()
          if (next instanceof Error) throw next
          if (next === undefined) controller.close()
          else controller.enqueue(next as LanguageModelV4StreamPart)
        },
      },
      { highWaterMark: 0 },
    )
    return { stream }
  },
  ...more,
})

export const finish = (unified = 'stop', raw?: string) => ({
  type: 'finish',
  finishReason: { unified, raw },
  usage: { inputTokens: { total: 3, cacheRead: 1 }, outputTokens: { total: 5, reasoning: 2 } },
})

export const ask = (model: LanguageModelV4, more: Partial<StreamRequest> = {}): Promise<ModelOutcome> =>
  streamResponse({ model, messages: [prompt()], tools: [], now: () => NOW, ...more })
