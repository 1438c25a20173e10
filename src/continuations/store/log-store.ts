import { isThreadlogError, type JsonValue, jsonDigest, Payload } from '../../base/index.ts'
import { type StreamKey, threadStream } from '../../events/index.ts'
import {
  findWait,
  type Proposal,
  pendingOfProvider,
  type ThreadState,
  type ThreadStore,
  type Wait,
  waitByExternalId,
  waitPlace,
} from '../../projections/index.ts'
import { expireDue } from '../expire.ts'
import { extend } from '../extend.ts'
import type { Lease } from '../foreign/holder.ts'
import { continuationRecord, pairOf, pendingPair } from '../foreign/views.ts'
import { arm, cancel, claim, type Meant, notPending, resolve, suspend } from '../foreign/waits.ts'
import { externalIdKey, HUMAN_PROVIDER } from '../ids.ts'
import { durationOrNone, instantOrNull, invalidArgument, jsonValue, nonBlank, page } from '../model/arguments.ts'
import type { AuditOperation, AuditSink } from '../model/audit.ts'
import { ContinuationConflictError, ContinuationValidationError } from '../model/errors.ts'
import { ContinuationFailure } from '../model/failure.ts'
import type { ContinuationRecord, ProviderPendingContinuation } from '../model/record.ts'
import { RunScope, type RunScopeFields } from '../model/scope.ts'
import { apiSource } from '../source.ts'
import { LogLeaseStore, leaseOf, leaseTime } from './log-leases.ts'
import { holderOf, streamOf } from './log-runs.ts'
import type { Unique } from './reservations.ts'
import type { ContinuationStore, PageOf, Resolution, WaitAt } from './store.ts'

export interface LogStoreOptions {
  readonly store: ThreadStore
  /** What audit lines call this log. Default `log`. */
  readonly backend?: string
  readonly audit?: AuditSink | undefined
  /**
   * Refuse an outcome for a wait whose run does not wait for it. Default: it is kept, as the original keeps it, and nothing resumes by it,
   * since a claim asks for a run that waits (docs/decisions/0013).
   */
  readonly onlyAwaited?: boolean
  /** What waits of threadlog's own runs need: their results are judged and validated as everywhere, and a cancel ends their invocation. */
  readonly host?: HostWaits | undefined
}

/** How the waits of threadlog's own runs are resolved and cancelled. */
export interface HostWaits {
  resolve(o: { wait: Wait; outcome: { result: JsonValue } | { failure: ContinuationFailure }; schemaId: string }): Promise<void>
  cancel(o: { stream: StreamKey; failure: ContinuationFailure }): Promise<void>
  /** A host's run has suspended: results may have come before. */
  suspended(o: { stream: StreamKey; continuationId: string }): Promise<void>
}

/** {@link ContinuationStore}, and the runs it belongs to, on the event log: the same events and the same fold as everything else. */
export class LogContinuationStore extends LogLeaseStore implements ContinuationStore {
  readonly #host: HostWaits | undefined
  readonly #onlyAwaited: boolean

  constructor(o: LogStoreOptions) {
    super(o)
    this.#host = o.host
    this.#onlyAwaited = o.onlyAwaited ?? false
  }

  suspendContinuation(o: {
    record: ContinuationRecord
    externalId: string
    fresh?: boolean
    expiresAt?: number | null
    lease?: Lease
  }): Promise<ContinuationRecord> {
    const { record, externalId, fresh = false } = o
    const lease = o.lease && leaseOf(o.lease)
    const deadline = instantOrNull(o.expiresAt, 'expiresAt')
    const key = externalIdKey(record.provider, externalId)
    return this.audited('suspended', async () => {
      if (record.status !== 'pending' || record.ready || record.revision !== 0) throw new ContinuationConflictError('not_new')
      const { scope } = record
      const stream = streamOf(scope)
      await this.check(stream, (proposal) => suspend(proposal, record, externalId, deadline, [], lease))
      if (!fresh && (await this.#isKnown(record.continuationId))) throw new ContinuationConflictError('id_taken')
      const taken = ({ kind }: Unique) => new ContinuationConflictError(kind === 'external_id' ? 'external_id_taken' : 'id_taken')
      const whats = uniqueOf(record, key, fresh)
      const state = await this.reserving(whats, holderOf(scope, record.continuationId), taken, (held) =>
        this.commit(stream, (proposal) => suspend(proposal, record, externalId, deadline, held, lease)),
      )
      await this.#host?.suspended({ stream, continuationId: record.continuationId })
      return this.#record(state, record.continuationId)
    })
  }

  /** True if any wait has this id; random ones are reserved by nobody. */
  async #isKnown(continuationId: string): Promise<boolean> {
    await this.store.backend.events.barrier()
    return waitPlace(this.store.backend.tables, continuationId) !== undefined
  }

  async getContinuation(o: { scope: RunScope | RunScopeFields; continuationId: string }): Promise<ContinuationRecord | null> {
    const found = await this.#find(new RunScope(o.scope), o.continuationId)
    return found && continuationRecord(found.state, found.wait)
  }

  async getProviderContinuation(o: {
    scope: RunScope | RunScopeFields
    provider: string
    continuationId: string
  }): Promise<ProviderPendingContinuation | null> {
    const scope = new RunScope(o.scope)
    nonBlank(o.provider, 'provider')
    nonBlank(o.continuationId, 'continuationId')
    const found = await this.#find(scope, o.continuationId)
    return found?.wait.provider === o.provider ? pairOf(found.state, found.wait) : null
  }

  async getContinuationByExternalId(o: {
    applicationId: string
    provider: string
    externalId: string
  }): Promise<ProviderPendingContinuation | null> {
    nonBlank(o.applicationId, 'applicationId')
    const key = externalIdKey(o.provider, o.externalId)
    return (
      (await this.#lookup(o.applicationId, o.provider, key)) ??
      (await this.#lookupBehindBarrier(o.applicationId, o.provider, key))
    )
  }

  async #lookupBehindBarrier(application: string, provider: string, key: string): Promise<ProviderPendingContinuation | null> {
    await this.store.backend.events.barrier()
    return this.#lookup(application, provider, key)
  }

  /** By its reservation, which stands before the wait does; waits of threadlog's own have none, and are found in the index. */
  async #lookup(application: string, provider: string, key: string): Promise<ProviderPendingContinuation | null> {
    const held = await this.reservations.holder({ kind: 'external_id', application, provider, key })
    const row = held ? undefined : waitByExternalId(this.store.backend.tables, application, provider, key)
    const place = held
      ? { stream: threadStream(held.holder), id: held.holder.id }
      : row && { stream: row.stream, id: row.continuation_id }
    if (!place) return null
    const state = await this.store.load(place.stream)
    const wait = findWait(state, place.id)
    return wait?.externalIdKey === key && wait.provider === provider ? pairOf(state, wait) : null
  }

  async listPendingContinuations(o: PageOf): Promise<ProviderPendingContinuation[]> {
    const { applicationId: application, provider } = o
    nonBlank(application, 'applicationId')
    nonBlank(provider, 'provider')
    const at = page(o)
    await this.store.backend.events.barrier()
    return pendingOfProvider(this.store.backend.tables, { application, provider, ...at }).map(pendingPair)
  }

  /**
   * Ends what is overdue now as failed with code `expired`, whose it may be: the log decides once. Runs go on with that as with any failure.
   * @returns how many waits ended
   */
  async expire(applicationId: string): Promise<number> {
    await this.store.backend.events.barrier()
    let failed: unknown
    const onError = (error: unknown) => (failed ??= error)
    const expired = await expireDue(this.store, {
      application: nonBlank(applicationId, 'applicationId'),
      actor: this.actor,
      onError,
    })
    if (failed !== undefined) throw failed
    return expired
  }

  async extendContinuation(o: {
    applicationId: string
    provider: string
    externalId: string
    ms?: number | undefined
  }): Promise<{ expiresAt: number | null }> {
    const ms = durationOrNone(o.ms, 'ms')
    const { scope, continuationId, provider } = (await this.getContinuationByExternalId(o))?.record ?? {}
    if (!scope || continuationId === undefined || provider === HUMAN_PROVIDER) throw new ContinuationConflictError('unknown')
    const state = await this.commit(streamOf(scope), (proposal) => {
      const wait = findWait(proposal.state, continuationId)
      if (!wait) throw new ContinuationConflictError('unknown')
      if (wait.status !== 'pending') throw notPending(wait)
      return extend(proposal, wait, ms)
    })
    return { expiresAt: findWait(state, continuationId)?.deadline ?? null }
  }

  async resolveContinuation(o: Resolution): Promise<ContinuationRecord> {
    const { provider, schemaId, failure = null } = o
    const value: { result: JsonValue } | { failure: ContinuationFailure } =
      failure === null ? { result: resultOf(o.result) } : { failure: failureOf(failure, o.result) }
    const key = externalIdKey(provider, o.externalId)
    const scope = new RunScope(o.scope)
    const stream = streamOf(scope)
    return this.audited('resolved', async () => {
      const has = (state: ThreadState) => byKey(state, scope.runId, provider, key)
      const { host, wait } = await this.#hostWait(stream, has)
      if (host && wait) {
        await host.resolve({ wait, outcome: value, schemaId })
        return this.#record(await this.store.load(stream), wait.id)
      }
      const resultId = this.store.ids.token()
      const digest = jsonDigest(
        'failure' in value ? { failure: value.failure.toJSON() } : { result: o.submitted ?? value.result },
      )
      const source = apiSource('continuations', resultId)
      let id = ''
      const state = await this.commit(stream, (proposal) => {
        const found = has(proposal.state)
        if (!found) throw new ContinuationConflictError('unknown')
        id = found.id
        const meant = { runId: scope.runId, provider, continuationId: id }
        return resolve(proposal, meant, { schemaId, digest, resultId, source, value }, this.#onlyAwaited)
      })
      return this.#record(state, id)
    })
  }

  claimContinuation(o: WaitAt & { leaseMs?: number }): Promise<ContinuationRecord> {
    const leaseMs = o.leaseMs === undefined ? undefined : leaseTime(o.leaseMs)
    return this.#changed('claimed', o, (proposal, meant) => claim(proposal, meant, o.expectedRevision, leaseMs))
  }

  armContinuation(o: WaitAt): Promise<ContinuationRecord> {
    return this.#changed('armed', o, (proposal, meant) => arm(proposal, meant, o.expectedRevision))
  }

  cancelContinuation(o: WaitAt & { failure: ContinuationFailure }): Promise<ContinuationRecord> {
    const failure = (): ContinuationFailure => {
      if (o.failure instanceof ContinuationFailure) return o.failure
      throw invalidArgument('failure', 'a ContinuationFailure')
    }
    const scope = new RunScope(o.scope)
    const stream = streamOf(scope)
    return this.audited('cancelled', async () => {
      const given = failure()
      const { host, wait } = await this.#hostWait(stream, (state) => findWait(state, o.continuationId))
      if (!host || !wait) return this.#change(scope, o, (proposal, meant) => cancel(proposal, meant, o.expectedRevision, given))
      if (wait.provider !== o.provider || wait.invocationId !== scope.runId) throw new ContinuationConflictError('unknown')
      if (wait.status !== 'pending') throw new ContinuationConflictError('already_resolved')
      if (wait.revision !== o.expectedRevision) throw new ContinuationConflictError('stale_revision')
      await host.cancel({ stream, failure: given })
      return this.#record(await this.store.load(stream), wait.id)
    })
  }

  /** The wait, if it is one of threadlog's own runs. Approvals and answers come by people's way, never by a provider's. */
  async #hostWait(
    stream: StreamKey,
    find: (state: ThreadState) => Wait | undefined,
  ): Promise<{ host?: HostWaits | undefined; wait?: Wait }> {
    const state = await this.look(stream, (s) => find(s) !== undefined)
    const wait = state.identity?.kind === 'harness' ? find(state) : undefined
    if (!wait) return {}
    if (wait.provider === HUMAN_PROVIDER || !this.#host) throw new ContinuationConflictError('host_managed')
    return { host: this.#host, wait }
  }

  #changed(
    operation: AuditOperation,
    at: WaitAt,
    change: (proposal: Proposal, meant: Meant) => Proposal,
  ): Promise<ContinuationRecord> {
    const scope = new RunScope(at.scope)
    return this.audited(operation, () => this.#change(scope, at, change))
  }

  async #change(
    scope: RunScope,
    at: WaitAt,
    change: (proposal: Proposal, meant: Meant) => Proposal,
  ): Promise<ContinuationRecord> {
    const meant = { runId: scope.runId, provider: at.provider, continuationId: at.continuationId }
    const state = await this.commit(streamOf(scope), (proposal) => change(proposal, meant))
    return this.#record(state, at.continuationId)
  }

  async #find(scope: RunScope, continuationId: string): Promise<{ state: ThreadState; wait: Wait } | null> {
    const state = await this.look(streamOf(scope), (s) => findWait(s, continuationId) !== undefined)
    const wait = findWait(state, continuationId)
    return wait?.invocationId === scope.runId ? { state, wait } : null
  }

  #record(state: ThreadState, id: string): ContinuationRecord {
    return continuationRecord(state, findWait(state, id) as Wait)
  }
}

/** What a new wait must be the only one to have: the external id first, whose generation it quotes. */
function uniqueOf(record: ContinuationRecord, key: string, fresh: boolean): Unique[] {
  const { applicationId: application, provider, continuationId: id } = record
  const external: Unique = { kind: 'external_id', application, provider, key }
  return fresh ? [external] : [external, { kind: 'continuation_id', id }]
}

function byKey(state: ThreadState, runId: string, provider: string, key: string): Wait | undefined {
  const fits = (wait: Wait) => wait.externalIdKey === key && wait.provider === provider && wait.invocationId === runId
  for (const wait of state.waits.values()) if (fits(wait)) return wait
  for (const [, wait] of state.closedWaits) if (fits(wait)) return wait
  return undefined
}

/** Bytes of canonical JSON one result of a foreign host's wait may have: a commit holds no more. */
const MAX_FOREIGN_RESULT_BYTES = 786_432

function resultOf(result: unknown): JsonValue {
  let value: JsonValue
  try {
    value = jsonValue(result ?? null)
  } catch (error) {
    if (!isThreadlogError(error, 'invalid_argument')) throw error
    throw new ContinuationValidationError({ path: 'result', expected: error.expected ?? 'a JSON value' })
  }
  if (Payload.of(value).bytes.byteLength > MAX_FOREIGN_RESULT_BYTES)
    throw new ContinuationValidationError({ path: 'result', expected: `at most ${MAX_FOREIGN_RESULT_BYTES} bytes of JSON` })
  return value
}

function failureOf(failure: unknown, result: unknown): ContinuationFailure {
  if (failure instanceof ContinuationFailure && (result === undefined || result === null)) return failure
  throw new ContinuationValidationError({ path: 'failure', expected: 'a ContinuationFailure, and no result beside it' })
}
