import { describe, expect, it } from 'vitest'
import { ContinuationFailure, ContinuationRecord, sweepContinuations } from '../../src/continuations/index.ts'
import type { EventType } from '../../src/events/index.ts'
import { openThreadlog } from '../../src/index.ts'
import { listThreads } from '../../src/projections/index.ts'
import { Child } from '../support/processes/child.ts'
import { outsider, places } from '../support/processes/place.ts'

// A host's process is killed at each point of a wait's life; another process finds what it left and brings it on (S1 to S3, S12).

const place = places()
const session = (sessionId: string, runId: string) => ({ applicationId: 'shop', userId: 'ann', sessionId, runId })
const [FIRST, SECOND] = [session('first', 'run-1'), session('second', 'run-2')]
const lost = new ContinuationFailure({ code: 'suspension_lost' })

/** A log with two running runs, this process's store on it, and a host that stands still after an event. */
async function ground(after: EventType) {
  const { file, log } = place()
  const threads = await openThreadlog({ log })
  const store = threads.continuationStore()
  for (const scope of [FIRST, SECOND]) await store.beginRun({ scope, framework: 'langgraph' })
  const host = await Child.start('host.ts', { file, after })
  const bank = { applicationId: 'shop', provider: 'bank' }
  const taken: unknown[] = []
  const sweep = (graceMs = 0) =>
    sweepContinuations(store, {
      applicationId: 'shop',
      graceMs,
      lost,
      isResumable: async ({ record }) =>
        (await store.getCheckpoint({ scope: record.scope, checkpointId: record.continuationId })) !== null,
      dispatch: async ({ record }) => {
        const { scope, provider, continuationId, revision: expectedRevision } = record
        const claimed = await store.claimContinuation({ scope, provider, continuationId, expectedRevision })
        taken.push(claimed.result)
      },
    })
  const suspend = (scope: typeof FIRST, continuationId: string, externalId: string) => {
    const record = new ContinuationRecord({
      ...scope,
      continuationId,
      provider: 'bank',
      capability: 'pay',
      schemaId: 'result/v1',
    })
    return store.suspendContinuation({ record, externalId })
  }
  const complete = (result: string) =>
    store.resolveContinuation({ scope: FIRST, provider: 'bank', externalId: 'job-1', schemaId: 'result/v1', result })
  /** Lets the host suspend, and kills it where it stands still. */
  const killed = async (call = 'suspend', argument: object = { scope: FIRST, continuationId: 'c1', externalId: 'job-1' }) => {
    void host.ask(call, argument)
    await host.must('reached')
    await host.kill()
  }
  return { file, threads, store, host, bank, taken, sweep, suspend, complete, killed }
}

/** A sweep with nothing to do. */
const NONE = { expired: 0, armed: 0, ended: 0, dispatched: 0, left: 0 }

describe('a host that is killed', () => {
  it('between reservation and suspension: S12, row 93, another session gets the external id; its own run still runs', async () => {
    const { file, threads, store, suspend, killed } = await ground('reservation.taken/1')
    await killed()
    expect(await store.getRun(FIRST)).toMatchObject({ status: 'running', revision: 0 })
    expect(await store.getContinuationByExternalId({ applicationId: 'shop', provider: 'bank', externalId: 'job-1' })).toBeNull()
    expect((await suspend(SECOND, 'c2', 'job-1')).continuationId).toBe('c2')
    const found = await store.getContinuationByExternalId({ applicationId: 'shop', provider: 'bank', externalId: 'job-1' })
    expect(found?.record.runId).toBe('run-2')
    await expect(suspend(FIRST, 'c1', 'job-1')).rejects.toMatchObject({ reason: 'external_id_taken' })
    expect((await suspend(FIRST, 'c1', 'job-2')).status).toBe('pending')
    // Reservations are no threads.
    expect(
      listThreads(threads.backend.tables)
        .map(({ thread }) => thread)
        .sort(),
    ).toEqual(['first', 'second'])
    await threads.close()
    expect(outsider(file).prepare('SELECT count(*) AS n FROM waits').get()).toMatchObject({ n: 2 })
  })

  it('between suspension and checkpoint: S1, the wait is listed, ends, and its session is free', async () => {
    const { threads, store, bank, sweep, killed } = await ground('continuation.suspended/1')
    await killed()
    const [pair] = await store.listPendingContinuations(bank)
    expect([pair?.externalId, pair?.record.ready]).toEqual(['job-1', false])
    const next = { scope: session('first', 'run-3'), framework: 'langgraph' } as const
    await expect(store.beginRun(next)).rejects.toMatchObject({ code: 'checkpoint_conflict' })
    expect(await sweep(60_000)).toEqual({ ...NONE, left: 1 })
    expect(await sweep()).toEqual({ ...NONE, ended: 1 })
    const record = await store.getContinuation({ scope: FIRST, continuationId: 'c1' })
    expect(record).toMatchObject({ status: 'failed', failure: { code: 'suspension_lost' } })
    expect((await store.getRun(FIRST))?.status).toBe('cancelled')
    expect((await store.beginRun(next)).status).toBe('running')
    expect(await sweep()).toEqual(NONE)
    await threads.close()
  })

  it('between suspension and checkpoint, and the result came: S1, the run ends and the result stands', async () => {
    const { threads, store, complete, sweep, killed, taken } = await ground('continuation.suspended/1')
    await killed()
    await complete('early')
    expect(await sweep()).toEqual({ ...NONE, ended: 1 })
    expect((await store.getRun(FIRST))?.status).toBe('failed')
    expect(await store.getContinuation({ scope: FIRST, continuationId: 'c1' })).toMatchObject({
      status: 'completed',
      result: 'early',
    })
    expect(taken).toEqual([])
    await threads.close()
  })

  it('between checkpoint and arm: S2, the wait is armed; an early result is dispatched, once', async () => {
    const { threads, store, bank, complete, sweep, killed, taken } = await ground('invocation.checkpoint-written/1')
    await killed()
    await complete('early')
    // The providers' own list shows what is pending only.
    expect(await store.listPendingContinuations(bank)).toEqual([])
    const both = await Promise.all([sweep(), sweep()])
    expect(both.map(({ dispatched }) => dispatched).sort()).toEqual([0, 1])
    expect(taken).toEqual(['early'])
    expect(await store.getContinuation({ scope: FIRST, continuationId: 'c1' })).toMatchObject({ status: 'claimed', revision: 3 })
    expect(await store.getRun(FIRST)).toMatchObject({ status: 'running', revision: 2 })
    await threads.close()
  })

  it('between checkpoint and arm, before the result: S2, the wait is armed and the result finds it so', async () => {
    const { threads, complete, sweep, killed, taken } = await ground('invocation.checkpoint-written/1')
    await killed()
    expect(await sweep()).toEqual({ ...NONE, armed: 1 })
    expect(await sweep()).toEqual({ ...NONE, left: 1 })
    expect(await complete('late')).toMatchObject({ status: 'completed', ready: true, revision: 2 })
    expect(await sweep()).toEqual({ ...NONE, dispatched: 1 })
    expect(taken).toEqual(['late'])
    await threads.close()
  })

  it('between result and claim: S3, the outcome is dispatched', async () => {
    const { threads, host, sweep, killed, taken } = await ground('continuation.completed/1')
    await host.must('suspend', { scope: FIRST, continuationId: 'c1', externalId: 'job-1' })
    await killed('complete', { scope: FIRST, externalId: 'job-1', result: 'paid' })
    expect(await sweep()).toEqual({ ...NONE, dispatched: 1 })
    expect(taken).toEqual(['paid'])
    await threads.close()
  })

  it('leaves no other wait behind one that cannot be brought on; whoever sweeps hears why', async () => {
    const { threads, store, suspend, killed } = await ground('continuation.suspended/1')
    await killed()
    await suspend(SECOND, 'c2', 'job-2')
    const heard: unknown[] = []
    const isResumable = ({ externalId }: { externalId: string }): boolean => {
      if (externalId === 'job-1') throw new TypeError('checkpoint of another version')
      return true
    }
    const dispatch = async () => {}
    const onError = (error: unknown) => heard.push(error)
    const swept = await sweepContinuations(store, { applicationId: 'shop', graceMs: 0, lost, isResumable, dispatch, onError })
    expect(swept).toEqual({ ...NONE, armed: 1, left: 1 })
    expect(heard).toEqual([new TypeError('checkpoint of another version')])
    await threads.close()
  })
})
