import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import {
  ContinuationFailure,
  ContinuationProvider,
  ContinuationRuntime,
  type LogContinuationStore,
  ResumeArtifact,
  type Resumption,
} from '../../src/continuations/index.ts'
import { openThreadlog } from '../../src/index.ts'
import { type LogBackend, openLog } from '../../src/log/index.ts'
import { spoilt } from '../support/continuation-faults.ts'
import { places } from '../support/processes/place.ts'

// What surrounds the waits of a host on several processes (continuation spec §3.2 to §3.6), by the numbers of its cases.

const own = { userId: 'ann', sessionId: 'thread', runId: 'run-1' }
const scope = { applicationId: 'shop', ...own }
const resume = new ResumeArtifact({
  framework: 'langgraph',
  nativeInvocationId: 'shop/ann/thread',
  toolCallId: 'call-1',
  toolName: 'ship',
})
const lead = { permissions: ['ship.order', 'order.read'] }
const asIs = (value: unknown) => value
const job = { ...own, externalId: 'job-1', capability: 'ship', schemaId: 'ship/v1', resume, principal: lead, validate: asIs }

/** One process of the host: its store, its runtime, and what it went on with. */
async function replica(backend: LogBackend, fault?: (store: LogContinuationStore) => Partial<LogContinuationStore>) {
  const threads = await openThreadlog({ log: backend })
  const plain = threads.continuationStore()
  const store = fault ? spoilt(plain, fault(plain)) : plain
  const provider = new ContinuationProvider({ store, applicationId: 'shop', provider: 'jobs' })
  const resumed: Resumption[] = []
  const errors: unknown[] = []
  const runtime = new ContinuationRuntime({
    store,
    provider,
    resume: { leaseMs: 60_000, canResume: () => true, resume: async (o) => resumed.push(o) },
    onError: (error) => errors.push(error),
  })
  return { store, provider, runtime, resumed, errors, results: () => resumed.map(({ record }) => record.result) }
}

/** Two of them on one log, and a run that runs. */
async function two() {
  const backend = await openLog('memory')
  const [a, b] = [await replica(backend), await replica(backend)]
  await a.store.beginRun({ scope, framework: 'langgraph' })
  return { backend, a, b }
}

describe('outcome and arming, in both orders', () => {
  it('65: a result before the arming dispatches nothing; the arming dispatches it once; a later one is a conflict', async () => {
    const { a } = await two()
    const wait = await a.runtime.suspend(job)
    expect(await a.runtime.complete({ externalId: 'job-1', result: 'sent' })).toMatchObject({ status: 'completed', ready: false })
    await a.runtime.idle()
    expect(a.results()).toEqual([])
    // Its revision is stale by now.
    expect(await a.runtime.arm(wait)).toMatchObject({ ready: true, revision: 2 })
    await a.runtime.idle()
    expect(a.results()).toEqual(['sent'])
    const late = a.runtime.complete({ externalId: 'job-1', result: 'sent' })
    await expect(late).rejects.toMatchObject({ reason: 'already_claimed' })
  })

  it('66, 70: armed here, completed there behind an async validator: that replica goes on, with equal grants and a principal of its own', async () => {
    const { a, b } = await two()
    await a.runtime.arm(await a.runtime.suspend(job))
    const checking = Promise.withResolvers<void>()
    const checked = Promise.withResolvers<void>()
    b.runtime.register('ship/v1', async (value) => {
      checking.resolve()
      await checked.promise
      return { parcel: value }
    })
    const completing = b.runtime.complete({ externalId: 'job-1', result: 'P-1' })
    await checking.promise
    expect((await a.provider.listPending()).map(({ record }) => record.status)).toEqual(['pending'])
    checked.resolve()
    expect((await completing).status).toBe('completed')
    await b.runtime.idle()
    expect([a.results(), b.results()]).toEqual([[], [{ parcel: 'P-1' }]])
    const [{ principal, record }] = b.resumed as [Resumption]
    expect(principal).toEqual({ id: expect.stringMatching(/^arp_/), permissions: ['order.read', 'ship.order'] })
    expect(record.resume?.toJSON()).toEqual(resume.toJSON())
    expect(await b.provider.get({ ...own, userId: 'bob', continuationId: record.continuationId })).toBeNull()
  })

  it('what the run throws stays with the process that went on with it, and the wait is left to the next sweep (W23)', async () => {
    const backend = await openLog('memory')
    const a = await replica(backend)
    await a.store.beginRun({ scope, framework: 'langgraph' })
    const failing = new ContinuationRuntime({
      ...{ store: a.store, provider: a.provider, onError: (error) => a.errors.push(error) },
      resume: { leaseMs: 60_000, canResume: () => true, resume: () => Promise.reject(new RangeError('secret')) },
    })
    await failing.arm(await failing.suspend(job))
    expect((await failing.complete({ externalId: 'job-1', result: 1 })).status).toBe('completed')
    await failing.idle()
    expect(a.errors).toEqual([new RangeError('secret')])
    const left: boolean[] = []
    for await (const { isHeld } of a.store.waiting('shop')) left.push(isHeld)
    expect(left).toEqual([false])
  })

  it('78, 79: without a validator nothing is decided; another one for a schema is refused; an unknown external id is not found', async () => {
    const { a, b } = await two()
    const wait = await a.runtime.suspend(job)
    const unavailable = { code: 'validator_unavailable', disposition: 'retry' }
    await expect(b.runtime.complete({ externalId: 'job-1', result: 1 })).rejects.toMatchObject(unavailable)
    expect(await b.provider.get({ ...own, continuationId: wait.continuationId })).toMatchObject({
      status: 'pending',
      revision: 0,
    })
    expect(() => a.runtime.register('ship/v1', (value) => value)).toThrow(expect.objectContaining({ code: 'validator_conflict' }))
    a.runtime.register('ship/v1', asIs)
    await expect(a.runtime.complete({ externalId: 'job-2', result: 1 })).rejects.toMatchObject({ code: 'not_found' })
    await expect(a.runtime.fail({ externalId: 'job-2', code: 'gone' })).rejects.toMatchObject({ code: 'not_found' })
  })
})

describe('replay', () => {
  it('75: a replayed call finds the wait it made, on another replica and whatever has become of it', async () => {
    const { a, b } = await two()
    const wait = await a.runtime.suspend(job)
    expect(await b.runtime.suspend(job)).toEqual(wait)
    await a.runtime.arm(wait)
    await b.runtime.complete({ externalId: 'job-1', result: 'sent' })
    await b.runtime.idle()
    expect(await a.runtime.suspend(job)).toMatchObject({ continuationId: wait.continuationId, status: 'claimed', result: 'sent' })
    expect(await b.store.getRun(scope)).toMatchObject({ status: 'running', revision: 2 })
  })

  it('75: two replicas that replay one call at once make one wait', async () => {
    const { a, b } = await two()
    const both = await Promise.all([a.runtime.suspend(job), b.runtime.suspend(job)])
    expect(both[0].continuationId).toBe(both[1].continuationId)
    expect(await a.provider.listPending()).toHaveLength(1)
  })

  const other = new ResumeArtifact({ ...resume, toolCallId: 'call-2' })
  it.each([
    ['user', { userId: 'bob' }],
    ['session', { sessionId: 'other' }],
    ['run', { runId: 'run-2' }],
    ['capability', { capability: 'pay' }],
    ['schema', { schemaId: 'ship/v2' }],
    ['resume artifact', { resume: other }],
    ['no resume artifact', { resume: null }],
    ['grants', { principal: { permissions: ['order.read'] } }],
    ['no grants', { principal: null }],
  ])('77: a call that differs in its %s does not get the wait', async (_, difference) => {
    const { a, b } = await two()
    await a.runtime.suspend(job)
    await expect(b.runtime.suspend({ ...job, ...difference })).rejects.toMatchObject({ reason: 'external_id_taken' })
    expect(await a.provider.listPending()).toHaveLength(1)
  })
})

const turns = async (n: number): Promise<void> => {
  for (let i = 0; i < n; i++) await setImmediate()
}

describe('cancel comes to one end', () => {
  it('71: with a record from before the arming it succeeds; again gives the same record; the run is cancelled, nothing is dispatched', async () => {
    const { a, b } = await two()
    const wait = await a.runtime.suspend(job)
    await a.runtime.arm(wait)
    const cancelled = await b.runtime.cancel(wait, 'user_cancelled')
    expect(cancelled).toMatchObject({ status: 'failed', failure: { code: 'user_cancelled' }, ready: true, revision: 2 })
    expect(await a.runtime.cancel(wait, 'user_cancelled')).toEqual(cancelled)
    expect(await a.store.getRun(scope)).toMatchObject({ status: 'cancelled', pendingAction: null })
    await a.runtime.idle()
    expect([...a.resumed, ...b.resumed]).toEqual([])
  })

  it('72: never overwrites an outcome', async () => {
    const { a, b } = await two()
    const wait = await a.runtime.suspend(job)
    await a.runtime.complete({ externalId: 'job-1', result: 'sent' })
    await expect(b.runtime.cancel(wait, 'user_cancelled')).rejects.toMatchObject({ code: 'continuation_conflict' })
    expect(await a.provider.get(wait)).toMatchObject({ status: 'completed', result: 'sent' })
  })

  it('73: another reason, or another provider, is a conflict', async () => {
    const { a, backend } = await two()
    const wait = await a.runtime.suspend(job)
    await a.runtime.cancel(wait, 'user_cancelled')
    await expect(a.runtime.cancel(wait, 'timed_out')).rejects.toMatchObject({ code: 'continuation_conflict' })
    const { store, runtime } = await replica(backend)
    const stranger = new ContinuationRuntime({
      store,
      provider: new ContinuationProvider({ store, applicationId: 'shop', provider: 'bank' }),
      resume: { leaseMs: 1, canResume: () => true, resume: async () => {} },
    })
    await expect(stranger.cancel(wait, 'user_cancelled')).rejects.toMatchObject({ reason: 'other_provider' })
    expect((await runtime.cancel(wait, 'user_cancelled')).failure).toEqual(new ContinuationFailure({ code: 'user_cancelled' }))
  })

  it('74: an outage, or a conflict with nothing changed, is told after one try', async () => {
    const { a, backend } = await two()
    const wait = await a.runtime.suspend(job)
    for (const thrown of [new TypeError('no connection'), Object.assign(new Error('x'), { code: 'other' })]) {
      let tries = 0
      const b = await replica(backend, () => ({
        cancelContinuation: async () => {
          tries++
          throw thrown
        },
      }))
      await expect(b.runtime.cancel(wait, 'user_cancelled')).rejects.toBe(thrown)
      expect(tries).toBe(1)
    }
    await a.store.transitionRun({ scope, expectedStatus: 'waiting', status: 'cancelled' })
    let tries = 0
    const b = await replica(backend, (store) => ({
      cancelContinuation: (o) => {
        tries++
        return store.cancelContinuation(o)
      },
    }))
    await expect(b.runtime.cancel(wait, 'user_cancelled')).rejects.toMatchObject({ reason: 'run_not_waiting' })
    expect(tries).toBe(1)
  })

  const place = places()
  it('3.6: a cancel of the run, one of the wait and a result at once come to one end that every replica tells alike', async () => {
    const { log } = place()
    const [one, other] = [await openLog(log), await openLog(log)]
    const [a, b] = [await replica(one), await replica(other)]
    const ends = new Set<string>()
    for (let i = 0; i < 30; i++) {
      const at = { userId: 'ann', sessionId: `s-${i}`, runId: `r-${i}` }
      const run = { applicationId: 'shop', ...at }
      await a.store.beginRun({ scope: run, framework: 'adk' })
      const wait = await a.runtime.suspend({ ...job, ...at, externalId: `job-${i}` })
      b.runtime.register('ship/v1', asIs)
      await a.runtime.arm(wait)
      const acts = [
        () => a.store.transitionRun({ scope: run, expectedStatus: 'waiting', status: 'cancelled' }),
        () => b.runtime.cancel(wait, 'user_cancelled'),
        () => b.runtime.complete({ externalId: `job-${i}`, result: i }),
      ]
      // Each of the three begins first in turn, some steps of the event loop before the others.
      const begins = (act: () => Promise<unknown>, n: number) => turns(n * (i % 12)).then(act)
      await Promise.allSettled([...acts.slice(i % 3), ...acts.slice(0, i % 3)].map(begins))
      await Promise.all([a.runtime.idle(), b.runtime.idle()])
      const seen = await Promise.all(
        [a, b].map(async ({ store, provider }) => {
          await store.getContinuationByExternalId({ applicationId: 'shop', provider: 'jobs', externalId: 'nobody' })
          return JSON.stringify([await provider.get({ ...at, continuationId: wait.continuationId }), await store.getRun(run)])
        }),
      )
      expect(seen[0]).toBe(seen[1])
      const [record, state] = JSON.parse(seen[0]!)
      const end = `${record.status} ${record.failure?.code ?? ''} ${state.status}`
      ends.add(end)
      expect(['completed  cancelled', 'failed user_cancelled cancelled', 'pending  cancelled', 'claimed  running']).toContain(end)
    }
    expect(ends.size).toBeGreaterThan(1)
    expect([...a.errors, ...b.errors]).toEqual([])
    await Promise.all([one.close(), other.close()])
  })
})

describe('a tool that stays in memory', () => {
  const attached = async () => {
    const { a, b } = await two()
    b.runtime.register('ship/v1', asIs)
    const wait = await a.runtime.suspend(job)
    const seen: unknown[] = []
    const frame = a.runtime.attach(wait, async ({ record, principal }) => {
      seen.push(principal && [...principal.permissions].sort())
      if (record.failure) throw new RangeError(record.failure.code)
      return record.result
    })
    frame.catch(() => {})
    while (!(await a.provider.get(wait))?.ready) await setImmediate()
    return { a, b, wait, frame, seen }
  }
  const statusOf = async ({ a, wait }: Awaited<ReturnType<typeof attached>>) => (await a.provider.get(wait))?.status

  it('67: takes the outcome itself, with its grants, and no driver is asked; it is claimed once', async () => {
    const all = await attached()
    await all.a.runtime.complete({ externalId: 'job-1', result: 'sent' })
    expect(await all.frame).toBe('sent')
    await all.a.runtime.idle()
    expect([all.a.results(), all.b.results(), all.seen]).toEqual([[], [], [[...lead.permissions].sort()]])
    expect(await statusOf(all)).toBe('claimed')
    await expect(all.b.runtime.complete({ externalId: 'job-1', result: 'sent' })).rejects.toMatchObject({
      reason: 'already_claimed',
    })
  })

  it('67: a failure is raised inside it', async () => {
    const all = await attached()
    await all.a.runtime.fail({ externalId: 'job-1', code: 'lost' })
    await expect(all.frame).rejects.toThrow('lost')
    expect(all.a.results()).toEqual([])
  })

  it('W22: where another process takes the outcome first, the tool is let go at once, and the run goes on once', async () => {
    const all = await attached()
    await all.b.runtime.complete({ externalId: 'job-1', result: 'sent' })
    await all.b.runtime.idle()
    const mine = await all.frame.then(
      (value) => value,
      (error: unknown) => error,
    )
    // Whoever was first, one of the two went on, and the other knows.
    if (all.b.results().length > 0) expect(mine).toMatchObject({ reason: 'already_claimed' })
    else expect(mine).toBe('sent')
    expect(all.b.results().length + all.seen.length).toBe(1)
  })

  it('given up, it leaves an ordinary wait that its driver resumes', async () => {
    const { a } = await two()
    const wait = await a.runtime.suspend(job)
    const stop = new AbortController()
    const frame = a.runtime.attach(wait, () => 'never', { signal: stop.signal })
    frame.catch(() => {})
    while (!(await a.provider.get(wait))?.ready) await setImmediate()
    stop.abort(new Error('gone'))
    await expect(frame).rejects.toThrow('gone')
    await a.runtime.complete({ externalId: 'job-1', result: 'sent' })
    await a.runtime.idle()
    expect(a.results()).toEqual(['sent'])
  })

  it('hears that its wait was cancelled', async () => {
    const all = await attached()
    const now = await all.a.provider.get(all.wait)
    await all.a.runtime.cancel(now!, 'user_cancelled')
    await expect(all.frame).rejects.toMatchObject({ code: 'continuation_conflict' })
    expect(all.seen).toEqual([])
  })
})
