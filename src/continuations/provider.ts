import { isThreadlogError, type JsonValue, systemClock, systemIds } from '../base/index.ts'
import type { Lease } from './foreign/holder.ts'
import { durationOrNone, instantOrNull, invalidArgument, jsonValue, nonBlank, page } from './model/arguments.ts'
import { ContinuationConflictError, ContinuationError, ContinuationValidationError } from './model/errors.ts'
import { ContinuationFailure } from './model/failure.ts'
import type { PrincipalGrantSnapshot } from './model/grants.ts'
import { ContinuationRecord, type ProviderPendingContinuation } from './model/record.ts'
import type { ResumeArtifact } from './model/resume.ts'
import { RunScope } from './model/scope.ts'
import { checkArgument, externalIdSchema, nameSchema } from './names.ts'
import type { ContinuationStore } from './store/store.ts'

/** The run of a wait; the application is the provider's own. */
export interface RunOf {
  userId: string
  sessionId: string
  runId: string
}

/** Checks an untrusted result. What it returns, or what that resolves to, is what is stored; a throw refuses. It may run many times. */
export type ContinuationValidator = (value: unknown) => unknown

/**
 * The waits of one provider in one application (continuation spec §2.1): a job system, a payment provider, a person's inbox. Arguments are
 * checked before the store is asked; every method throws `invalid_argument` for those that cannot be meant.
 */
export class ContinuationProvider {
  readonly name: string
  readonly applicationId: string
  readonly #store: ContinuationStore
  readonly #newId: () => string
  readonly #deadlineMs: number | undefined
  readonly #now: () => number

  /**
   * @param o.newId makes continuation ids; default 24 random bytes as base64url
   * @param o.deadlineMs milliseconds after which a wait may expire whose suspension says nothing of it; default never
   * @param o.now epoch milliseconds; default the system's clock
   */
  constructor(o: {
    store: ContinuationStore
    applicationId: string
    provider: string
    newId?: () => string
    deadlineMs?: number
    now?: () => number
  }) {
    this.applicationId = nonBlank(o.applicationId, 'applicationId')
    this.name = checkArgument(nameSchema, o.provider, 'provider')
    this.#store = o.store
    this.#newId = o.newId ?? (() => systemIds.continuation())
    this.#deadlineMs = durationOrNone(o.deadlineMs, 'deadlineMs')
    this.#now = o.now ?? systemClock.now
  }

  /**
   * A new wait of a running run, which waits for it from here on.
   * @param o.expiresAt epoch milliseconds from which on the wait may end as failed with code `expired`; null: never
   * @param o.lease under which the run goes on, if its last wait was claimed for a time
   * @throws ContinuationConflictError
   */
  async suspend(
    o: RunOf & {
      externalId: string
      capability: string
      schemaId: string
      resume?: ResumeArtifact | null
      principalGrants?: PrincipalGrantSnapshot | null
      expiresAt?: number | null
      lease?: Lease
    },
  ): Promise<ContinuationRecord> {
    const externalId = checkArgument(externalIdSchema, o.externalId, 'externalId')
    const { userId, sessionId, runId, capability, schemaId, resume = null, principalGrants = null } = o
    const record = new ContinuationRecord({
      continuationId: this.#newId(),
      ...{ applicationId: this.applicationId, userId, sessionId, runId },
      provider: this.name,
      ...{ capability, schemaId, resume, principalGrants },
    })
    const given = o.expiresAt === undefined && this.#deadlineMs !== undefined ? this.#now() + this.#deadlineMs : o.expiresAt
    const expiresAt = instantOrNull(given, 'expiresAt')
    return this.#store.suspendContinuation({
      ...{ record, externalId, fresh: true },
      ...(expiresAt === null ? {} : { expiresAt }),
      ...(o.lease && { lease: o.lease }),
    })
  }

  /** The wait with this external id, in any status and of any run. */
  async lookup(o: { externalId: string }): Promise<ProviderPendingContinuation | null> {
    const externalId = checkArgument(externalIdSchema, o.externalId, 'externalId')
    return this.#store.getContinuationByExternalId({ applicationId: this.applicationId, provider: this.name, externalId })
  }

  /** A wait of a run, in any status and of any provider. */
  async get(o: RunOf & { continuationId: string }): Promise<ContinuationRecord | null> {
    return this.#store.getContinuation({ scope: this.#scope(o), continuationId: o.continuationId })
  }

  /** A wait of a run, of this provider, in any status, with its external id. */
  async getPending(o: RunOf & { continuationId: string }): Promise<ProviderPendingContinuation | null> {
    const { continuationId } = o
    return this.#store.getProviderContinuation({ scope: this.#scope(o), provider: this.name, continuationId })
  }

  /**
   * Pending waits in byte order of their ids, which is no order of time: what is suspended below the cursor meanwhile is found by the next
   * sweep. The end is a page shorter than `limit`.
   * @param o.after the last id of the page before
   * @param o.limit 1 to 1000, default 100
   */
  async listPending(o: { after?: string | null; limit?: number } = {}): Promise<ProviderPendingContinuation[]> {
    return this.#store.listPendingContinuations({ applicationId: this.applicationId, provider: this.name, ...page(o) })
  }

  /**
   * Resolves a wait with a result, once `validate` has accepted it.
   * @throws ContinuationValidationError refused by `validate`, or not JSON; the wait is untouched · ContinuationConflictError
   */
  async complete(
    o: RunOf & { externalId: string; schemaId: string; result: unknown; validate: ContinuationValidator },
  ): Promise<ContinuationRecord> {
    const submitted = jsonOrNone(o.result)
    // The caller may change what it gave while it is checked.
    const result = await validated(o.validate, submitted === undefined ? o.result : jsonOrNone(submitted))
    const externalId = checkArgument(externalIdSchema, o.externalId, 'externalId')
    const { schemaId } = o
    const resolution = { scope: this.#scope(o), provider: this.name, externalId, schemaId, result }
    return this.#store.resolveContinuation(submitted === undefined ? resolution : { ...resolution, submitted })
  }

  /** Resolves a wait with a failure. @throws ContinuationValidationError, ContinuationConflictError */
  async fail(o: RunOf & { externalId: string; schemaId: string; failure: ContinuationFailure }): Promise<ContinuationRecord> {
    const failure = checkFailure(o.failure)
    const externalId = checkArgument(externalIdSchema, o.externalId, 'externalId')
    const { schemaId } = o
    return this.#store.resolveContinuation({ scope: this.#scope(o), provider: this.name, externalId, schemaId, failure })
  }

  /**
   * A sign of life of a long job: its wait has its time again from now on. Send it as often as is convenient; what wins less than a tenth of that time is
   * not written down. In all a wait lasts no longer than 100 times what it was given at first.
   * @param o.ms milliseconds from now, if less than the wait was given will do
   * @returns epoch milliseconds from which on the wait may expire; null: it has no deadline
   * @throws ContinuationConflictError the wait is over, or there is none; the job may stop · ContinuationError `heartbeat_unsupported`
   */
  async heartbeat(o: { externalId: string; ms?: number }): Promise<{ expiresAt: number | null }> {
    const externalId = checkArgument(externalIdSchema, o.externalId, 'externalId')
    const ms = durationOrNone(o.ms, 'ms')
    const { applicationId, name: provider } = this
    if (!this.#store.extendContinuation)
      throw new ContinuationError('heartbeat_unsupported', {
        disposition: 'reject',
        message: 'The store of these continuations has no deadlines that move.',
      })
    return this.#store.extendContinuation({ applicationId, provider, externalId, ms })
  }

  /**
   * Takes the outcome of a resolved, armed wait; its run goes on. One claim succeeds.
   * @param o.leaseMs milliseconds within which to `acknowledge`, else the next one may claim it too, at the revision it has then; default: for good
   * @throws ContinuationConflictError · ContinuationError `lease_unsupported`
   */
  async claim(o: RunOf & { continuationId: string; expectedRevision: number; leaseMs?: number }): Promise<ContinuationRecord> {
    const { continuationId, expectedRevision } = o
    const leaseMs = durationOrNone(o.leaseMs, 'leaseMs')
    if (leaseMs !== undefined) this.#leases()
    if (!Number.isSafeInteger(expectedRevision) || expectedRevision < 1)
      throw invalidArgument('expectedRevision', 'a whole number from 1')
    const at = { scope: this.#scope(o), provider: this.name, continuationId, expectedRevision }
    return this.#store.claimContinuation(leaseMs === undefined ? at : { ...at, leaseMs })
  }

  /**
   * The outcome claimed for a time has arrived where no crash loses it; nobody is given it again.
   * @param o.fence the revision of the claimed record
   * @throws ContinuationConflictError `lease_lost`: another one has taken over; stop · ContinuationError `lease_unsupported`
   */
  async acknowledge(o: RunOf & Lease): Promise<void> {
    const { continuationId, fence } = o
    await this.#leases().acknowledgeContinuation({ scope: this.#scope(o), continuationId, fence })
  }

  /** Says that the run can go on from its checkpoint. @throws ContinuationConflictError */
  async arm(record: ContinuationRecord): Promise<ContinuationRecord> {
    return this.#store.armContinuation(this.#own(record))
  }

  /** Ends a pending wait and its run. @throws ContinuationValidationError, ContinuationConflictError */
  async cancel(o: { record: ContinuationRecord; failure: ContinuationFailure }): Promise<ContinuationRecord> {
    const at = this.#own(o.record)
    return this.#store.cancelContinuation({ ...at, failure: checkFailure(o.failure) })
  }

  #leases() {
    const { acknowledgeContinuation } = this.#store
    if (acknowledgeContinuation) return { acknowledgeContinuation: acknowledgeContinuation.bind(this.#store) }
    throw new ContinuationError('lease_unsupported', {
      disposition: 'reject',
      message: 'The store of these continuations gives claims for good only.',
    })
  }

  #own(record: ContinuationRecord) {
    if (record.applicationId !== this.applicationId || record.provider !== this.name)
      throw new ContinuationConflictError('other_provider')
    const { scope, provider, continuationId, revision: expectedRevision } = record
    return { scope, provider, continuationId, expectedRevision }
  }

  #scope({ userId, sessionId, runId }: RunOf): RunScope {
    return new RunScope({ applicationId: this.applicationId, userId, sessionId, runId })
  }
}

async function validated(validate: ContinuationValidator, value: unknown): Promise<JsonValue> {
  if (typeof validate !== 'function') throw new ContinuationValidationError({ path: 'validate', expected: 'a function' })
  let accepted: unknown
  try {
    accepted = await validate(value)
  } catch {
    // The validator's own words may quote the value.
    throw new ContinuationValidationError({ path: 'result', expected: 'what the validator accepts' })
  }
  try {
    return jsonValue(accepted ?? null)
  } catch (error) {
    if (!isThreadlogError(error, 'invalid_argument')) throw error
    throw new ContinuationValidationError({ path: `result${(error.path ?? '$').slice(1)}`, expected: error.expected ?? 'JSON' })
  }
}

/** What was submitted, where it is JSON. */
function jsonOrNone(value: unknown): JsonValue | undefined {
  try {
    return jsonValue(value ?? null)
  } catch {
    return undefined
  }
}

function checkFailure(failure: unknown): ContinuationFailure {
  if (failure instanceof ContinuationFailure) return failure
  throw new ContinuationValidationError({ path: 'failure', expected: 'a ContinuationFailure' })
}
