import type { JsonValue } from '../../base/index.ts'
import type { ForeignRun, ThreadState, Wait, WaitRow } from '../../projections/index.ts'
import { ContinuationFailure } from '../model/failure.ts'
import { PrincipalGrantSnapshot } from '../model/grants.ts'
import { ContinuationRecord, type ContinuationStatus, type PendingAction, ProviderPendingContinuation } from '../model/record.ts'
import { ResumeArtifact } from '../model/resume.ts'
import type { RunScope } from '../model/scope.ts'

// The public records, made from the fold or from a row of the waits index.

/** A run of a foreign host (continuation spec §1.7). */
export interface RunRecord {
  readonly applicationId: string
  readonly userId: string
  readonly sessionId: string
  readonly runId: string
  readonly framework: string
  readonly status: 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled'
  readonly revision: number
  readonly pendingAction: PendingAction | null
  readonly createdAt: string
  readonly updatedAt: string
}

export const runRecord = (scope: RunScope, run: ForeignRun): RunRecord => ({
  ...{ applicationId: scope.applicationId, userId: scope.userId, sessionId: scope.sessionId, runId: run.runId },
  framework: run.framework,
  status: run.status,
  revision: run.revision,
  pendingAction: run.pendingAction as PendingAction | null,
  createdAt: timeText(run.createdAt, 0),
  updatedAt: timeText(run.updatedAt, run.revision),
})

/** The four statuses of the record. A wait that ended without an outcome is a failed one, and its code says why. */
const STATUS: Record<Wait['status'], ContinuationStatus> = {
  pending: 'pending',
  completed: 'completed',
  failed: 'failed',
  claimed: 'claimed',
  cancelled: 'failed',
  expired: 'failed',
  abandoned: 'failed',
}

export function continuationRecord(state: ThreadState, wait: Wait): ContinuationRecord {
  const { application = '', user = '', thread = '' } = state.identity ?? {}
  return new ContinuationRecord({
    continuationId: wait.id,
    ...{ applicationId: application, userId: user, sessionId: thread, runId: wait.invocationId },
    provider: wait.provider,
    capability: wait.capability,
    schemaId: wait.schemaId,
    resume: wait.resume && ResumeArtifact.parse(wait.resume.value),
    principalGrants: wait.grants && PrincipalGrantSnapshot.parse(wait.grants.value),
    status: STATUS[wait.status],
    ready: wait.ready,
    revision: wait.revision,
    result: wait.outcome?.value?.value ?? null,
    failure: failureOf(wait),
    createdAt: timeText(wait.createdAt, 0),
    updatedAt: timeText(wait.updatedAt, wait.revision),
  })
}

function failureOf(wait: Wait): ContinuationFailure | null {
  const failure = wait.outcome?.failure ?? wait.endedWith
  if (failure) return new ContinuationFailure(failure)
  return STATUS[wait.status] === 'failed' ? new ContinuationFailure({ code: wait.status }) : null
}

export const pairOf = (state: ThreadState, wait: Wait): ProviderPendingContinuation =>
  new ProviderPendingContinuation({
    record: continuationRecord(state, wait),
    externalId: wait.externalId,
    expiresAt: wait.deadline,
  })

/** A pending wait from its row alone, so that a page costs one read. */
export function pendingPair(row: WaitRow): ProviderPendingContinuation {
  const json = (text: string | null): JsonValue => (text === null ? null : (JSON.parse(text) as JsonValue))
  const record = new ContinuationRecord({
    continuationId: row.continuation_id,
    ...{ applicationId: row.application, userId: row.user, sessionId: row.thread, runId: row.invocation_id },
    provider: row.provider,
    capability: row.capability,
    schemaId: row.schema_id,
    resume: row.resume === null ? null : ResumeArtifact.parse(json(row.resume)),
    principalGrants: row.grants === null ? null : PrincipalGrantSnapshot.parse(json(row.grants)),
    ready: row.ready === 1,
    revision: row.revision,
    createdAt: timeText(row.created_at, 0),
    updatedAt: timeText(row.updated_at, row.revision),
  })
  return new ProviderPendingContinuation({ record, externalId: row.external_id, expiresAt: row.deadline })
}

/**
 * UTC with microseconds, as the original writes it; no fraction when it is zero. The log counts milliseconds, so the revision stands in the
 * digits below: what happens within one millisecond still has an order.
 */
function timeText(ms: number, revision: number): string {
  const text = new Date(ms).toISOString()
  const micros = `${text.slice(20, 23)}${String(Math.min(revision, 999)).padStart(3, '0')}`
  return `${text.slice(0, 19)}${micros === '000000' ? '' : `.${micros}`}+00:00`
}
