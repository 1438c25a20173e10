import { isThreadlogError, Payload } from '../base/index.ts'
import type { Owner } from '../events/index.ts'
import { type Proposal, threadStatus } from '../projections/index.ts'
import type { Agent } from './agent.ts'
import { refuseResume } from './begin.ts'
import { fail } from './plan.ts'

/**
 * True for a fault that the same decision would meet again: of the agent's definition, of what the model said, of a limit. Conditions of
 * the log, and a thread that stands still, are none.
 */
export function isHopeless(error: unknown): boolean {
  if (!isThreadlogError(error)) return true
  return (
    error.disposition === 'reject' &&
    !error.code.startsWith('log_') &&
    error.code !== 'thread_quarantined' &&
    error.code !== 'closed'
  )
}

const MESSAGE = 'The run could not go on: a decision about it failed.'

/**
 * Ends a run about which nothing can be decided, so that it is not tried for ever: a run in progress and one that cannot begin fail, a
 * resume is refused and the suspension stands. Undefined when the thread knows nothing of the run.
 */
export function giveUp(
  proposal: Proposal,
  run: { runId: string; agent: Agent; owner: Owner },
  error: unknown,
): Proposal | undefined {
  const cause = isThreadlogError(error) ? error.code : 'unexpected'
  const { state } = proposal
  const taken = state.run?.runId === run.runId && state.run.status === 'running' ? state.run : undefined
  // Another attempt has it: what failed here is no longer of interest.
  if (taken && taken.attempt > (proposal.context.attempt ?? 0)) return undefined
  if (taken) return fail(proposal, { code: 'agent_run_failed', message: MESSAGE, details: { cause } })
  if (state.requested.some(({ runId }) => runId === run.runId)) {
    const failure = { code: 'agent_run_failed', message: MESSAGE, retryable: false }
    return proposal.add({ type: 'run.failed/1', data: { run_id: run.runId, failure, details: Payload.of({ cause }) } })
  }
  if (threadStatus(state) !== 'resolved') return undefined
  return refuseResume(proposal, run.runId, run.agent, run.owner, { code: 'resume_failed', message: MESSAGE, details: { cause } })
}
