import type { JsonValue } from '../../base/index.ts'
import type { Lease } from '../foreign/holder.ts'
import type { ContinuationFailure } from '../model/failure.ts'
import type { ContinuationRecord, ProviderPendingContinuation } from '../model/record.ts'
import type { RunScope, RunScopeFields } from '../model/scope.ts'

/** One wait, as the operations that change it name it. */
export interface WaitAt {
  scope: RunScope | RunScopeFields
  provider: string
  continuationId: string
  expectedRevision: number
}

/** A claim of a run's wait that is for a time. */
export interface LeaseAt extends Lease {
  scope: RunScope | RunScopeFields
}

/** A page of a provider's pending waits. */
export interface PageOf {
  applicationId: string
  provider: string
  /** The last id of the page before. */
  after?: string | null
  /** 1 to 1000, default 100. */
  limit?: number
}

/** The outcome of one wait, as its provider names it. */
export interface Resolution {
  scope: RunScope | RunScopeFields
  provider: string
  externalId: string
  schemaId: string
  result?: unknown
  failure?: ContinuationFailure | null
  /** What was submitted, if that is not `result`: its digest is kept. */
  submitted?: JsonValue
}

/**
 * Where continuations are kept: nine operations, all or nothing each (continuation spec §7.6). Anything with these methods will do. Each
 * refuses by `ContinuationConflictError`, wrong arguments by `invalid_argument`.
 */
export interface ContinuationStore {
  /**
   * A new wait: pending, not ready, revision 0; its run goes from running to waiting.
   * @param o.fresh the id is random, nobody else can have it
   * @param o.expiresAt epoch milliseconds from which on it may end as failed with code `expired`; default never
   * @param o.lease under which the run goes on, if its last wait was claimed for a time
   */
  suspendContinuation(o: {
    record: ContinuationRecord
    externalId: string
    fresh?: boolean
    expiresAt?: number | null
    lease?: Lease
  }): Promise<ContinuationRecord>
  getContinuation(o: { scope: RunScope | RunScopeFields; continuationId: string }): Promise<ContinuationRecord | null>
  getProviderContinuation(o: {
    scope: RunScope | RunScopeFields
    provider: string
    continuationId: string
  }): Promise<ProviderPendingContinuation | null>
  getContinuationByExternalId(o: {
    applicationId: string
    provider: string
    externalId: string
  }): Promise<ProviderPendingContinuation | null>
  /** Pending ones in byte order of their ids, behind `after`. */
  listPendingContinuations(o: PageOf): Promise<ProviderPendingContinuation[]>
  /** Completes, or fails with `failure`; `ready` stays as it is. */
  resolveContinuation(o: Resolution): Promise<ContinuationRecord>
  /**
   * @param o.leaseMs milliseconds within which the holder acknowledges, or another one may claim the wait again at the revision it has then; default: the
   * claim is for good. A store without `acknowledgeContinuation` knows no other.
   */
  claimContinuation(o: WaitAt & { leaseMs?: number }): Promise<ContinuationRecord>
  acknowledgeContinuation?(o: LeaseAt): Promise<void>
  renewContinuation?(o: LeaseAt & { leaseMs: number }): Promise<void>
  releaseContinuation?(o: LeaseAt): Promise<void>
  /**
   * Heartbeat of the job behind a pending wait, in any run: it has its time again from now on, or `ms`, if that is less. A store without this has no
   * deadlines that move.
   */
  extendContinuation?(o: {
    applicationId: string
    provider: string
    externalId: string
    ms?: number | undefined
  }): Promise<{ expiresAt: number | null }>
  armContinuation(o: WaitAt): Promise<ContinuationRecord>
  cancelContinuation(o: WaitAt & { failure: ContinuationFailure }): Promise<ContinuationRecord>
}

const METHODS = [
  'suspendContinuation',
  'getContinuation',
  'getProviderContinuation',
  'getContinuationByExternalId',
  'listPendingContinuations',
  'resolveContinuation',
  'claimContinuation',
  'armContinuation',
  'cancelContinuation',
] as const

/** True for anything that has the nine operations. */
export const isContinuationStore = (value: unknown): value is ContinuationStore =>
  typeof value === 'object' &&
  value !== null &&
  METHODS.every((name) => typeof (value as Record<string, unknown>)[name] === 'function')
