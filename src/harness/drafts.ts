import { isThreadlogError, type JsonObject, type JsonValue, Payload, toJson } from '../base/index.ts'
import type { EventDraft } from '../events/index.ts'
import { CONTENT_LIMIT } from '../log/index.ts'
import {
  isoTimestamp,
  type RequestMessage,
  requestMessage,
  systemPromptPart,
  type ToolOutcome,
  type ToolRetry,
  toolReturnPart,
  type UserPromptPart,
  userPromptPart,
} from '../messages/index.ts'
import { type CallState, type DecisionContext, type Settlement, settledReference } from '../projections/index.ts'

// Event drafts as the harness proposes them, one function each.

/** Largest value that can be recorded: what the content store takes, less room for the message around it (R17). */
export const PAYLOAD_LIMIT = CONTENT_LIMIT - 65_536

/** Retries per tool, and of the output, before the run fails (settled list §2: 5 and 3). */
export const MAX_TOOL_RETRIES = 5
export const MAX_OUTPUT_RETRIES = 3

/** What the model is told of a call whose outcome nobody knows (state spec §4.4). */
export const UNKNOWN_RESULT =
  'No result was recorded because execution was interrupted. The operation may have happened partly or fully. Check the current state before deciding to retry.'

const OUTCOMES: Record<Settlement, ToolOutcome> = {
  returned: 'success',
  failed: 'failed',
  denied: 'denied',
  retried: 'retried',
  unknown: 'failed',
}

export interface Settling {
  callId: string
  toolName: string
  settlement: Settlement
  content: JsonValue
  number?: number
  reason?: string
  retry?: ToolRetry
  metadata?: JsonValue
}

/** `tool.settled` with its exact tool-return part. */
export function settle(context: DecisionContext, s: Settling): EventDraft {
  const part = toolReturnPart({
    tool_name: s.toolName,
    content: s.content,
    tool_call_id: s.callId,
    timestamp: isoTimestamp(context.now),
    outcome: OUTCOMES[s.settlement],
    ...(s.retry ? { retry: s.retry } : {}),
    ...(s.metadata === undefined ? {} : { metadata: s.metadata }),
  })
  return {
    type: 'tool.settled/1',
    data: {
      call_id: s.callId,
      settlement: s.settlement,
      part: Payload.of(part as unknown as JsonValue),
      number: s.number ?? 0,
      reason: s.reason ?? null,
    },
  }
}

/** `tool.settled` by reference to the wait that answered the call: its value is not copied. */
export const settleByWait = (callId: string, continuationId: string, settlement: Settlement): EventDraft => ({
  type: 'tool.settled/1',
  data: { call_id: callId, settlement, part: Payload.of({ $completed: continuationId }), number: 0, reason: null },
})

/** The outcome of a call is unknown: dispatched and never heard of, or given up before it began. */
export const settleUnknown = (
  context: DecisionContext,
  callId: string,
  toolName: string,
  call: CallState | undefined,
  reason: string,
) =>
  settle(context, {
    callId,
    toolName,
    settlement: 'unknown',
    content: UNKNOWN_RESULT,
    number: call?.dispatch?.number ?? 0,
    reason,
  })

export interface Composing {
  step: number
  /** Calls whose settled returns stand first. */
  callIds: readonly string[]
  /** Further parts, in wire form. */
  parts?: readonly JsonValue[]
  state?: 'complete' | 'interrupted'
  /** Null: it was not sent to a model when it was made. */
  timestamp?: null
  threadId: string
}

/** `request.composed`: returns by reference, then the other parts. */
export function compose(context: DecisionContext, c: Composing): EventDraft {
  const state = c.state ?? 'complete'
  const message = requestMessage({
    parts: [],
    timestamp: c.timestamp === null ? null : isoTimestamp(context.now),
    run_id: context.runId,
    conversation_id: c.threadId,
    state,
  } satisfies Parameters<typeof requestMessage>[0])
  const parts = [...c.callIds.map(settledReference), ...(c.parts ?? [])]
  return {
    type: 'request.composed/1',
    data: { step: c.step, message: Payload.of({ ...(message as RequestMessage & JsonObject), parts }), state },
  }
}

export const systemParts = (system: readonly string[], now: number): JsonValue[] =>
  system.map((content) => systemPromptPart({ content, timestamp: isoTimestamp(now) }) as unknown as JsonValue)

export const userPart = (content: JsonValue, now: number): JsonValue =>
  userPromptPart({ content: content as UserPromptPart['content'], timestamp: isoTimestamp(now) }) as unknown as JsonValue

/** True for what can stand in a user message: text, or a list of text and content items. */
export function isUserContent(content: JsonValue): boolean {
  try {
    userPart(toJson(content), 0)
    return true
  } catch (error) {
    if (isThreadlogError(error)) return false
    throw error
  }
}
