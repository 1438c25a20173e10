import { isThreadlogError, reject, retryLater, systemClock } from '../base/index.ts'
import type { Lease } from './foreign/holder.ts'
import { ContinuationConflictError } from './model/errors.ts'
import { ContinuationFailure } from './model/failure.ts'
import { PrincipalGrantSnapshot } from './model/grants.ts'
import type { ContinuationRecord, ProviderPendingContinuation } from './model/record.ts'
import type { ResumeArtifact } from './model/resume.ts'
import type { ContinuationProvider, ContinuationValidator, RunOf } from './provider.ts'
import type { LogContinuationStore } from './store/log-store.ts'
import { type ResumeOptions, type Resumption, resumeContinuation } from './store/resume.ts'

export interface RuntimeOptions {
  store: LogContinuationStore
  provider: ContinuationProvider
  /** How this process goes on with a run whose outcome is here. */
  resume: ResumeOptions
  /** Hears why a run did not go on. Its wait is left to the next sweep; whoever brought the outcome hears nothing of it (W23). */
  onError?(error: unknown, wait: ProviderPendingContinuation): void
}

/**
 * What a host with a loop of its own does around the waits of one provider, on any of its processes (continuation spec §3.2 to §3.6): a suspension that a
 * replay meets again, an outcome by external id alone, a cancel that comes to one end. Everything it knows is in the store, but for the validators.
 */
export class ContinuationRuntime {
  readonly #o: RuntimeOptions
  readonly #validators = new Map<string, ContinuationValidator>()
  readonly #resuming = new Set<Promise<void>>()
  /** Tools that stay in memory, by their wait; called when there is something to look at. */
  readonly #frames = new Map<string, () => void>()

  constructor(options: RuntimeOptions) {
    this.#o = options
  }

  /** The check of results of one schema. Once more with the same function is harmless. @throws ThreadlogError `validator_conflict` */
  register(schemaId: string, validate: ContinuationValidator): void {
    const known = this.#validators.get(schemaId)
    if (known && known !== validate)
      throw reject('validator_conflict', 'The schema has another validator here.', {
        path: 'schemaId',
        hint: 'Register one function for each schema, at the start of the process.',
      })
    this.#validators.set(schemaId, validate)
  }

  /**
   * Suspends a run on a job that was submitted. A replay of the same call meets the wait it made before, whatever has become of that, and is given its
   * record; anything that differs is a conflict.
   * @throws ContinuationConflictError
   */
  async suspend(
    o: RunOf & {
      externalId: string
      capability: string
      schemaId: string
      validate: ContinuationValidator
      resume?: ResumeArtifact | null
      /** For whom the run acts: what it may do is kept, and restored wherever it goes on; null: nothing is restricted. */
      principal?: { permissions: readonly string[] } | null
      expiresAt?: number | null
      lease?: Lease
    },
  ): Promise<ContinuationRecord> {
    const { validate, principal = null, ...wait } = o
    this.register(o.schemaId, validate)
    const principalGrants = PrincipalGrantSnapshot.capture(principal)
    const meant = { ...wait, principalGrants }
    const before = await this.#replayed(meant)
    if (before) return before
    try {
      return await this.#o.provider.suspend(meant)
    } catch (error) {
      const same = isConflict(error, 'external_id_taken', 'run_not_running') && (await this.#replayed(meant))
      if (same) return same
      throw error
    }
  }

  /** The wait that an earlier pass of the same call made; null when there is none with this external id. */
  async #replayed(o: Parameters<ContinuationProvider['suspend']>[0]): Promise<ContinuationRecord | null> {
    const found = await this.#o.provider.lookup(o)
    if (!found) return null
    const { record } = found
    const isSame =
      record.userId === o.userId &&
      record.sessionId === o.sessionId &&
      record.runId === o.runId &&
      record.capability === o.capability &&
      record.schemaId === o.schemaId &&
      isEqual(record.resume, o.resume ?? null) &&
      isEqual(record.principalGrants, o.principalGrants ?? null)
    if (isSame) return record
    throw new ContinuationConflictError('external_id_taken')
  }

  /** Says that the run can go on from its checkpoint; if the outcome came first, it goes on here. @throws ContinuationConflictError */
  async arm(record: ContinuationRecord): Promise<ContinuationRecord> {
    const armed = await this.#armed(record)
    if (armed.status === 'completed' || armed.status === 'failed') await this.#goOn(armed)
    return armed
  }

  /**
   * Arms a wait and keeps its tool in memory until the outcome is here; then `use` goes on with it, and no driver is asked (§3.2, attached live frames). Behind
   * it stands an ordinary wait: if this process dies, or gives the tool up, whoever finds the outcome next resumes the run by its driver. Where another
   * process was first, the tool hears so and lets go of what it holds (W22).
   * @param use as {@link ResumeOptions.resume}: the claim is renewed while it works; `record.failure` is for it to raise
   * @param o.pollMs milliseconds between two looks at what other processes have brought; default 200
   * @throws ContinuationConflictError `already_claimed`, `cancelled`, `expired`, `unknown` · the reason of `signal` · what `use` threw
   */
  async attach<T>(
    record: ContinuationRecord,
    use: (o: Resumption) => T | Promise<T>,
    o: { signal?: AbortSignal; pollMs?: number } = {},
  ): Promise<T> {
    const { provider, store, resume } = this.#o
    let poke = () => {}
    this.#frames.set(record.continuationId, () => poke())
    try {
      const armed = await this.#armed(record)
      for (;;) {
        const poked = new Promise<void>((resolve) => (poke = resolve))
        o.signal?.throwIfAborted()
        const wait = await provider.getPending(armed)
        if (!wait) throw new ContinuationConflictError('unknown')
        const { status } = wait.record
        if (status === 'completed' || status === 'failed') {
          let used: { value: T } | undefined
          const taken = async (resumption: Resumption) => void (used = { value: await use(resumption) })
          await resumeContinuation(store, wait, { ...resume, canResume: () => true, resume: taken })
          return (used as unknown as { value: T }).value
        }
        if (status !== 'pending') throw new ContinuationConflictError(status === 'claimed' ? 'already_claimed' : 'cancelled')
        await Promise.race([poked, sleep(o.pollMs ?? POLL_MS, o.signal)])
      }
    } finally {
      this.#frames.delete(record.continuationId)
    }
  }

  /** Only an outcome can come between suspension and arming, so that one retry is enough (§2.4). */
  async #armed(record: ContinuationRecord): Promise<ContinuationRecord> {
    try {
      return await this.#o.provider.arm(record)
    } catch (error) {
      if (!isConflict(error)) throw error
      const now = await this.#o.provider.get(record)
      if (!now) throw error
      return now.ready ? now : this.#o.provider.arm(now)
    }
  }

  /**
   * An outcome by its external id, checked by the validator of the schema the wait has.
   * @throws ThreadlogError `not_found`, `validator_unavailable` (disposition `retry`) · ContinuationValidationError, ContinuationConflictError
   */
  async complete(o: { externalId: string; result: unknown }): Promise<ContinuationRecord> {
    const { record } = await this.#found(o.externalId)
    const validate = this.#validators.get(record.schemaId)
    if (!validate)
      throw retryLater('validator_unavailable', 'This process has no validator for the schema of the wait.', {
        path: 'schemaId',
        hint: 'Register it, or bring the result to a process that has it. The wait is as it was.',
      })
    const { userId, sessionId, runId, schemaId } = record
    const done = await this.#o.provider.complete({ userId, sessionId, runId, schemaId, ...o, validate })
    if (done.ready) await this.#goOn(done)
    return done
  }

  /** @throws ThreadlogError `not_found` · ContinuationConflictError */
  async fail(o: { externalId: string; code: string }): Promise<ContinuationRecord> {
    const { record } = await this.#found(o.externalId)
    const { userId, sessionId, runId, schemaId } = record
    const failure = new ContinuationFailure({ code: o.code })
    const done = await this.#o.provider.fail({ userId, sessionId, runId, schemaId, externalId: o.externalId, failure })
    if (done.ready) await this.#goOn(done)
    return done
  }

  async #found(externalId: string): Promise<ProviderPendingContinuation> {
    const found = await this.#o.provider.lookup({ externalId })
    if (found) return found
    throw reject('not_found', 'There is no wait with that external id.', { path: 'externalId' })
  }

  /**
   * Ends a wait and its run (§3.6). Cancelled before with the same code is as good; armed meanwhile is tried once more; an outcome that came first
   * stands. @throws ContinuationConflictError
   */
  async cancel(record: ContinuationRecord, code: string): Promise<ContinuationRecord> {
    const failure = new ContinuationFailure({ code })
    const { provider } = this.#o
    try {
      return await provider.cancel({ record, failure })
    } catch (error) {
      if (!isConflict(error) || error.reason === 'other_provider') throw error
      const now = await provider.get(record)
      if (!now || (now.revision === record.revision && now.status === 'pending')) throw error
      if (now.status === 'pending') return provider.cancel({ record: now, failure })
      const isSame = now.status === 'failed' && isEqual(now.failure, failure)
      const run = isSame && (await this.#o.store.getRun(now.scope))
      if (run && run.status === 'cancelled' && run.pendingAction === null) return now
      throw error
    }
  }

  /** Resolves when nothing goes on here that an outcome has set going. */
  async idle(): Promise<void> {
    while (this.#resuming.size > 0) await Promise.all(this.#resuming)
  }

  async #goOn(record: ContinuationRecord): Promise<void> {
    const frame = this.#frames.get(record.continuationId)
    if (frame) return frame()
    const wait = await this.#o.provider.getPending(record)
    if (!wait) return
    const resuming = resumeContinuation(this.#o.store, wait, this.#o.resume)
      .then(() => {})
      // Of two processes that see an armed outcome one claims it; the other has nothing to tell.
      .catch((error: unknown) => (isConflict(error) ? undefined : this.#o.onError?.(error, wait)))
      .finally(() => this.#resuming.delete(resuming))
    this.#resuming.add(resuming)
  }
}

/** Milliseconds between two looks of a tool that stays in memory. */
const POLL_MS = 200

/** Ends with the time or with the signal. */
const sleep = (ms: number, signal: AbortSignal | undefined): Promise<void> => systemClock.sleep(ms, signal)

const isEqual = (a: { toJSON(): unknown } | null, b: { toJSON(): unknown } | null): boolean =>
  JSON.stringify(a?.toJSON() ?? null) === JSON.stringify(b?.toJSON() ?? null)

const isConflict = (error: unknown, ...reasons: string[]): error is ContinuationConflictError =>
  isThreadlogError(error, 'continuation_conflict') &&
  (reasons.length === 0 || reasons.includes((error as ContinuationConflictError).reason))
