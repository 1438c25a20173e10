import { describe, expect, test } from 'vitest'
import { systemIds } from '../../src/base/index.ts'
import {
  apiSource,
  ContinuationFailure,
  type ContinuationRecord,
  expireDue,
  expireThread,
  isAnyOverdue,
  submitRecord,
  sweepContinuations,
  validatorsOf,
} from '../../src/continuations/index.ts'
import { openThreadlog } from '../../src/index.ts'
import { openLog, openMemoryLog } from '../../src/log/index.ts'
import { findWait, indexProjectors, type ThreadStore } from '../../src/projections/index.ts'
import { gatedLog } from '../support/gated-log.ts'
import { places } from '../support/processes/place.ts'
import { setClock } from '../support/set-clock.ts'
import { append, memoryStore, suspendedThread, TestLookup } from '../support/threads.ts'

const place = places()
const PAST = 1_000

const statusOf = async (store: ThreadStore, stream: string, id: string | undefined) =>
  findWait(await store.load(stream), id ?? '')?.status

async function indexedStore(): Promise<ThreadStore> {
  const backend = await openMemoryLog()
  await backend.install(indexProjectors())
  return memoryStore({ backend })
}

describe('expireDue', () => {
  test('ends what is overdue, thread by thread, over all slices; nothing else', async () => {
    const store = await indexedStore()
    const due = []
    for (let i = 0; i < 150; i++) due.push(await suspendedThread(store, [{ deadline: PAST + (i % 7) }, { deadline: 9e15 }, {}]))
    const other = await suspendedThread(store, [{ deadline: PAST }], { application: 'another' })
    expect(await expireDue(store, { application: 'shop' })).toBe(150)
    for (const { stream, waits } of due)
      expect(await Promise.all(waits.map(({ id }) => statusOf(store, stream, id)))).toEqual(['expired', 'pending', 'pending'])
    expect(await statusOf(store, other.stream, other.waits[0]?.id)).toBe('pending')
    expect(await expireDue(store, { application: 'shop' })).toBe(0)
  })

  test('ends all that is overdue on a thread in one commit', async () => {
    const store = await indexedStore()
    const { stream, state } = await suspendedThread(store, [{ deadline: PAST }, { deadline: PAST + 1 }, { deadline: PAST }])
    expect(await expireThread(store, stream)).toBe(3)
    expect((await store.load(stream)).version).toBe(state.version + 3)
    expect(await expireThread(store, stream)).toBe(0)
  })

  // What cannot be ended stands first in the index for ever: a sweep that began there again would see nothing else.
  test('row 97: threads in quarantine, of others and that fail are passed over, and the scan goes on behind them', async () => {
    const store = await indexedStore()
    const stuck = []
    for (let i = 0; i < 130; i++) stuck.push(await suspendedThread(store, [{ deadline: PAST }]))
    const [broken, failing, theirs] = stuck as [(typeof stuck)[0], (typeof stuck)[0], (typeof stuck)[0]]
    // No fold can take the arming of a wait that is not there.
    await append(store, broken.stream, [
      { type: 'continuation.armed/1', data: { continuation_id: 'nobody', revision: 1 } },
    ]).catch(() => {})
    const last = await suspendedThread(store, [{ deadline: PAST + 1 }])
    const commit = store.commit.bind(store)
    const errors: string[] = []
    let commits = 0
    store.commit = (stream, ...rest) => {
      commits++
      return stream === failing.stream ? Promise.reject(new Error('no')) : commit(stream, ...rest)
    }
    const owns = (stream: string) => stream !== theirs.stream
    expect(await expireDue(store, { application: 'shop', owns, onError: (_, stream) => errors.push(stream) })).toBe(128)
    expect(errors).toEqual([failing.stream])
    expect(commits).toBe(130)
    expect(await statusOf(store, last.stream, last.waits[0]?.id)).toBe('expired')
  })

  test('stops between slices when it is told to', async () => {
    const store = await indexedStore()
    for (let i = 0; i < 100; i++) await suspendedThread(store, [{ deadline: PAST }])
    const stop = new AbortController()
    const owns = () => {
      stop.abort()
      return true
    }
    const expired = await expireDue(store, { application: 'shop', owns, signal: stop.signal })
    expect(expired).toBeGreaterThan(0)
    expect(expired).toBeLessThan(100)
  })
})

// The two race for one wait: which of them the log took first counts, whatever either had seen before.
describe.each(['expiry', 'result'] as const)(
  'of an expiry and a result that were decided at once, the %s stands if it comes first',
  (first) => {
    test.each(['memory', 'sqlite'] as const)('on %s', async (kind) => {
      const backend = kind === 'memory' ? await openMemoryLog() : await openLog(place().log)
      const late = gatedLog(backend, first === 'expiry' ? 'continuation.completed/1' : 'continuation.expired/1')
      const [here, there] = [await memoryStore({ backend }), await memoryStore({ backend: late.log, ids: systemIds })]
      const lookup = new TestLookup()
      const { stream, waits } = lookup.add(await suspendedThread(here, [{ deadline: PAST }]))
      const deps = (store: ThreadStore) => ({ store, lookup, validators: validatorsOf(), application: 'shop' })
      const context = {
        actor: { kind: 'provider', id: '', source: 'test' },
        source: apiSource('submit', 'k1'),
        authority: { allows: () => true },
      }
      const submit = async (store: ThreadStore) =>
        (await submitRecord(deps(store), { provider: 'payouts', continuation_id: waits[0]?.id, result: 1 }, context)).verdict
      await there.load(stream)
      const [slow, quick] =
        first === 'expiry' ? [submit, () => expireThread(here, stream)] : [() => expireThread(there, stream), submit]
      const second = slow(there)
      await late.reached
      const won = await quick(here)
      late.open()
      expect([won, await second]).toEqual(first === 'expiry' ? [1, 'expired'] : ['accepted', 0])
      expect(await statusOf(here, stream, waits[0]?.id)).toBe(first === 'expiry' ? 'expired' : 'completed')
      await backend.close()
    })
  },
)

describe.each(['memory', 'sqlite'] as const)('waits of foreign hosts on %s', (kind) => {
  const scope = { applicationId: 'shop', userId: 'ann', sessionId: 's-1', runId: 'run-1' }
  const own = { userId: 'ann', sessionId: 's-1', runId: 'run-1' }
  const job = { externalId: 'job-1', capability: 'job.run', schemaId: 'job/v1' }
  const open = async () => {
    const clock = setClock()
    const threads = await openThreadlog({ log: kind === 'memory' ? 'memory' : place().log, application: 'shop', clock })
    const store = threads.continuationStore()
    await store.beginRun({ scope, framework: 'adk' })
    return { clock, threads, store }
  }
  const sweeping = (dispatched: ContinuationRecord[]) => ({
    applicationId: 'shop',
    graceMs: 0,
    lost: new ContinuationFailure({ code: 'lost' }),
    isResumable: () => true,
    dispatch: async ({ record }: { record: ContinuationRecord }) => void dispatched.push(record),
  })

  test('expire by the sweep of the host, as failed with code `expired`, and the run goes on with that', async () => {
    const { clock, threads, store } = await open()
    const jobs = threads.continuations('jobs', { deadlineMs: 60_000 })
    const record = await jobs.suspend({ ...own, ...job })
    const dispatched: ContinuationRecord[] = []
    const o = sweeping(dispatched)
    expect(await sweepContinuations(store, o)).toMatchObject({ expired: 0, armed: 1 })
    expect((await jobs.lookup(job))?.expiresAt).toBeGreaterThan(clock.now())
    expect((await jobs.listPending())[0]?.expiresAt).toBeGreaterThan(clock.now())
    clock.pass(60_001)
    expect(await sweepContinuations(store, o)).toMatchObject({ expired: 1, dispatched: 1, left: 0 })
    expect(dispatched.map(({ status, failure, revision }) => [status, failure?.toJSON(), revision])).toEqual([
      ['failed', { code: 'expired', retryable: false }, 2],
    ])
    const complete = () =>
      jobs.complete({ ...own, externalId: 'job-1', schemaId: 'job/v1', result: 1, validate: (value) => value })
    await expect(complete()).rejects.toMatchObject({ reason: 'expired' })
    await expect(jobs.cancel({ record: dispatched[0] as ContinuationRecord, failure: o.lost })).rejects.toMatchObject({
      reason: 'expired',
    })
    const claimed = await jobs.claim({ ...own, continuationId: record.continuationId, expectedRevision: 2 })
    expect([claimed.status, claimed.failure?.code, claimed.revision]).toEqual(['claimed', 'expired', 3])
    expect(await store.getRun(scope)).toMatchObject({ status: 'running' })
    await expect(complete()).rejects.toMatchObject({ reason: 'already_claimed' })
    const late = { provider: 'jobs', external_id: 'job-1', result: 1 }
    expect(await threads.submit(late)).toMatchObject({ verdict: 'expired' })
    await threads.close()
  })

  test('that expired unarmed are armed by the sweep if their run can go on, else their run has failed', async () => {
    const { clock, threads, store } = await open()
    const jobs = threads.continuations('jobs')
    await jobs.suspend({ ...own, ...job, expiresAt: clock.now() + 10 })
    clock.pass(10)
    const dispatched: ContinuationRecord[] = []
    expect(await sweepContinuations(store, { ...sweeping(dispatched), isResumable: () => false })).toMatchObject({
      expired: 1,
      ended: 1,
    })
    expect(await store.getRun(scope)).toMatchObject({ status: 'failed' })
    await store.beginRun({ scope: { ...scope, runId: 'run-2' }, framework: 'adk' })
    await jobs.suspend({ ...own, runId: 'run-2', ...job, externalId: 'job-2', expiresAt: clock.now() })
    expect(await sweepContinuations(store, sweeping(dispatched))).toMatchObject({ expired: 1, dispatched: 1 })
    expect(dispatched).toMatchObject([{ ready: true, status: 'failed' }])
    await threads.close()
  })

  test('expire by any engine of their application too', async () => {
    const { clock, threads } = await open()
    const jobs = threads.continuations('jobs')
    await jobs.suspend({ ...own, ...job, expiresAt: clock.now() + 10 })
    await threads.serve({ sweepMs: 5 })
    clock.pass(10)
    await expect.poll(async () => (await jobs.lookup(job))?.record.failure?.code).toBe('expired')
    await threads.close()
  })

  test('a time that is none is refused, and nothing is written', async () => {
    const { threads } = await open()
    const jobs = threads.continuations('jobs')
    for (const expiresAt of [-1, 1.5, Number.NaN, 8.64e15 + 2, '2030'])
      await expect(jobs.suspend({ ...own, ...job, expiresAt: expiresAt as number })).rejects.toMatchObject({
        code: 'invalid_argument',
        path: 'expiresAt',
      })
    expect(() => threads.continuations('jobs', { deadlineMs: 0 })).toThrow(expect.objectContaining({ path: 'deadlineMs' }))
    expect(await jobs.lookup(job)).toBeNull()
    await threads.close()
  })
})

test('what is overdue is for the time of the decision to say, and the fold looks at no clock', async () => {
  const store = await memoryStore()
  const { state } = await suspendedThread(store, [{ deadline: PAST }])
  expect([PAST - 1, PAST, PAST + 1].map((now) => isAnyOverdue(state, now))).toEqual([false, true, true])
})
