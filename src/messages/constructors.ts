import type { JsonValue } from '../base/index.ts'
import { retryFeedback, systemPrompt, toolReturn, userPrompt } from './request-parts.ts'
import { builtinToolCall, builtinToolReturn, file, text, thinking, toolCall } from './response-parts.ts'
import { type Reader, timestamp, type Where } from './shape.ts'
import type {
  BuiltinToolCallPart,
  BuiltinToolReturnPart,
  FilePart,
  RequestMessage,
  ResponseMessage,
  RetryFeedbackPart,
  SystemPromptPart,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolReturnPart,
  UserPromptPart,
} from './types.ts'
import { emptyUsage } from './usage.ts'

/** What a constructor needs (`R`) and may be given; everything else gets its default. Timestamps are ISO 8601, from the caller's clock. */
export type Draft<T, R extends keyof T> = Pick<T, R> & Partial<Omit<T, R | 'kind' | 'part_kind'>>

const AT: Where = { path: '$', now: '1970-01-01T00:00:00Z' }

/** A constructor is the reader of its part: same defaults, same order of keys, same refusals (`message_history_invalid`). */
const make =
  <T, R extends keyof T>(read: Reader<T>) =>
  (draft: Draft<T, R>): T =>
    read(draft as JsonValue, AT)

export const systemPromptPart = make<SystemPromptPart, 'content' | 'timestamp'>(systemPrompt)
export const userPromptPart = make<UserPromptPart, 'content' | 'timestamp'>(userPrompt)
export const toolReturnPart = make<ToolReturnPart, 'tool_name' | 'content' | 'tool_call_id' | 'timestamp'>(toolReturn)
export const retryFeedbackPart = make<RetryFeedbackPart, 'content' | 'retry' | 'timestamp'>(retryFeedback)
export const textPart = make<TextPart, 'content'>(text)
export const thinkingPart = make<ThinkingPart, 'content'>(thinking)
export const toolCallPart = make<ToolCallPart, 'tool_name' | 'tool_call_id'>(toolCall)
export const builtinToolCallPart = make<BuiltinToolCallPart, 'tool_name' | 'tool_call_id'>(builtinToolCall)
export const builtinToolReturnPart = make<BuiltinToolReturnPart, 'tool_name' | 'content' | 'tool_call_id' | 'timestamp'>(
  builtinToolReturn,
)
export const filePart = make<FilePart, 'content'>(file)

/** A request with every key. The parts are taken as they are: build them with the constructors above. */
export const requestMessage = (m: Draft<RequestMessage, 'parts' | 'timestamp'>): RequestMessage => ({
  parts: m.parts,
  timestamp: m.timestamp === null ? null : timestamp(m.timestamp, AT),
  instructions: m.instructions ?? null,
  kind: 'request',
  run_id: m.run_id ?? null,
  conversation_id: m.conversation_id ?? null,
  metadata: m.metadata ?? null,
  state: m.state ?? 'complete',
})

/** A response with every key. The parts are taken as they are. */
export const responseMessage = (m: Draft<ResponseMessage, 'parts' | 'timestamp'>): ResponseMessage => ({
  parts: m.parts,
  usage: m.usage ?? emptyUsage(),
  model_name: m.model_name ?? null,
  timestamp: timestamp(m.timestamp, AT),
  kind: 'response',
  provider_name: m.provider_name ?? null,
  provider_url: m.provider_url ?? null,
  provider_details: m.provider_details ?? null,
  provider_response_id: m.provider_response_id ?? null,
  finish_reason: m.finish_reason ?? null,
  run_id: m.run_id ?? null,
  conversation_id: m.conversation_id ?? null,
  metadata: m.metadata ?? null,
  workspace_ref: m.workspace_ref ?? null,
  history_digest: m.history_digest ?? null,
  failed_attempts: m.failed_attempts ?? null,
  state: m.state ?? 'complete',
})
