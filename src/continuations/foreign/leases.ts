import { type ClaimLease, findWait, type Proposal, type ThreadState, type Wait } from '../../projections/index.ts'
import { ContinuationConflictError } from '../model/errors.ts'
import type { Lease } from './holder.ts'
import { ownRun } from './runs.ts'

// A claim may be for a time (continuation spec §9.3, 6). Its holder says when the run really goes on; if it never does, another one takes the claim
// over, under the next revision of the wait. That revision fences: what the run writes quotes it, and what an older holder still writes is refused.

/** True if another one may take the claim over at `now`. */
export const isLapsed = (lease: ClaimLease | undefined, now: number): lease is ClaimLease & { until: number } =>
  lease !== undefined && lease.until !== null && lease.until <= now

/** The event that gives a claim its time; null: acknowledged. */
const leasedUntil = (continuation_id: string, until: number | null) => ({
  type: 'continuation.leased/1' as const,
  data: { continuation_id, until },
})

/** What a claim adds that is for a time. */
export const leaseFrom = ({ context }: Proposal, continuationId: string, leaseMs: number) =>
  leasedUntil(continuationId, context.now + leaseMs)

/** Claims once more what its holder has not acknowledged in time; undefined when nobody may. */
export function takeOver(proposal: Proposal, wait: Wait, leaseMs: number): Proposal | undefined {
  const { lease } = ownRun(proposal.state, wait.runId)
  if (lease?.continuationId !== wait.id || !isLapsed(lease, proposal.context.now)) return undefined
  return proposal.add(
    { type: 'continuation.claimed/1', data: { continuation_id: wait.id, revision: wait.revision + 1 } },
    leaseFrom(proposal, wait.id, leaseMs),
  )
}

/** The holder's claim, if it still is; undefined when its run has ended or waits again, which is more than an acknowledgement. */
function held(state: ThreadState, runId: string, { continuationId, fence }: Lease): ClaimLease | undefined {
  const wait = findWait(state, continuationId)
  if (wait?.invocationId !== runId) throw new ContinuationConflictError('unknown')
  const { lease } = ownRun(state, runId)
  if (wait.status !== 'claimed' || wait.revision !== fence) throw new ContinuationConflictError('lease_lost')
  return lease?.continuationId === continuationId ? lease : undefined
}

/** The outcome has arrived where a crash does not lose it: nobody else is given it. Once more is as good. @throws ContinuationConflictError */
export function acknowledge(proposal: Proposal, runId: string, lease: Lease): Proposal {
  const own = held(proposal.state, runId, lease)
  return !own || own.until === null ? proposal : proposal.add(leasedUntil(lease.continuationId, null))
}

/** More time for the holder, from now on. @throws ContinuationConflictError */
export function renew(proposal: Proposal, runId: string, lease: Lease, leaseMs: number): Proposal {
  const own = held(proposal.state, runId, lease)
  if (!own || own.until === null) return proposal
  return proposal.add(leasedUntil(lease.continuationId, Math.max(own.until, proposal.context.now + leaseMs)))
}

/** The holder cannot go on: the next one may at once. @throws ContinuationConflictError */
export function release(proposal: Proposal, runId: string, lease: Lease): Proposal {
  const own = held(proposal.state, runId, lease)
  if (!own || own.until === null) throw new ContinuationConflictError('already_acknowledged')
  if (isLapsed(own, proposal.context.now)) return proposal
  return proposal.add(leasedUntil(lease.continuationId, proposal.context.now))
}
