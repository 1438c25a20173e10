import {
  activeRun,
  awaitedWait,
  type Proposal,
  type ThreadStore,
  unacknowledgedWait,
  waitingSessions,
} from '../../projections/index.ts'
import type { Lease } from '../foreign/holder.ts'
import { acknowledge, isLapsed, release, renew } from '../foreign/leases.ts'
import { pairOf } from '../foreign/views.ts'
import { durationOrNone, invalidArgument, nonBlank } from '../model/arguments.ts'
import { type AuditOperation, type AuditSink, auditContinuation } from '../model/audit.ts'
import type { ProviderPendingContinuation } from '../model/record.ts'
import { RunScope } from '../model/scope.ts'
import { LogRunStore, streamOf } from './log-runs.ts'
import type { LeaseAt } from './store.ts'

/** What somebody may have to do something about. */
export interface Waiting {
  readonly wait: ProviderPendingContinuation
  /** Milliseconds since it suspended. */
  readonly ageMs: number
  /** Claimed, and its holder still has time to acknowledge. */
  readonly isHeld: boolean
}

/** Claims for a time, what crashes leave of them, and the audit of all that is done to continuations. */
export class LogLeaseStore extends LogRunStore {
  readonly #backend: string
  readonly #audit: AuditSink | undefined

  constructor(o: { readonly store: ThreadStore; readonly backend?: string; readonly audit?: AuditSink | undefined }) {
    super(o)
    this.#backend = o.backend ?? 'log'
    this.#audit = o.audit
  }

  /**
   * The outcome that was claimed for a time has arrived where no crash loses it: nobody is given it again. A run that ends or suspends again says as
   * much. Repeating it is harmless. @throws ContinuationConflictError `lease_lost`: another process has taken over
   */
  acknowledgeContinuation(o: LeaseAt): Promise<void> {
    return this.#held('acknowledged', o, (proposal, runId) => acknowledge(proposal, runId, leaseOf(o)))
  }

  /** More time to acknowledge: `leaseMs` from now. @throws ContinuationConflictError `lease_lost` */
  renewContinuation(o: LeaseAt & { leaseMs: number }): Promise<void> {
    const leaseMs = leaseTime(o.leaseMs)
    return this.#held('renewed', o, (proposal, runId) => renew(proposal, runId, leaseOf(o), leaseMs))
  }

  /** Gives a claim up: the next process may take it over at once. @throws ContinuationConflictError `lease_lost`, `already_acknowledged` */
  releaseContinuation(o: LeaseAt): Promise<void> {
    return this.#held('released', o, (proposal, runId) => release(proposal, runId, leaseOf(o)))
  }

  /** What the runs of foreign hosts wait for now, or have claimed and not acknowledged, in the order their sessions were opened. */
  async *waiting(applicationId: string): AsyncIterable<Waiting> {
    const { backend, clock } = this.store
    await backend.events.barrier()
    const limit = 100
    for (let after = 0, size = limit; size === limit; ) {
      const page = waitingSessions(backend.tables, nonBlank(applicationId, 'applicationId'), { limit, after })
      for (const { stream } of page) {
        const state = await this.store.load(stream)
        const wait = awaitedWait(state) ?? unacknowledgedWait(state)
        if (!wait) continue
        const lease = state.foreign && activeRun(state.foreign)?.lease
        const isHeld = wait.status === 'claimed' && !isLapsed(lease, clock.now())
        yield { wait: pairOf(state, wait), ageMs: clock.now() - wait.createdAt, isHeld }
      }
      size = page.length
      after = page.at(-1)?.id ?? after
    }
  }

  /** As the clock of this store counts. */
  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return this.store.clock.sleep(ms, signal)
  }

  async #held(operation: AuditOperation, o: LeaseAt, change: (proposal: Proposal, runId: string) => Proposal): Promise<void> {
    const scope = new RunScope(o.scope)
    await this.audited(operation, () => this.commit(streamOf(scope), (proposal) => change(proposal, scope.runId)))
  }

  /** One audit line for every attempt that reached the log. */
  protected async audited<T>(operation: AuditOperation, work: () => Promise<T>): Promise<T> {
    try {
      const done = await work()
      auditContinuation(this.#audit, { operation, outcome: 'committed', backend: this.#backend })
      return done
    } catch (error) {
      auditContinuation(this.#audit, { operation, outcome: 'failed', backend: this.#backend })
      throw error
    }
  }
}

/** How long a claim is for. @throws ThreadlogError `invalid_argument` */
export function leaseTime(value: unknown): number {
  const ms = durationOrNone(value as number | undefined, 'leaseMs')
  if (ms === undefined) throw invalidArgument('leaseMs', 'a whole number of milliseconds above 0')
  return ms
}

/** @throws ThreadlogError `invalid_argument` */
export function leaseOf({ continuationId, fence }: Lease): Lease {
  if (!Number.isSafeInteger(fence)) throw invalidArgument('fence', 'the revision of the claimed record')
  return { continuationId: nonBlank(continuationId, 'continuationId'), fence }
}
