import type { Source } from '../events/index.ts'
import { findWait, STALE_BRANCH, type ThreadState, type Wait } from '../projections/index.ts'
import type { Judgement } from './judgement.ts'
import type { Submission } from './result.ts'

/** What the way in entitles the submitter to (R18). */
export interface Authority {
  allows(provider: string): boolean
}

export interface JudgedThread {
  readonly state: ThreadState
  /** An event of the thread cannot be folded (R7). */
  readonly quarantined: boolean
}

/**
 * The verdict on a result, first match wins (design §6, rows 4 to 15): pure, so that it can be made again whenever the thread has
 * moved. `accepted` means that only the validator (row 16) and the append stand between the result and the wait.
 * @param thread the thread of the addressed wait; undefined when there is no such wait, which the caller asks the log before
 *   believing
 */
export function judge(
  thread: JudgedThread | undefined,
  continuationId: string | undefined,
  submission: Submission,
  { authority, source }: { authority: Authority; source: Source },
): Judgement {
  if (!authority.allows(submission.provider))
    return {
      verdict: 'forbidden',
      code: 'provider_not_allowed',
      path: '$.provider',
      expected: 'a provider this way in is open to',
    }
  const wait = thread && continuationId !== undefined ? findWait(thread.state, continuationId) : undefined
  // In quarantine the fold may have stopped before the wait.
  if (!wait || !thread) return { verdict: thread?.quarantined ? 'quarantined' : 'unknown' }
  if (!isInScope(thread.state, wait, submission)) return { verdict: 'wrong-scope' }
  if (isRecorded(wait, submission, source)) return { verdict: 'accepted', recorded: true }
  if (thread.quarantined) return { verdict: 'quarantined' }
  if (submission.schema_id !== undefined && submission.schema_id !== wait.schemaId)
    return { verdict: 'schema-mismatch', code: 'schema_mismatch', path: '$.schema_id', expected: wait.schemaId }
  if (wait.outcome) {
    const { digest } = wait.outcome
    return { verdict: digest === submission.digest ? 'duplicate' : 'conflict', digest }
  }
  // One without an outcome that its host has claimed had expired before.
  if (wait.status === 'claimed') return { verdict: 'expired' }
  if (wait.status === 'abandoned' && wait.endedWith?.code === STALE_BRANCH) return { verdict: 'stale-branch' }
  if (wait.status === 'cancelled' || wait.status === 'expired' || wait.status === 'abandoned') return { verdict: wait.status }
  if (thread.state.invocations.has(wait.invocationId)) return { verdict: 'late' }
  if (submission.proposal_digest !== undefined && submission.proposal_digest !== wait.item.proposal_digest)
    return { verdict: 'proposal-changed', code: 'proposal_changed', path: '$.proposal_digest', expected: CURRENT_PROPOSAL }
  return { verdict: 'accepted' }
}

const CURRENT_PROPOSAL = 'the digest of the proposal as it stands; look at it again'

/** The wait's id is a capability within its provider; the application is checked when quoted. */
const isInScope = (state: ThreadState, wait: Wait, { provider, application_id, address }: Submission): boolean =>
  wait.provider === provider &&
  (application_id === undefined || application_id === state.identity?.application) &&
  (!('external_id' in address) || address.external_id === wait.externalId)

/** Row 7: this very submission is what answered the wait. */
function isRecorded(wait: Wait, submission: Submission, source: Source): boolean {
  const outcome = wait.outcome
  if (!outcome) return false
  if (source.topic !== null && sameSource(outcome.source, source)) return true
  if (outcome.digest !== submission.digest) return false
  return sameSource(outcome.source, source) || (submission.result_id !== undefined && submission.result_id === outcome.resultId)
}

/** A recreated topic counts its offsets again, so the record time is part of the coordinate. */
const sameSource = (a: Source, b: Source): boolean =>
  a.cluster === b.cluster &&
  a.topic === b.topic &&
  a.partition === b.partition &&
  a.offset === b.offset &&
  a.record_time === b.record_time &&
  a.api === b.api &&
  a.command_id === b.command_id
