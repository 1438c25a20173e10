import { isThreadlogError } from '../../base/index.ts'
import type { ContinuationFailure } from '../model/failure.ts'
import { ProviderPendingContinuation } from '../model/record.ts'
import type { LogContinuationStore } from './log-store.ts'

export interface SweepOptions {
  applicationId: string
  /**
   * Whether the run can go on from a checkpoint that was written since it suspended. Asked of waits that were never armed; the host knows under which id
   * it would have written one.
   */
  isResumable(wait: ProviderPendingContinuation): boolean | Promise<boolean>
  /**
   * Takes an armed outcome: checks that the run can go on here, then claims it, then goes on, as `resumeContinuation` does. Also one that was claimed for a
   * time and not acknowledged. False: not here. What it throws leaves the wait to the next sweep.
   */
  dispatch(wait: ProviderPendingContinuation): Promise<unknown>
  /** What a wait ends with whose run cannot go on. */
  lost: ContinuationFailure
  /** Milliseconds within which a living process arms what it has suspended; younger waits are left alone. */
  graceMs: number
  /** Hears what `isResumable` or `dispatch` threw; the sweep goes on. */
  onError?(error: unknown, wait: ProviderPendingContinuation): void
}

/** What one sweep did, in numbers of waits; `left`: still waiting for an outcome, too young, held by others, changed by them meanwhile, or failed. */
export interface Swept {
  /** Whose time was over. They count again by what became of them then. */
  expired: number
  armed: number
  ended: number
  dispatched: number
  left: number
}

/**
 * Brings on what crashes left of a host's waits (continuation spec §3.3, §9.3): what is overdue has failed; one that was never armed is armed if its run can go on, else it ends and
 * its session is free; an outcome that nobody has claimed, or whose claim was for a time that is over, is dispatched. Any process may sweep, at its start and now and then: each change is decided
 * by the log, and one that another process made first is left to it.
 */
export async function sweepContinuations(store: LogContinuationStore, o: SweepOptions): Promise<Swept> {
  const expired = await store.expire(o.applicationId).catch((error: unknown) => ({ error }))
  const swept: Swept = { expired: typeof expired === 'number' ? expired : 0, armed: 0, ended: 0, dispatched: 0, left: 0 }
  for await (const { wait, ageMs, isHeld } of store.waiting(o.applicationId))
    try {
      swept[await one(store, wait, !isHeld && (wait.record.ready || ageMs >= o.graceMs), o)]++
    } catch (error) {
      swept.left++
      if (!isThreadlogError(error, 'continuation_conflict', 'checkpoint_conflict', 'not_found')) o.onError?.(error, wait)
    }
  // What kept one wait from ending keeps no other from going on.
  if (typeof expired !== 'number') throw expired.error
  return swept
}

/** One wait; an outcome that is armed here is dispatched at once. */
async function one(
  store: LogContinuationStore,
  wait: ProviderPendingContinuation,
  isDue: boolean,
  o: SweepOptions,
): Promise<keyof Swept> {
  if (!isDue) return 'left'
  const armed = wait.record.ready ? wait : await bring(store, wait, o)
  if (armed === 'ended') return 'ended'
  if (armed.record.status === 'pending') return armed === wait ? 'left' : 'armed'
  return (await o.dispatch(armed)) === false ? 'left' : 'dispatched'
}

/** Arms an unarmed wait, or ends it. */
async function bring(
  store: LogContinuationStore,
  wait: ProviderPendingContinuation,
  o: SweepOptions,
): Promise<ProviderPendingContinuation | 'ended'> {
  const { scope, provider, continuationId, status, revision: expectedRevision } = wait.record
  const at = { scope, provider, continuationId, expectedRevision }
  if (await o.isResumable(wait))
    return new ProviderPendingContinuation({
      record: await store.armContinuation(at),
      externalId: wait.externalId,
      expiresAt: wait.expiresAt,
    })
  if (status === 'pending') await store.cancelContinuation({ ...at, failure: o.lost })
  else await store.transitionRun({ scope, expectedStatus: 'waiting', status: 'failed' })
  return 'ended'
}
