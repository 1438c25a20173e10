import assert from 'node:assert/strict'
import { isThreadlogError, systemIds } from '../../base/index.ts'
import {
  ContinuationProvider,
  ContinuationRecord,
  type ContinuationStore,
  type Framework,
  type PendingAction,
  RunScope,
} from '../../continuations/index.ts'

/**
 * What a store can do beside the common rules:
 * - `replicas`: opened several times, all of them see and change the same
 * - `durable`: what was acknowledged is there after the store is opened again
 * - `reasons`: a conflict says why (`details.reason`), and whether an earlier outcome equals the one that was brought (`details.same`)
 * - `guarded`: only a suspension makes a run wait for a continuation, and only a new record (pending, not ready, revision 0) is suspended
 * - `leases`: a claim may be for a time (`leaseMs`), acknowledged or taken over (`acknowledgeContinuation`)
 */
export type ContinuationTrait = 'replicas' | 'durable' | 'reasons' | 'guarded' | 'leases'

/** What the suite looks at in a run. */
export interface RunView {
  readonly status: 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled'
  readonly revision: number
  readonly pendingAction: PendingAction | null
}

type Status = RunView['status']

/** A store under test: the nine operations, and the runs that its waits belong to. `LogContinuationStore` is one. */
export interface ContinuationHost extends ContinuationStore {
  /** A new run; again with the same scope and framework, the run as it is. Refuses by code `checkpoint_conflict`. */
  beginRun(o: { scope: RunScope; framework: Framework }): Promise<RunView>
  getRun(scope: RunScope): Promise<RunView | null>
  /** Refuses by code `checkpoint_conflict`, `not_found` or `invalid_argument`. */
  transitionRun(o: {
    scope: RunScope
    expectedStatus: Status
    status: Status
    pendingAction?: PendingAction | null
    lease?: { continuationId: string; fence: number }
  }): Promise<RunView>
  deleteRun(scope: RunScope): Promise<void>
}

/** One place where continuations are kept, empty at first. */
export interface ContinuationPlace {
  /** Opens a store on it; with `replicas` also while others are open, with `durable` also after they were closed. */
  open(): Promise<{ store: ContinuationHost; close(): Promise<void> }>
  /** Takes everything away; every opened store is closed by then. */
  remove(): Promise<void>
}

export interface ContinuationSubject {
  name: string
  traits: readonly ContinuationTrait[]
  create(): Promise<ContinuationPlace>
}

export interface ContinuationCase {
  /** Begins with the numbers of the cases of the continuation spec §8 that it stands for. */
  name: string
  /** The trait it needs. */
  needs?: ContinuationTrait
  run(bench: Bench): Promise<void>
}

export const RUN = new RunScope({ applicationId: 'reports', userId: 'user-1', sessionId: 'session-1', runId: 'run-1' })
export const OTHER = new RunScope({ ...RUN, sessionId: 'session-2', runId: 'run-2' })
export const SCHEMA = 'report-result/v1'
export const CAPABILITY = 'workflow.run'

/** The scope with some of its parts replaced. */
export const scopeWith = (change: Partial<RunScope>, scope = RUN): RunScope => new RunScope({ ...scope, ...change })

/** What a case works with. */
export class Bench {
  readonly store: ContinuationHost
  /** Whether the store names the reasons of its conflicts. */
  readonly #reasons: boolean
  readonly #open: () => Promise<ContinuationHost>
  readonly #reopen: () => Promise<ContinuationHost>

  constructor(o: {
    store: ContinuationHost
    traits: readonly ContinuationTrait[]
    open: () => Promise<ContinuationHost>
    reopen: () => Promise<ContinuationHost>
  }) {
    this.store = o.store
    this.#reasons = o.traits.includes('reasons')
    this.#open = o.open
    this.#reopen = o.reopen
  }

  /** Another store on the same place (`replicas`). */
  replica = (): Promise<ContinuationHost> => this.#open()

  /** The place, after all stores on it were closed (`durable`). */
  reopened = (): Promise<ContinuationHost> => this.#reopen()

  provider(o: { store?: ContinuationHost; provider?: string; applicationId?: string } = {}): ContinuationProvider {
    const { store = this.store, provider = 'hatchet', applicationId = RUN.applicationId } = o
    return new ContinuationProvider({ store, applicationId, provider })
  }

  begin(scope = RUN): Promise<RunView> {
    return this.store.beginRun({ scope, framework: 'langgraph' })
  }

  suspend(o: { externalId?: string; scope?: RunScope; provider?: ContinuationProvider } = {}): Promise<ContinuationRecord> {
    const { externalId = 'job-1', scope = RUN, provider = this.provider({ applicationId: scope.applicationId }) } = o
    return provider.suspend({ ...runOf(scope), externalId, capability: CAPABILITY, schemaId: SCHEMA })
  }

  /** A run that waits. */
  async waiting(externalId = 'job-1', scope = RUN): Promise<ContinuationRecord> {
    await this.begin(scope)
    return this.suspend({ externalId, scope })
  }

  complete(
    result: unknown,
    o: { externalId?: string; scope?: RunScope; provider?: ContinuationProvider; schemaId?: string } = {},
  ) {
    const { externalId = 'job-1', scope = RUN, provider = this.provider(), schemaId = SCHEMA } = o
    return provider.complete({ ...runOf(scope), externalId, schemaId, result, validate: (value) => value })
  }

  claim({ continuationId, revision, scope }: ContinuationRecord, provider = this.provider()): Promise<ContinuationRecord> {
    return provider.claim({ ...runOf(scope), continuationId, expectedRevision: revision })
  }

  /** A wait whose outcome can be claimed. */
  async claimable(result: unknown = { rows: 3 }): Promise<ContinuationRecord> {
    await this.waiting()
    return this.provider().arm(await this.complete(result))
  }

  /** The wait as it is now. */
  async now({ continuationId, scope }: ContinuationRecord, store = this.store): Promise<ContinuationRecord> {
    const record = await store.getContinuation({ scope, continuationId })
    assert.ok(record, 'the wait is there')
    return record
  }

  /** Refused as a conflict, and nothing of the wait has changed. */
  async unchanged(record: ContinuationRecord, work: () => Promise<unknown>, reason?: string): Promise<void> {
    const before = await this.now(record)
    await this.conflict(work(), reason)
    assert.deepEqual((await this.now(record)).toJSON(), before.toJSON())
  }

  /** @param reason compared where the store names reasons; @returns what the conflict says beside */
  async conflict(work: Promise<unknown>, reason?: string): Promise<Readonly<Record<string, unknown>>> {
    const details = await refused(work, 'continuation_conflict')
    if (this.#reasons && reason !== undefined) assert.equal(details['reason'], reason)
    return details
  }
}

export const runOf = ({ userId, sessionId, runId }: RunScope) => ({ userId, sessionId, runId })

/** A new record as a store gets it. */
export const recordOf = (scope: RunScope = RUN, provider = 'hatchet'): ContinuationRecord =>
  new ContinuationRecord({
    ...scope,
    continuationId: systemIds.continuation(),
    provider,
    capability: CAPABILITY,
    schemaId: SCHEMA,
  })

/** Refused with one of the codes. @returns the details of the error */
export async function refused(work: Promise<unknown>, ...codes: string[]): Promise<Readonly<Record<string, unknown>>> {
  try {
    await work
  } catch (error) {
    if (isThreadlogError(error, ...codes)) return error.details
    throw error
  }
  assert.fail(`not refused: ${codes.join(', ')}`)
}

/** How many of several succeeded; the others must be conflicts. */
export async function winners(...works: Promise<unknown>[]): Promise<number> {
  const settled = await Promise.allSettled(works)
  for (const one of settled)
    if (one.status === 'rejected' && !isThreadlogError(one.reason, 'continuation_conflict', 'checkpoint_conflict'))
      throw one.reason
  return settled.filter(({ status }) => status === 'fulfilled').length
}

/** Runs one case on a fresh place and cleans up behind it. */
export async function runCase(subject: ContinuationSubject, { run }: ContinuationCase): Promise<void> {
  const place = await subject.create()
  const opened: { close(): Promise<void> }[] = []
  const open = async () => {
    const one = await place.open()
    opened.push(one)
    return one.store
  }
  const close = async () => {
    for (const one of opened.splice(0).reverse()) await one.close()
  }
  const reopen = async () => {
    await close()
    return open()
  }
  try {
    await run(new Bench({ store: await open(), traits: subject.traits, open, reopen }))
  } finally {
    await close()
    await place.remove()
  }
}
