import type { Proposal, Wait } from '../projections/index.ts'

/** How much longer than it was given at first a wait may last by heartbeats, as a factor. */
const LONGEST = 100
/** A beat that would win less than this share of a wait's time is heard, and not written down. */
const WORTH = 10

/** The deadline after a heartbeat at `now`, which asks for `ms` more; null for a wait that has all the time in the world. */
export function extendedDeadline({ item, deadline, createdAt }: Wait, now: number, ms?: number): number | null {
  if (item.deadline === null || deadline === null) return null
  const given = Math.max(1, item.deadline - createdAt)
  const wanted = Math.min(now + Math.min(ms ?? given, given), createdAt + LONGEST * given)
  return wanted - deadline >= given / WORTH ? wanted : deadline
}

/**
 * A sign of life of the job behind a pending wait (W12): its deadline moves to as far from now as it was when the wait began, or `ms`, if that is less.
 * It never moves back, and in all no further than 100 times that. So a wait has no more than 1,000 such events, however often its job beats.
 */
export function extend(proposal: Proposal, wait: Wait, ms?: number): Proposal {
  const deadline = extendedDeadline(wait, proposal.context.now, ms)
  if (deadline === null || deadline === wait.deadline) return proposal
  return proposal.add({ type: 'continuation.extended/1', data: { continuation_id: wait.id, deadline } })
}
