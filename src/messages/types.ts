import type { JsonObject, JsonValue } from '../base/index.ts'
import type { BinaryItem, UserContent } from './content-types.ts'

/**
 * The public message JSON of pydantic-ai 2.61, as it stands on the wire. All keys are always present, in the order of these
 * declarations. Timestamps are ISO 8601 text as stored.
 */
export type Message = RequestMessage | ResponseMessage

/** What is sent to the model: prompts, tool returns, feedback. `interrupted`: the run ended before it was sent. */
export interface RequestMessage {
  parts: RequestPart[]
  timestamp: string | null
  instructions: string | null
  kind: 'request'
  run_id: string | null
  conversation_id: string | null
  metadata: JsonObject | null
  state: RequestState
}
export type RequestState = 'complete' | 'interrupted'

/** What the model said. `suspended`: the provider paused and wants the response back; `interrupted`: the stream was cut. */
export interface ResponseMessage {
  parts: ResponsePart[]
  usage: Usage
  model_name: string | null
  timestamp: string
  kind: 'response'
  provider_name: string | null
  provider_url: string | null
  provider_details: JsonObject | null
  provider_response_id: string | null
  finish_reason: FinishReason | null
  run_id: string | null
  conversation_id: string | null
  metadata: JsonObject | null
  workspace_ref: WorkspaceRef | null
  history_digest: string | null
  failed_attempts: FailedAttempt[] | null
  state: ResponseState
}
export type ResponseState = 'complete' | 'incomplete' | 'suspended' | 'interrupted'
export type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_call' | 'error'

export interface WorkspaceRef {
  provider: string
  id: string
}

/** A model attempt that failed before the response it is recorded on. `duration` is an ISO 8601 duration. */
export interface FailedAttempt {
  model_name: string
  provider_name: string | null
  outcome: 'error' | 'rejected'
  error: string | null
  timestamp: string
  duration: string
  usage: Usage | null
}

/** Tokens (integers) and seconds of audio of one response. `cost` is a decimal as text. Further keys of a provider are kept. */
export interface Usage {
  input_tokens: number
  cache_write_tokens: number
  cache_write_1h_tokens: number
  cache_read_tokens: number
  output_tokens: number
  /** Responses that reported no usage; only present when not 0. */
  unmeasured_requests?: number
  output_reasoning_tokens: number
  input_audio_tokens: number
  cache_audio_read_tokens: number
  output_audio_tokens: number
  audio_seconds: number
  details: { [name: string]: number }
  cost: string | null
}

export type RequestPart =
  | SystemPromptPart
  | UserPromptPart
  | ToolReturnPart
  | RetryFeedbackPart
  | SpeechPart
  | ToolAvailabilityDeltaPart
  | InstructionDeltaPart
  | InstructionBaselinePart

export type ResponsePart =
  | TextPart
  | ThinkingPart
  | ToolCallPart
  | BuiltinToolCallPart
  | BuiltinToolReturnPart
  | CompactionPart
  | FilePart
  | SpeechPart

export interface SystemPromptPart {
  content: string
  timestamp: string
  dynamic_ref: string | null
  scope: 'conversation' | 'request'
  metadata: JsonObject | null
  part_kind: 'system-prompt'
}

export interface UserPromptPart {
  content: string | UserContent[]
  timestamp: string
  part_kind: 'user-prompt'
}

/** Answers one tool call, with any of five outcomes. `retried` carries the cause in `retry`. */
export interface ToolReturnPart {
  tool_name: string
  content: JsonValue
  tool_call_id: string
  tool_kind: string | null
  metadata: JsonValue
  timestamp: string
  outcome: ToolOutcome
  retry: ToolRetry | null
  part_kind: 'tool-return'
}
export type ToolOutcome = 'success' | 'failed' | 'denied' | 'interrupted' | 'retried'

export interface Retry<Cause extends string> {
  cause: Cause
  attempt: number | null
  max_retries: number | null
}
export type ToolRetry = Retry<'validation_error' | 'model_retry' | 'unknown_tool' | 'unavailable_tool'>
export type FeedbackRetry = Retry<'validation_error' | 'no_output' | 'model_retry'>

/** Feedback on the whole output of the model. Has no call id and answers no call. */
export interface RetryFeedbackPart {
  content: string | JsonObject[]
  retry: FeedbackRetry
  timestamp: string
  part_kind: 'retry-feedback'
}

export interface SpeechPart {
  speaker: 'user' | 'assistant'
  transcript: string | null
  audio: BinaryItem | null
  interrupted_at_ms: number | null
  id: string | null
  provider_name: string | null
  provider_details: JsonObject | null
  part_kind: 'speech'
}

export interface ToolAvailabilityDeltaPart {
  tools_added: string[]
  tool_call_id: string | null
  part_kind: 'tool-availability-delta'
}

export interface InstructionDeltaPart {
  id: string | null
  content: string | null
  base_hash: string | null
  part_kind: 'instruction-delta'
}

export interface InstructionBaselinePart {
  instructions: (Instruction | InstructionDigest)[]
  part_kind: 'instruction-baseline'
}
export interface Instruction {
  content: string
  dynamic: boolean
  on_change: 'rewrite' | 'append'
  name: string | null
  id: string | null
  part_kind: 'instruction'
}
export interface InstructionDigest {
  id: string | null
  dynamic: boolean
  content_hash: string
  part_kind: 'instruction-digest'
}

export interface TextPart {
  content: string
  id: string | null
  provider_name: string | null
  provider_details: JsonObject | null
  citations: Citation[] | null
  part_kind: 'text'
}
export interface Citation {
  sources: (WebSource | DocumentSource)[]
  anchor: { start: number; end: number; kind: 'content' | 'marker' } | null
}
export interface WebSource {
  url: string
  title: string | null
  excerpts: string[]
  kind: 'web'
}
export interface DocumentSource {
  document_id: string | null
  title: string | null
  excerpts: string[]
  kind: 'document'
}

export interface ThinkingPart {
  content: string
  id: string | null
  signature: string | null
  provider_name: string | null
  provider_details: JsonObject | null
  part_kind: 'thinking'
}

/** `args` keeps the form it arrived in: raw JSON text (also text that does not parse), an object, or null for no arguments. */
export interface ToolCallPart {
  tool_name: string
  args: string | JsonObject | null
  tool_call_id: string
  tool_kind: string | null
  id: string | null
  provider_name: string | null
  provider_details: JsonObject | null
  part_kind: 'tool-call'
}
/** A call the provider executes itself. */
export interface BuiltinToolCallPart extends Omit<ToolCallPart, 'part_kind'> {
  part_kind: 'builtin-tool-call'
}
export interface BuiltinToolReturnPart {
  tool_name: string
  content: JsonValue
  tool_call_id: string
  tool_kind: string | null
  metadata: JsonValue
  timestamp: string
  outcome: ToolOutcome
  provider_name: string | null
  provider_details: JsonObject | null
  part_kind: 'builtin-tool-return'
}

export interface CompactionPart {
  content: string | null
  id: string | null
  provider_name: string | null
  provider_details: JsonObject | null
  part_kind: 'compaction'
}

export interface FilePart {
  content: BinaryItem
  id: string | null
  provider_name: string | null
  provider_details: JsonObject | null
  part_kind: 'file'
}
