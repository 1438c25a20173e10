import { COMMIT_LIMITS } from '../events/index.ts'
import type { Proposal } from '../projections/index.ts'
import { recordedOptions } from './begin.ts'
import { hasUncomposedAnswers } from './caller-answers.ts'
import type { HookOutcome } from './capabilities/index.ts'
import { settle, settleUnknown } from './drafts.ts'
import type { Executed, Start } from './executed.ts'
import { HookFailure, hookFailing } from './hook-failure.ts'
import { fail } from './plan.ts'
import { openBatchCalls, retryOf } from './plan-calls.ts'

export interface Finished {
  start: Start
  executed: Executed
  /** Of a hook behind it. */
  failure?: HookFailure | undefined
}

/** How many outcomes one commit can hold, at least one. */
export function fitting(finished: readonly Finished[]): number {
  let bytes = 0
  const end = finished.findIndex(
    ({ executed }) => (bytes += executed.is === 'returned' ? executed.bytes : 0) > COMMIT_LIMITS.bytes / 2,
  )
  return end < 0 ? finished.length : Math.max(1, end)
}

/** A job was submitted under an id for which another wait stands: nobody could tell their results apart. */
export function idTaken(proposal: Proposal, { callId }: { callId: string }): Proposal {
  const { state, context } = proposal
  const call = openBatchCalls(state).find(({ tool_call_id }) => tool_call_id === callId)
  if (!call) return proposal
  const number = state.batch?.calls.get(callId)?.dispatch?.number ?? 0
  const content = { error: { code: 'external_id_taken', retryable: false } }
  return proposal.add(settle(context, { callId, toolName: call.tool_name, number, settlement: 'failed', content }))
}

/** The settlements of finished calls; a hook that failed ends the run, and so does a throw when the options of the run say so. */
export function record(proposal: Proposal, finished: readonly Finished[]): Proposal {
  let threw: { start: Start; errorName: string } | undefined
  const strict = recordedOptions(proposal.state.run?.options).toolErrors === 'throw'
  for (const { start, executed } of finished) {
    const { context, state } = proposal
    const known = state.batch?.calls.get(start.callId)
    const common = { callId: start.callId, toolName: start.tool.name, number: start.number }
    if (executed.is === 'missed' || executed.is === 'deferred' || known?.settled) continue
    if (executed.is === 'retried') {
      const retry = retryOf(state.run, start.tool.name, 'model_retry')
      proposal = proposal.add(settle(context, { ...common, settlement: 'retried', content: executed.content, retry }))
    } else if (executed.is === 'prevented') {
      proposal = proposal.add(settle(context, { ...common, settlement: 'failed', content: HookFailure.content }))
    } else if (executed.is !== 'threw') {
      const { is: settlement, content } = executed
      const metadata = executed.is === 'returned' ? executed.metadata : undefined
      const settling = { ...common, settlement, content }
      proposal = proposal.add(settle(context, metadata === undefined ? settling : { ...settling, metadata }))
    } else if (strict) {
      threw = { start, errorName: executed.errorName }
      if (!hasUncomposedAnswers(state))
        proposal = proposal.add(settleUnknown(context, start.callId, start.tool.name, known, 'threw'))
    } else {
      const content = { error: { code: 'tool_threw', type: executed.errorName, retryable: false } }
      proposal = proposal.add(settle(context, { ...common, settlement: 'failed', content }))
    }
  }
  const failure = hookFailure(finished)
  if (failure) return fail(proposal, hookFailing(failure))
  if (!threw) return proposal
  const details = { tool: threw.start.tool.name, call_id: threw.start.callId, error_type: threw.errorName }
  return fail(proposal, { code: 'tool_threw', message: 'A tool threw an exception.', details })
}

/** The first hook that failed around these calls. */
export const hookFailure = (finished: readonly Finished[]): HookFailure | undefined =>
  finished.flatMap(({ executed, failure }) => (executed.is === 'prevented' ? executed.failure : (failure ?? [])))[0]

/** What hooks are told of a call; undefined if it has no outcome of its own. */
export function outcomeOf(executed: Executed): HookOutcome | undefined {
  const { is: settlement } = executed
  if (settlement !== 'returned' && settlement !== 'failed' && settlement !== 'denied' && settlement !== 'retried')
    return undefined
  return { settlement, content: executed.content }
}
