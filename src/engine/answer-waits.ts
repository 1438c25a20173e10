import { isJsonObject, reject, toJson } from '../base/index.ts'
import { approval, denial, type Receipt, type Submission } from '../continuations/index.ts'
import { type DeferredToolResume, outcomeOf } from '../harness/index.ts'
import { findWait, type ThreadState, type Wait } from '../projections/index.ts'

/** Settles one answer to a wait: the result of an external call as its provider would send it, or a person's decision. */
export type SettleAnswer = (wait: Wait, answer: Answer) => Promise<Receipt>
export type Answer = Submission['outcome']

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
    const answer = wait.item.kind === 'approval' ? decisionOf(wait, results.approvals[id]) : resultValue(results.calls[id])
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

function decisionOf(wait: Wait, decision: unknown): Answer {
  const outcome = outcomeOf(decision)
  const approved = decision === true || outcome?.is === 'approved'
  const overrideArgs = outcome?.is === 'approved' && isJsonObject(outcome.overrideArgs) ? outcome.overrideArgs : undefined
  const reason = outcome?.is === 'denied' ? outcome.message : undefined
  const { outcome: answer } = approved
    ? approval(wait.id, overrideArgs === undefined ? {} : { overrideArgs })
    : denial(wait.id, reason === undefined ? {} : { reason })
  return answer
}

function resultValue(value: unknown): Answer {
  const outcome = outcomeOf(value)
  if (outcome?.is === 'tool-failed') return { failure: TOOL_FAILED }
  return { result: toJson((outcome?.is === 'tool-return' ? outcome.returnValue : value) ?? null) }
}
