import { isJsonObject, type JsonValue } from '../base/index.ts'
import { callId } from './call-id.ts'
import { binary, returnContent, userContent } from './content.ts'
import {
  boolean,
  byKind,
  constant,
  type Fields,
  inside,
  integer,
  invalid,
  json,
  jsonObject,
  list,
  nullable,
  object,
  oneOf,
  optional,
  orNull,
  type Reader,
  required,
  string,
  timestampOrNow,
  type Where,
} from './shape.ts'
import { withToolKind } from './tool-kinds.ts'
import type {
  FeedbackRetry,
  Instruction,
  InstructionBaselinePart,
  InstructionDeltaPart,
  InstructionDigest,
  RequestPart,
  Retry,
  RetryFeedbackPart,
  SpeechPart,
  SystemPromptPart,
  ToolAvailabilityDeltaPart,
  ToolOutcome,
  ToolReturnPart,
  UserPromptPart,
} from './types.ts'

export const outcome = oneOf<ToolOutcome>('success', 'failed', 'denied', 'interrupted', 'retried')

function retry<Cause extends string>(...causes: Cause[]): Reader<Retry<Cause>> {
  const fields = { cause: required(oneOf(...causes)), attempt: orNull(integer), max_retries: orNull(integer) }
  return object<Retry<Cause>>(fields as Fields<Retry<Cause>>)
}
const toolRetry = retry('validation_error', 'model_retry', 'unknown_tool', 'unavailable_tool')
const feedbackRetry: Reader<FeedbackRetry> = retry('validation_error', 'no_output', 'model_retry')

export const systemPrompt = object<SystemPromptPart>({
  content: required(string),
  timestamp: timestampOrNow,
  dynamic_ref: orNull(string),
  scope: optional(oneOf('conversation', 'request'), 'conversation'),
  metadata: orNull(jsonObject),
  part_kind: constant('system-prompt'),
})

export const userPrompt = object<UserPromptPart>({
  content: required(userContent),
  timestamp: timestampOrNow,
  part_kind: constant('user-prompt'),
})

export const toolReturn = withToolKind(
  'content',
  object<ToolReturnPart>({
    tool_name: required(string),
    content: required(returnContent),
    tool_call_id: callId,
    tool_kind: orNull(string),
    metadata: optional(json, null),
    timestamp: timestampOrNow,
    outcome: optional(outcome, 'success'),
    retry: orNull(toolRetry),
    part_kind: constant('tool-return'),
  }),
)

/** A text, or the errors of a validation: objects. */
const feedback: Reader<string | { [key: string]: JsonValue }[]> = (value, at) =>
  typeof value === 'string' ? value : list(jsonObject)(value, at)

export const retryFeedback = object<RetryFeedbackPart>({
  content: required(feedback),
  retry: required(feedbackRetry),
  timestamp: timestampOrNow,
  part_kind: constant('retry-feedback'),
})

/** Older histories: one part meant either a retried tool return or feedback on the output; `tool_name` tells. */
const retryPrompt: Reader<RequestPart> = (value, at) => {
  if (!isJsonObject(value)) throw invalid(at, 'an object')
  const { content, timestamp, tool_name, tool_call_id } = value
  if (content === undefined) throw invalid(inside(at, 'content'), 'a value: this key is required')
  feedback(content, inside(at, 'content'))
  const isText = typeof content === 'string'
  const shared = { content, ...(timestamp === undefined ? {} : { timestamp }) }
  if (tool_name === undefined || tool_name === null)
    return retryFeedback({ ...shared, retry: { cause: isText ? 'model_retry' : 'validation_error' } }, at)
  return toolReturn(
    {
      ...shared,
      tool_name,
      ...(tool_call_id === undefined ? {} : { tool_call_id }),
      outcome: 'retried',
      retry: isText ? null : { cause: 'validation_error' },
    },
    at,
  )
}

export const speech = (speaker: SpeechPart['speaker']): Reader<SpeechPart> =>
  object<SpeechPart>({
    speaker: required(oneOf(speaker)),
    transcript: orNull(string),
    audio: orNull(binary),
    interrupted_at_ms: orNull(integer),
    id: orNull(string),
    provider_name: orNull(string),
    provider_details: orNull(jsonObject),
    part_kind: constant('speech'),
  })

const toolAvailability = object<ToolAvailabilityDeltaPart>({
  tools_added: { read: list(string), otherwise: () => [], alias: 'added' },
  tool_call_id: orNull(string),
  part_kind: constant('tool-availability-delta'),
})

/** `agent`, `agent:…`, `run:…`, `toolset:…`, `capability:…`; another text addresses nothing and becomes null. */
const instructionId: Reader<string | null> = (value, at) => {
  const text = nullable(string)(value, at)
  return text !== null && /^(agent$|agent:|run:|toolset:|capability:)/.test(text) ? text : null
}
const instruction = object<Instruction>({
  content: required(string),
  dynamic: optional(boolean, false),
  on_change: optional(oneOf('rewrite', 'append'), 'rewrite'),
  name: orNull(string),
  id: optional(instructionId, null),
  part_kind: constant('instruction'),
})
const instructionDigest = object<InstructionDigest>({
  id: optional(instructionId, null),
  dynamic: optional(boolean, false),
  content_hash: required(string),
  part_kind: constant('instruction-digest'),
})
const baselineBlock: Reader<Instruction | InstructionDigest> = (value, at: Where) =>
  isJsonObject(value) && value.part_kind === 'instruction-digest' ? instructionDigest(value, at) : instruction(value, at)

const instructionDelta = object<InstructionDeltaPart>({
  id: required(instructionId),
  content: required(nullable(string)),
  base_hash: orNull(string),
  part_kind: constant('instruction-delta'),
})
const instructionBaseline = object<InstructionBaselinePart>({
  instructions: required(list(baselineBlock)),
  part_kind: constant('instruction-baseline'),
})

export const requestPart = byKind<RequestPart>('part_kind', {
  'system-prompt': systemPrompt,
  'user-prompt': userPrompt,
  'tool-return': toolReturn,
  'retry-feedback': retryFeedback,
  'retry-prompt': retryPrompt,
  speech: speech('user'),
  'tool-availability-delta': toolAvailability,
  'instruction-delta': instructionDelta,
  'instruction-baseline': instructionBaseline,
})
