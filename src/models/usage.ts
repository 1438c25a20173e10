import type { LanguageModelV4Usage } from '@ai-sdk/provider'
import { emptyUsage, type Usage } from '../messages/index.ts'

const count = (value: unknown): number => (Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0)

/** Tokens a model reports, as message usage. What it does not report is 0; costs are not its business. */
export function toUsage(usage: LanguageModelV4Usage | undefined): Usage {
  return {
    ...emptyUsage(),
    input_tokens: count(usage?.inputTokens?.total),
    cache_write_tokens: count(usage?.inputTokens?.cacheWrite),
    cache_read_tokens: count(usage?.inputTokens?.cacheRead),
    output_tokens: count(usage?.outputTokens?.total),
    output_reasoning_tokens: count(usage?.outputTokens?.reasoning),
  }
}
