import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/base/index.ts'
import {
  ContinuationFailure,
  ContinuationRecord,
  type LogContinuationStore,
  PrincipalGrantSnapshot,
  type ProviderPendingContinuation,
  type Resumption,
  resumeContinuation,
  sweepContinuations,
} from '../../src/continuations/index.ts'
import { openThreadlog, type Threadlog } from '../../src/index.ts'
import type { LogBackend } from '../../src/log/index.ts'
import { listThreads } from '../../src/projections/index.ts'
import { type Gate, type HostScope, SCHEMA, WRITES } from './processes/host-calls.ts'

// A host dies at each point of a wait's life; another process finds what it left and brings it on (S1 to S4, S12).

/** A foreign host that stands still at its gate. */
export interface Host {
  must<T = unknown>(call: string, argument?: unknown): Promise<T>
  /** As `must`, for what may never come back. */
  ask(call: string, argument?: unknown): Promise<unknown>
  /** Nothing of it runs any more. */
  die(): Promise<void>
}

/** A log, and hosts on it. */
export interface Scene {
  log: LogBackend
  host(gate: Gate): Promise<Host>
  close(): Promise<void>
}

const session = (sessionId: string, runId: string): HostScope => ({ applicationId: 'shop', userId: 'ann', sessionId, runId })
const [FIRST, SECOND] = [session('first', 'run-1'), session('second', 'run-2')]
const lost = new ContinuationFailure({ code: 'suspension_lost' })
const LEASE_MS = 60_000

/** A sweep with nothing to do. */
const NONE = { expired: 0, armed: 0, ended: 0, dispatched: 0, left: 0 }

interface SweepOptions {
  graceMs?: number
  canResume?: (wait: ProviderPendingContinuation) => boolean
  resume?: (o: Resumption) => Promise<unknown>
}

/** Two running runs, this process's store whose clock can be moved on, and a host that stands still at its gate. */
async function ground(open: () => Promise<Scene>, gate: Gate) {
  const scene = await open()
  let late = 0
  const clock = { ...systemClock, now: () => Date.now() + late }
  const threads: Threadlog = await openThreadlog({ log: scene.log, clock })
  const store: LogContinuationStore = threads.continuationStore()
  for (const scope of [FIRST, SECOND]) await store.beginRun({ scope, framework: 'langgraph' })
  const host = await scene.host(gate)
  const taken: unknown[] = []
  const sweep = ({ graceMs = 0, canResume = () => true, resume }: SweepOptions = {}) =>
    sweepContinuations(store, {
      applicationId: 'shop',
      graceMs,
      lost,
      isResumable: async ({ record }) =>
        (await store.getCheckpoint({ scope: record.scope, checkpointId: record.continuationId })) !== null,
      dispatch: (wait) =>
        resumeContinuation(store, wait, {
          leaseMs: LEASE_MS,
          canResume,
          resume: async (o) => {
            await resume?.(o)
            taken.push(o.record.result)
          },
        }),
    })
  return {
    ...{ threads, store, host, taken, sweep },
    later: (ms: number) => void (late += ms),
    suspend: (scope: HostScope, continuationId: string, externalId: string) =>
      store.suspendContinuation({
        record: new ContinuationRecord({ ...scope, continuationId, provider: 'bank', capability: 'pay', schemaId: SCHEMA }),
        externalId,
      }),
    complete: (result: string) =>
      store.resolveContinuation({ scope: FIRST, provider: 'bank', externalId: 'job-1', schemaId: SCHEMA, result }),
    /** Lets the host do something, and kills it where it stands still. */
    killed: async (call = 'suspend', argument: object = { scope: FIRST, continuationId: 'c1', externalId: 'job-1' }) => {
      void host.ask(call, argument)
      await host.must('reached')
      await host.die()
    },
    get: () => store.getContinuation({ scope: FIRST, continuationId: 'c1' }),
    async [Symbol.asyncDispose]() {
      await threads.close()
      await scene.close()
    },
  }
}

/** @param open each time a log of its own */
export function crashCases(open: () => Promise<Scene>): void {
  describe('a host that is killed', () => {
    it('between reservation and suspension: S12, row 93, another session gets the external id; its own run still runs', async () => {
      await using at = await ground(open, { type: 'reservation.taken/1' })
      const { store, suspend, threads } = at
      const job = { applicationId: 'shop', provider: 'bank', externalId: 'job-1' }
      await at.killed()
      expect(await store.getRun(FIRST)).toMatchObject({ status: 'running', revision: 0 })
      expect(await store.getContinuationByExternalId(job)).toBeNull()
      expect((await suspend(SECOND, 'c2', 'job-1')).continuationId).toBe('c2')
      expect((await store.getContinuationByExternalId(job))?.record.runId).toBe('run-2')
      await expect(suspend(FIRST, 'c1', 'job-1')).rejects.toMatchObject({ reason: 'external_id_taken' })
      expect((await suspend(FIRST, 'c1', 'job-2')).status).toBe('pending')
      // Reservations are no threads.
      await threads.backend.events.barrier()
      const sessions = listThreads(threads.backend.tables).map(({ thread }) => thread)
      expect(sessions.sort()).toEqual(['first', 'second'])
      expect(threads.backend.tables.get('SELECT count(*) AS n FROM waits')).toEqual({ n: 2 })
    })

    it('between suspension and checkpoint: S1, the wait is listed, ends, and its session is free', async () => {
      await using at = await ground(open, { type: 'continuation.suspended/1' })
      const { store, sweep } = at
      await at.killed()
      const [pair] = await store.listPendingContinuations({ applicationId: 'shop', provider: 'bank' })
      expect([pair?.externalId, pair?.record.ready]).toEqual(['job-1', false])
      const next = { scope: session('first', 'run-3'), framework: 'langgraph' } as const
      await expect(store.beginRun(next)).rejects.toMatchObject({ code: 'checkpoint_conflict' })
      expect(await sweep({ graceMs: 60_000 })).toEqual({ ...NONE, left: 1 })
      expect(await sweep()).toEqual({ ...NONE, ended: 1 })
      expect(await at.get()).toMatchObject({ status: 'failed', failure: { code: 'suspension_lost' } })
      expect((await store.getRun(FIRST))?.status).toBe('cancelled')
      expect((await store.beginRun(next)).status).toBe('running')
      expect(await sweep()).toEqual(NONE)
    })

    it('between suspension and checkpoint, and the result came: S1, the run ends and the result stands', async () => {
      await using at = await ground(open, { type: 'continuation.suspended/1' })
      await at.killed()
      await at.complete('early')
      expect(await at.sweep()).toEqual({ ...NONE, ended: 1 })
      expect((await at.store.getRun(FIRST))?.status).toBe('failed')
      expect(await at.get()).toMatchObject({ status: 'completed', result: 'early' })
      expect(at.taken).toEqual([])
    })

    it('between checkpoint and arm: S2, the wait is armed; an early result is dispatched, once', async () => {
      await using at = await ground(open, { type: 'invocation.checkpoint-written/1' })
      await at.killed()
      await at.complete('early')
      // The providers' own list shows what is pending only.
      expect(await at.store.listPendingContinuations({ applicationId: 'shop', provider: 'bank' })).toEqual([])
      const both = await Promise.all([at.sweep(), at.sweep()])
      expect(both.map(({ dispatched }) => dispatched).sort()).toEqual([0, 1])
      expect(at.taken).toEqual(['early'])
      expect(await at.get()).toMatchObject({ status: 'claimed', revision: 3 })
      expect(await at.store.getRun(FIRST)).toMatchObject({ status: 'running', revision: 2 })
    })

    it('between checkpoint and arm, before the result: S2, the wait is armed and the result finds it so', async () => {
      await using at = await ground(open, { type: 'invocation.checkpoint-written/1' })
      await at.killed()
      expect(await at.sweep()).toEqual({ ...NONE, armed: 1 })
      expect(await at.sweep()).toEqual({ ...NONE, left: 1 })
      expect(await at.complete('late')).toMatchObject({ status: 'completed', ready: true, revision: 2 })
      expect(await at.sweep()).toEqual({ ...NONE, dispatched: 1 })
      expect(at.taken).toEqual(['late'])
    })

    it('between result and claim: S3, the outcome is dispatched', async () => {
      await using at = await ground(open, { type: 'continuation.completed/1' })
      await at.host.must('suspend', { scope: FIRST, continuationId: 'c1', externalId: 'job-1' })
      await at.killed('complete', { scope: FIRST, externalId: 'job-1', result: 'paid' })
      expect(await at.sweep()).toEqual({ ...NONE, dispatched: 1 })
      expect(at.taken).toEqual(['paid'])
    })

    /** The host has an armed outcome and dies while it goes on with it. */
    const diesResuming = async (gate: Gate) => {
      const at = await ground(open, gate)
      await at.host.must('suspend', { scope: FIRST, continuationId: 'c1', externalId: 'job-1' })
      await at.complete('paid')
      await at.killed('resume', { scope: FIRST, continuationId: 'c1', leaseMs: LEASE_MS })
      return at
    }

    it('between claim and resume: S4, when its time is over the outcome is dispatched again, once, under the next number', async () => {
      await using at = await diesResuming({ type: 'continuation.claimed/1' })
      expect(await at.get()).toMatchObject({ status: 'claimed', revision: 3 })
      expect(await at.sweep()).toEqual({ ...NONE, left: 1 })
      at.later(LEASE_MS)
      const fences: number[] = []
      const resume = async ({ lease }: Resumption) => void fences.push(lease.fence)
      const both = await Promise.all([at.sweep({ resume }), at.sweep({ resume })])
      expect(both.map(({ dispatched }) => dispatched).sort()).toEqual([0, 1])
      expect([at.taken, fences]).toEqual([['paid'], [4]])
      expect(await at.store.getRun(FIRST)).toMatchObject({ status: 'running', revision: 2 })
      at.later(10 * LEASE_MS)
      expect(await at.sweep()).toEqual(NONE)
    })

    it('between what it did and its acknowledgement: S4, the outcome is dispatched again, on top of that', async () => {
      await using at = await diesResuming({ type: 'continuation.leased/1', acknowledged: true, before: true })
      at.later(LEASE_MS)
      let found: unknown
      const resume = async ({ record, lease }: Resumption) => {
        found = await at.store.getCheckpoint({ scope: record.scope, checkpointId: 'resumed' })
        await at.store.transitionRun({ scope: record.scope, expectedStatus: 'running', status: 'completed', lease })
      }
      expect(await at.sweep({ resume })).toEqual({ ...NONE, dispatched: 1 })
      expect(found).toMatchObject({ payload: { fence: 3 } })
      expect(await at.store.getRun(FIRST)).toMatchObject({ status: 'completed' })
    })

    it('behind its acknowledgement: S4, nothing is dispatched again', async () => {
      await using at = await diesResuming({ type: 'continuation.leased/1', acknowledged: true })
      at.later(10 * LEASE_MS)
      expect(await at.sweep()).toEqual(NONE)
      expect(at.taken).toEqual([])
    })
  })

  // Row 138: the delayed clean-up of an owner that was fenced took away what belonged to its successor.
  it('Row 138: what a host still writes, acknowledges or gives back after its claim was taken over is void', async () => {
    await using at = await ground(open, { type: 'invocation.checkpoint-written/1', before: true })
    const { store, host } = at
    await at.suspend(FIRST, 'c1', 'job-1')
    await store.armContinuation({ scope: FIRST, provider: 'bank', continuationId: 'c1', expectedRevision: 0 })
    await at.complete('paid')
    // Its checkpoint is decided and stands before the log when the time of its claim is over.
    const resumed = host.ask('resume', { scope: FIRST, continuationId: 'c1', leaseMs: LEASE_MS })
    await host.must('reached')
    at.later(LEASE_MS)
    let answers: unknown
    let checkpoint: unknown
    const resume = async () => {
      await host.must('open')
      await resumed
      answers = await host.must('late', { scope: FIRST, lease: { continuationId: 'c1', fence: 3 } })
      checkpoint = await store.getCheckpoint({ scope: FIRST, checkpointId: 'resumed' })
    }
    expect(await at.sweep({ resume })).toEqual({ ...NONE, dispatched: 1 })
    const refusal = (name: string) => (/^(checkpoint|complete|end)/.test(name) ? 'checkpoint_conflict' : 'lease_lost')
    expect(answers).toEqual(Object.fromEntries(WRITES.map((name) => [name, refusal(name)])))
    expect(checkpoint).toBeNull()
    // The successor still holds what it holds, and its acknowledgement counted.
    at.later(10 * LEASE_MS)
    expect(await at.sweep()).toEqual(NONE)
    expect(await at.get()).toMatchObject({ status: 'claimed', revision: 4 })
    const held = { scope: FIRST, lease: { continuationId: 'c1', fence: 4 } }
    await store.transitionRun({ ...held, expectedStatus: 'running', status: 'completed' })
    await host.die()
  })

  it('W4: a process that lacks the driver claims nothing; the next one goes on, with the grants of the suspension (70)', async () => {
    await using at = await ground(open, { type: 'continuation.claimed/1' })
    const { store } = at
    const principalGrants = new PrincipalGrantSnapshot({ permissions: ['pay', 'look'] })
    const record = new ContinuationRecord({
      ...FIRST,
      ...{ continuationId: 'c1', provider: 'bank', capability: 'pay', schemaId: SCHEMA, principalGrants },
    })
    await store.suspendContinuation({ record, externalId: 'job-1' })
    await store.armContinuation({ scope: FIRST, provider: 'bank', continuationId: 'c1', expectedRevision: 0 })
    await at.complete('paid')
    expect(await at.sweep({ canResume: () => false })).toEqual({ ...NONE, left: 1 })
    expect(await at.get()).toMatchObject({ status: 'completed', revision: 2 })
    const principals: unknown[] = []
    const failing = async ({ principal }: Resumption) => {
      principals.push(principal)
      throw new TypeError('no connection')
    }
    // What it throws gives the claim back: no time has to pass.
    expect(await at.sweep({ resume: failing })).toEqual({ ...NONE, left: 1 })
    expect(await at.sweep({ resume: async ({ principal }) => principals.push(principal) })).toEqual({ ...NONE, dispatched: 1 })
    const [first, second] = principals as { id: string; permissions: string[] }[]
    expect([first?.permissions, second?.permissions]).toEqual([principalGrants.permissions, principalGrants.permissions])
    expect(first?.id).not.toBe(second?.id)
    expect(at.taken).toEqual(['paid'])
  })

  it('leaves no other wait behind one that cannot be brought on; whoever sweeps hears why', async () => {
    await using at = await ground(open, { type: 'continuation.suspended/1' })
    await at.killed()
    await at.suspend(SECOND, 'c2', 'job-2')
    const heard: unknown[] = []
    const swept = await sweepContinuations(at.store, {
      ...{ applicationId: 'shop', graceMs: 0, lost },
      isResumable: ({ externalId }) => {
        if (externalId === 'job-1') throw new TypeError('checkpoint of another version')
        return true
      },
      dispatch: async () => {},
      onError: (error) => heard.push(error),
    })
    expect(swept).toEqual({ ...NONE, armed: 1, left: 1 })
    expect(heard).toEqual([new TypeError('checkpoint of another version')])
  })
}
