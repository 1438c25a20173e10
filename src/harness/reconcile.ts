import { isJsonObject, type JsonValue, Payload, reject, toJson } from '../base/index.ts'
import { isoTimestamp, toolReturnPart } from '../messages/index.ts'
import { type Proposal, unknownOutcome } from '../projections/index.ts'
import { PAYLOAD_LIMIT } from './drafts.ts'

/** What became of a call whose outcome was unknown. */
export type Reconciliation = { result: JsonValue } | { failure: { code: string; retryable?: boolean } }

/**
 * Settles a call whose outcome nobody knew (state spec §4.4) by what a person or a host found out. The model reads it from the next request on.
 * @throws ThreadlogError `outcome_invalid`, `call_not_unknown`, `input_too_large`, `json_invalid`
 */
export function reconcile(proposal: Proposal, o: { callId: string; outcome: Reconciliation; reason: string }): Proposal {
  const { state, context } = proposal
  const found = unknownOutcome(state, o.callId)
  if (!found)
    throw reject('call_not_unknown', 'The call has no unknown outcome.', {
      path: 'callId',
      expected: 'a call whose latest outcome in this log is unknown',
      hint: '`threadlog show` lists the calls and their outcomes.',
    })
  const { outcome } = o
  checkOutcome(outcome)
  const isFailure = 'failure' in outcome
  const content = 'failure' in outcome ? { error: { retryable: false, ...outcome.failure } } : toJson(outcome.result)
  const part = toolReturnPart({
    tool_name: toolNameOf(found.settled.part.value),
    tool_call_id: o.callId,
    content,
    outcome: isFailure ? 'failed' : 'success',
    timestamp: isoTimestamp(context.now),
  })
  const payload = Payload.of(part as unknown as JsonValue)
  if (payload.bytes.byteLength > PAYLOAD_LIMIT)
    throw reject('input_too_large', 'The outcome is too large for one event.', {
      path: 'outcome',
      expected: `at most ${PAYLOAD_LIMIT} bytes of JSON`,
    })
  return proposal.add({
    type: 'tool.reconciled/1',
    data: { call_id: o.callId, settlement: isFailure ? 'failed' : 'returned', part: payload, reason: o.reason },
  })
}

function checkOutcome(outcome: unknown): void {
  const { result, failure } = isJsonObject(outcome) ? outcome : {}
  const code = isJsonObject(failure) ? failure['code'] : undefined
  if ((result === undefined) !== (failure === undefined) && (failure === undefined || (typeof code === 'string' && code !== '')))
    return
  throw reject('outcome_invalid', 'This is no outcome.', {
    path: 'outcome',
    expected: 'either `{ result }` or `{ failure: { code, retryable? } }`',
  })
}

const toolNameOf = (part: JsonValue): string => String((part as { tool_name?: string }).tool_name ?? '')
