import { isJsonObject, type JsonObject, type JsonValue, reject, toJson } from '../base/index.ts'
import type { Receipt } from '../continuations/index.ts'
import { type DeferredToolResume, outcomeOf } from '../harness/index.ts'
import { findWait, type ThreadState, type Wait } from '../projections/index.ts'

/** Settles one answer to a wait: the result of an external call as its provider would send it, or a person's decision. */
export type SettleAnswer = (
  wait: Wait,
  answer: { result: JsonValue } | { failure: { code: string; retryable: boolean } },
) => Promise<Receipt>

/** What a failure without a code of its own is recorded as. */
const TOOL_FAILED = { code: 'tool_failed', retryable: false }

/**
 * Answers of a caller to a suspended thread of this log: each completes its wait, as if it had come by its own way.
 * @throws ThreadlogError `conflict` when a wait has been answered otherwise; `deferred_results_invalid` when its validator refuses
 */
export async function answerWaits(settle: SettleAnswer, state: ThreadState, resume: DeferredToolResume): Promise<void> {
  const { requests, results } = resume
  for (const { modelCall, targetCall } of [...requests.calls, ...requests.approvals]) {
    const item = state.run?.items.find(({ model_call_id }) => model_call_id === modelCall.toolCallId)
    const wait = item && findWait(state, item.continuation_id)
    if (!wait) continue
    const id = targetCall.toolCallId
    const answer = wait.item.kind === 'approval' ? decisionOf(results.approvals[id]) : resultValue(results.calls[id])
    const receipt = await settle(wait, answer)
    if (receipt.verdict === 'accepted' || receipt.verdict === 'duplicate') continue
    const code = receipt.verdict === 'invalid' ? 'deferred_results_invalid' : receipt.verdict
    throw reject(code, 'An answer was not accepted.', {
      path: `deferredResume.results.${id}`,
      ...(receipt.expected === undefined ? {} : { expected: receipt.expected }),
      details: { verdict: receipt.verdict, wait: wait.id, ...(receipt.digest === undefined ? {} : { digest: receipt.digest }) },
    })
  }
}

function decisionOf(decision: unknown): { result: JsonValue } {
  const outcome = outcomeOf(decision)
  const approved = decision === true || outcome?.is === 'approved'
  const overrides = outcome?.is === 'approved' && isJsonObject(outcome.overrideArgs) ? outcome.overrideArgs : undefined
  const message = outcome?.is === 'denied' ? outcome.message : undefined
  const result: JsonObject = { approved }
  if (overrides) result['override_args'] = overrides
  if (message !== undefined) result['message'] = message
  return { result }
}

function resultValue(value: unknown): { result: JsonValue } | { failure: { code: string; retryable: boolean } } {
  const outcome = outcomeOf(value)
  if (outcome?.is === 'tool-failed') return { failure: TOOL_FAILED }
  return { result: toJson((outcome?.is === 'tool-return' ? outcome.returnValue : value) ?? null) }
}
