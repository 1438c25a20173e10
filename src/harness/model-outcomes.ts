import { type JsonValue, Payload } from '../base/index.ts'
import type { EventDraft } from '../events/index.ts'
import { addUsage, type ResponseMessage, toolCalls } from '../messages/index.ts'
import type { ModelOutcome } from '../models/index.ts'
import { messageOf, type Proposal } from '../projections/index.ts'
import { compose, PAYLOAD_LIMIT, userPart } from './drafts.ts'
import { closeCalls, fail } from './plan.ts'

// What a model request came to, as events.

/** Calls of one response: suspended, resumed or given up, each is two events of one commit. */
const MAX_CALLS = 200

export type Failed = Omit<Extract<ModelOutcome, { kind: 'failed' }>, 'code' | 'partial'> & { code: string; partial?: Payload }
export type Outcome = { kind: 'response'; message: Payload; usage: Payload } | Failed | { kind: 'cancelled'; partial?: Payload }

/** A response above the payload limit, or with more calls than a commit can settle, cannot be stored (R17): it is a failed request. */
export function limited(outcome: ModelOutcome): Outcome {
  if (outcome.kind !== 'response') {
    const { partial, ...rest } = outcome
    const kept = partial && storable(partial)
    return kept ? { ...rest, partial: kept } : rest
  }
  const message = storable(outcome.message)
  if (message) return { kind: 'response', message, usage: Payload.of(outcome.usage as unknown as JsonValue) }
  return { kind: 'failed', code: 'response_too_large', retryable: false, details: { error_type: 'ResponseTooLarge' } }
}

function storable(message: ResponseMessage): Payload | undefined {
  if (toolCalls(message).length > MAX_CALLS) return undefined
  const payload = Payload.of(message as unknown as JsonValue)
  return payload.bytes.byteLength <= PAYLOAD_LIMIT ? payload : undefined
}

const NO_USAGE = Payload.of({})

/** A response; one that goes on from a response which its provider had paused takes its place, parts and usage together. */
export function responded(proposal: Proposal, message: Payload, usage = NO_USAGE): EventDraft {
  const last = proposal.state.history.at(-1)
  const paused = last?.role === 'response' ? (messageOf(last) as ResponseMessage) : undefined
  const step = proposal.state.run?.step ?? 0
  if (paused?.state !== 'suspended')
    return { type: 'model.responded/1', data: { step, message, usage, replaces_previous: false } }
  const next = message.value as unknown as ResponseMessage
  const whole = { ...next, parts: [...paused.parts, ...next.parts], usage: addUsage(paused.usage, next.usage) }
  return {
    type: 'model.responded/1',
    data: { step, message: Payload.of(whole as unknown as JsonValue), usage, replaces_previous: true },
  }
}

/** What the model is asked after an attempt that was cut. */
export const CONTINUE = 'Your last response was cut off. Go on from where it ended.'
export const RECOVERY_DELAY_MS = (attempt: number): number => Math.min(30_000, 1_000 * 2 ** (attempt - 1))

/** Records a failed request and what was kept of it, closes its calls, and asks the model to go on. */
export function continued(proposal: Proposal, outcome: Failed): Proposal {
  let next = proposal.add(failedEvent(proposal, outcome))
  if (outcome.partial) next = closeCalls(next.add(responded(next, outcome.partial)), true)
  const { context, state } = next
  const step = (state.run?.step ?? 0) + 1
  const parts = [userPart(CONTINUE, context.now)]
  return next.add(compose(context, { step, callIds: [], parts, threadId: state.identity?.thread ?? '' }))
}

export const failedEvent = (proposal: Proposal, outcome: Failed): EventDraft => ({
  type: 'model.failed/2',
  data: {
    step: proposal.state.run?.step ?? 0,
    code: outcome.code,
    retryable: outcome.retryable,
    error_type: outcome.details.error_type,
    status: outcome.details.status ?? null,
    retry_after_ms: outcome.retryAfterMs ?? null,
  },
})

export function modelFailed(proposal: Proposal, outcome: Failed, code = 'agent_run_failed'): Proposal {
  let next = proposal.add(failedEvent(proposal, outcome))
  if (outcome.partial) next = next.add(responded(next, outcome.partial))
  const message = `The model request failed (${outcome.code}).`
  const { error_type: exception_type, status: status_code } = outcome.details
  const details = { exception_type, ...(status_code === undefined ? {} : { status_code }) }
  return fail(next, { code, message, retryable: outcome.retryable, details })
}
