import { type JsonValue, Payload } from '../../base/index.ts'
import type { EventDraft, Source } from '../../events/index.ts'
import { findWait, type Proposal, type ThreadState, type Wait } from '../../projections/index.ts'
import { externalIdKey } from '../ids.ts'
import { type ConflictReason, ContinuationConflictError } from '../model/errors.ts'
import type { ContinuationFailure } from '../model/failure.ts'
import type { ContinuationRecord } from '../model/record.ts'
import { isHolder, type Lease } from './holder.ts'
import { leaseFrom, takeOver } from './leases.ts'
import { isWithdrawn, moved, ownRun, type Reserved } from './runs.ts'

// What may happen to a wait of a foreign host: table 2.2 of the continuation spec and its guards. Pure.

const conflict = (reason: ConflictReason) => new ContinuationConflictError(reason)

/** A new wait; its run waits for it from here on. @throws ContinuationConflictError */
export function suspend(
  proposal: Proposal,
  record: ContinuationRecord,
  externalId: string,
  deadline: number | null,
  held: readonly Reserved[],
  lease?: Lease,
): Proposal {
  const run = proposal.state.foreign?.runs.get(record.runId)
  if (run?.status !== 'running') throw conflict('run_not_running')
  if (!isHolder(run, lease)) throw conflict('lease_lost')
  if (findWait(proposal.state, record.continuationId)) throw conflict('id_taken')
  if (held.some((reservation) => isWithdrawn(proposal.state, reservation))) throw conflict('external_id_taken')
  return proposal.for(run.runId, 1).add(
    {
      type: 'continuation.suspended/1',
      data: {
        continuation_id: record.continuationId,
        provider: record.provider,
        capability: record.capability,
        schema_id: record.schemaId,
        external_id: externalId,
        external_id_key: externalIdKey(record.provider, externalId),
        resume: record.resume && Payload.of(record.resume.toJSON()),
        grants: record.principalGrants && Payload.of(record.principalGrants.toJSON()),
        generation: held[0]?.generation ?? 0,
        deadline,
      },
    },
    moved(run, 'waiting', record.pendingAction),
  )
}

/** Which wait is meant, as its caller knows it. */
export interface Meant {
  runId: string
  provider: string
  continuationId: string
}

/** @throws ContinuationConflictError `unknown` */
export function ownWait(state: ThreadState, { runId, provider, continuationId }: Meant): Wait {
  const wait = findWait(state, continuationId)
  if (wait?.invocationId === runId && wait.provider === provider) return wait
  throw conflict('unknown')
}

const ENDED: Partial<Record<Wait['status'], ConflictReason>> = {
  completed: 'already_resolved',
  failed: 'already_resolved',
  claimed: 'already_claimed',
  cancelled: 'cancelled',
  expired: 'expired',
  abandoned: 'cancelled',
}

/** Why a wait is not pending any more; tells its caller whether the outcome is the one it brought. */
export function notPending(wait: Wait, digest?: string): ContinuationConflictError {
  const reason = ENDED[wait.status] ?? 'unknown'
  const stands = wait.outcome?.digest
  return new ContinuationConflictError(
    reason,
    stands === undefined ? {} : { digest: stands, ...(digest === undefined ? {} : { same: stands === digest }) },
  )
}

export interface Outcome {
  readonly schemaId: string
  /** Digest of the outcome as it was brought. */
  readonly digest: string
  readonly resultId: string
  readonly source: Source
  readonly value: { result: JsonValue } | { failure: ContinuationFailure }
}

/** @throws ContinuationConflictError */
export function resolve(proposal: Proposal, meant: Meant, o: Outcome, onlyAwaited: boolean): Proposal {
  const { state } = proposal
  const wait = ownWait(state, meant)
  if (wait.schemaId !== o.schemaId) throw conflict('unknown')
  if (wait.status !== 'pending') throw notPending(wait, o.digest)
  if (onlyAwaited && !isAwaited(state, wait)) throw conflict('run_not_waiting')
  const { digest, resultId: result_id, source } = o
  const common = { continuation_id: wait.id, revision: wait.revision + 1, result_id, digest, source }
  return proposal.add(
    'failure' in o.value
      ? { type: 'continuation.failed/1', data: { ...common, failure: o.value.failure.toJSON() } }
      : { type: 'continuation.completed/1', data: { ...common, value: Payload.of(o.value.result) } },
  )
}

/** True while the run of the wait waits for it. A run of threadlog itself waits for all of its batch. */
function isAwaited(state: ThreadState, wait: Wait): boolean {
  if (!state.foreign) return state.run?.waitIds.includes(wait.id) === true
  const run = state.foreign.runs.get(wait.runId)
  return run?.status === 'waiting' && run.pendingAction?.actionId === wait.id
}

/** The wait at the revision its caller decided on. */
function current(state: ThreadState, meant: Meant, expectedRevision: number): Wait {
  const wait = ownWait(state, meant)
  if (!state.foreign) throw conflict('host_managed')
  if (wait.revision === expectedRevision) return wait
  throw wait.status === 'claimed' ? notPending(wait) : conflict('stale_revision')
}

/** @throws ContinuationConflictError */
export function arm(proposal: Proposal, meant: Meant, expectedRevision: number): Proposal {
  const wait = current(proposal.state, meant, expectedRevision)
  if (wait.ready) throw conflict(wait.status === 'claimed' ? 'already_claimed' : 'already_armed')
  return proposal.add({ type: 'continuation.armed/1', data: next(wait) })
}

/** @param leaseMs how long its holder has to acknowledge; none: the claim is for good, as in the original. @throws ContinuationConflictError */
export function claim(proposal: Proposal, meant: Meant, expectedRevision: number, leaseMs?: number): Proposal {
  const { state } = proposal
  const wait = current(state, meant, expectedRevision)
  const taken = wait.status === 'claimed' && leaseMs !== undefined ? takeOver(proposal, wait, leaseMs) : undefined
  if (taken) return taken
  if (wait.status === 'pending') throw conflict('not_resolved')
  if (wait.status !== 'completed' && wait.status !== 'failed' && wait.status !== 'expired') throw notPending(wait)
  if (!wait.ready) throw conflict('not_armed')
  if (!isAwaited(state, wait)) throw conflict('run_not_waiting')
  const claimed = proposal.add({ type: 'continuation.claimed/1', data: next(wait) }, moved(ownRun(state, wait.runId), 'running'))
  return leaseMs === undefined ? claimed : claimed.add(leaseFrom(proposal, wait.id, leaseMs))
}

/** Ends a pending wait and its run. @throws ContinuationConflictError */
export function cancel(proposal: Proposal, meant: Meant, expectedRevision: number, failure: ContinuationFailure): Proposal {
  const { state } = proposal
  const wait = current(state, meant, expectedRevision)
  if (wait.status !== 'pending') throw notPending(wait)
  if (!isAwaited(state, wait)) throw conflict('run_not_waiting')
  const ended: EventDraft = { type: 'continuation.cancelled/1', data: { ...next(wait), failure: failure.toJSON() } }
  return proposal.add(ended, moved(ownRun(state, wait.runId), 'cancelled'))
}

const next = (wait: Wait) => ({ continuation_id: wait.id, revision: wait.revision + 1 })
