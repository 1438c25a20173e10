import { ThreadlogError } from '../../base/index.ts'

/**
 * Why an operation on a continuation met a state it was not for. `unknown` is all that an outsider learns: there is no such wait, or it
 * belongs to another scope, provider or application, or has another schema.
 */
export type ConflictReason =
  | 'unknown'
  | 'already_resolved'
  | 'already_claimed'
  | 'already_armed'
  | 'cancelled'
  | 'expired'
  | 'stale_revision'
  | 'not_resolved'
  | 'not_armed'
  | 'run_not_running'
  | 'run_not_waiting'
  | 'id_taken'
  | 'external_id_taken'
  | 'other_provider'
  | 'not_new'
  | 'host_managed'
  | 'lease_lost'
  | 'already_acknowledged'

/** What a caller can do about each reason. */
const HINTS: Record<ConflictReason, string> = {
  unknown: 'Check scope, provider, external id and schema id.',
  already_resolved: 'Somebody resolved it before. `details.same` says whether with the outcome given here.',
  already_claimed: 'Its run has taken the outcome.',
  already_armed: 'It is ready; nothing is left to do.',
  cancelled: 'The wait was cancelled.',
  expired: 'Its time was over before an outcome came.',
  stale_revision: 'Read the record again and decide on what it says now.',
  not_resolved: 'Claim it when its outcome is known.',
  not_armed: 'Arm it first.',
  run_not_running: 'Only a running run can suspend.',
  run_not_waiting: 'The run is not waiting for this continuation.',
  id_taken: 'Use another continuation id.',
  external_id_taken: 'The external id belongs to another wait until its run is deleted.',
  other_provider: 'Use the provider and the application the record was made by.',
  not_new: 'Suspend a new record: pending, not ready, revision 0.',
  host_managed: 'threadlog arms and claims the waits of its own agents.',
  lease_lost: 'Another process has taken the claim over. Stop, and write nothing more.',
  already_acknowledged: 'The run goes on with the outcome; there is nothing to give back.',
}

/** Every failure of a continuation that is not a wrong argument. */
export class ContinuationError extends ThreadlogError {}

/** The state of the wait or of its run does not allow the operation: somebody else was first, or it is not the caller's. */
export class ContinuationConflictError extends ContinuationError {
  readonly reason: ConflictReason

  /** @param o.same an earlier outcome equals the one given; `o.digest` is the digest of the outcome that stands */
  constructor(reason: ConflictReason, o: { same?: boolean; digest?: string } = {}) {
    super('continuation_conflict', {
      disposition: 'reject',
      message: 'The continuation is not in a state for this.',
      hint: HINTS[reason],
      details: { reason, ...o },
    })
    this.reason = reason
  }
}

/** A result or failure that the wait cannot take; nothing was written. */
export class ContinuationValidationError extends ContinuationError {
  constructor(o: { path?: string; expected?: string; hint?: string } = {}) {
    super('continuation_invalid', { disposition: 'reject', message: 'The value is refused; nothing was written.', ...o })
  }
}

/** Runs and checkpoints: the status, owner or revision is not the one the caller counted on. */
export class CheckpointConflictError extends ThreadlogError {
  constructor(message: string, o: { hint?: string; details?: Record<string, string | number> } = {}) {
    super('checkpoint_conflict', { disposition: 'reject', message, ...o })
  }
}
