import type { Lease } from '../foreign/holder.ts'
import type { Principal } from '../model/grants.ts'
import type { ContinuationRecord, ProviderPendingContinuation } from '../model/record.ts'
import { leaseTime } from './log-leases.ts'
import type { LogContinuationStore } from './log-store.ts'

/** What a run goes on with. */
export interface Resumption {
  /** Claimed; with the outcome, and where the framework goes on (`resume`). */
  readonly record: ContinuationRecord
  /** For whom the run goes on: with the permissions it had when it suspended, under a new id; null: nothing was restricted. */
  readonly principal: Principal | null
  /** For what is written for the run from here on. */
  readonly lease: Lease
  /** Aborts when another process has taken over. */
  readonly signal: AbortSignal
}

export interface ResumeOptions {
  /** Milliseconds until others may take the run over; renewed while `resume` works, so no longer than a crash may stay unnoticed. */
  leaseMs: number
  /** True if this process has what the run needs to go on: the driver of its framework, and an artifact that driver can read. Claims nothing if not. */
  canResume(wait: ProviderPendingContinuation): boolean | Promise<boolean>
  /** Goes on with the run. Resolves when the outcome is where no crash loses it; what it throws gives the run back. */
  resume(o: Resumption): Promise<unknown>
}

/**
 * Takes an armed outcome, or takes over one whose holder died with it, and goes on (continuation spec §9.3, 6): first asks whether that is possible
 * here, then claims for a time, renews while it works, acknowledges at the end. At least once, and in order: what an earlier holder still writes is refused.
 * @returns false when it cannot go on here; nothing was claimed
 * @throws ContinuationConflictError another process was first · what `resume` threw
 */
export async function resumeContinuation(
  store: LogContinuationStore,
  wait: ProviderPendingContinuation,
  o: ResumeOptions,
): Promise<boolean> {
  const leaseMs = leaseTime(o.leaseMs)
  if (!(await o.canResume(wait))) return false
  const { scope, provider, continuationId, revision: expectedRevision } = wait.record
  const record = await store.claimContinuation({ scope, provider, continuationId, expectedRevision, leaseMs })
  const held = { scope, continuationId, fence: record.revision }
  const [ended, lost] = [new AbortController(), new AbortController()]
  const renewing = renewed(store, { ...held, leaseMs }, ended.signal).catch((error: unknown) => lost.abort(error))
  const lease = { continuationId, fence: record.revision }
  try {
    await o.resume({ record, principal: record.principalGrants?.restore() ?? null, lease, signal: lost.signal })
    await store.acknowledgeContinuation(held)
  } catch (error) {
    ended.abort()
    await renewing
    // Refused to who has lost it; what it failed with is told, not that.
    await store.releaseContinuation(held).catch(() => {})
    throw error
  } finally {
    ended.abort()
  }
  await renewing
  return true
}

/** Renews a claim three times in its time, until `signal` aborts. */
async function renewed(
  store: LogContinuationStore,
  held: Parameters<LogContinuationStore['renewContinuation']>[0],
  signal: AbortSignal,
): Promise<void> {
  const every = Math.max(1, Math.floor(held.leaseMs / 3))
  while (!signal.aborted) {
    await store.sleep(every, signal)
    if (!signal.aborted) await store.renewContinuation(held)
  }
}
