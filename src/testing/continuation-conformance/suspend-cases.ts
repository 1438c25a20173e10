import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { PrincipalGrantSnapshot, ResumeArtifact } from '../../continuations/index.ts'
import { CAPABILITY, type ContinuationCase, OTHER, RUN, recordOf, runOf, SCHEMA, scopeWith, winners } from './suite.ts'

const resume = new ResumeArtifact({ framework: 'langgraph', nativeInvocationId: 'a/b', toolCallId: 'call-1', toolName: 'build' })

export const suspendCases: ContinuationCase[] = [
  {
    name: '15: a suspended run waits for the continuation, whose external id stands beside it and nowhere else',
    async run(bench) {
      const record = await bench.waiting('secret-job')
      const run = await bench.store.getRun(RUN)
      assert.deepEqual(
        { ...run?.pendingAction },
        { type: 'external_continuation', actionId: record.continuationId, capability: CAPABILITY },
      )
      assert.equal(run?.status, 'waiting')
      const [pair] = await bench.provider().listPending()
      assert.equal(pair?.externalId, 'secret-job')
      assert.equal(pair?.record.continuationId, record.continuationId)
      for (const shown of [inspect(record), inspect(run), inspect(pair), JSON.stringify(run), JSON.stringify(record)])
        assert.ok(!shown.includes('secret-job'))
    },
  },
  {
    name: '51, 58, 70: resume artifact and grants come back as they were given; none stays none, an empty list stays empty',
    async run(bench) {
      const grants = new PrincipalGrantSnapshot({ permissions: ['b:write', 'a:read', 'b:write'] })
      const kept: (readonly [RunIds, PrincipalGrantSnapshot | null])[] = [
        ['run-1', grants],
        ['run-2', new PrincipalGrantSnapshot({ permissions: [] })],
        ['run-3', null],
      ]
      for (const [runId, principalGrants] of kept) {
        const scope = scopeWith({ runId, sessionId: runId })
        await bench.begin(scope)
        const common = { ...runOf(scope), externalId: runId, capability: CAPABILITY, schemaId: SCHEMA }
        await bench.provider().suspend({ ...common, resume, principalGrants })
        const found = (await bench.provider().lookup({ externalId: runId }))?.record
        assert.deepEqual(found?.resume?.toJSON(), resume.toJSON())
        assert.deepEqual(found?.principalGrants?.toJSON(), principalGrants?.toJSON())
        const listed = (await bench.provider().listPending()).find((pair) => pair.externalId === runId)?.record
        assert.deepEqual(listed?.toJSON(), found?.toJSON())
      }
    },
  },
  {
    name: '20, 40: suspending twice is a conflict, with the same external id and with another',
    async run(bench) {
      await bench.waiting()
      await bench.conflict(bench.suspend(), 'run_not_running')
      await bench.conflict(bench.suspend({ externalId: 'job-2' }), 'run_not_running')
      assert.equal((await bench.provider().listPending()).length, 1)
      assert.equal((await bench.store.getRun(RUN))?.revision, 1)
    },
  },
  {
    name: '40: nothing suspends on an unknown, a foreign and an ended run, and nothing is left of it',
    async run(bench) {
      await bench.conflict(bench.suspend(), 'run_not_running')
      for (const status of ['completed', 'failed', 'cancelled'] as const) {
        const scope = scopeWith({ runId: status })
        await bench.begin(scope)
        await bench.conflict(bench.suspend({ scope: scopeWith({ userId: 'user-2' }, scope) }), 'run_not_running')
        await bench.store.transitionRun({ scope, expectedStatus: 'running', status })
        await bench.conflict(bench.suspend({ scope }), 'run_not_running')
        assert.deepEqual([(await bench.store.getRun(scope))?.status, (await bench.store.getRun(scope))?.revision], [status, 1])
      }
      assert.deepEqual(await bench.provider().listPending(), [])
      assert.equal((await bench.waiting()).status, 'pending')
    },
  },
  {
    name: '20, 38: an external id belongs to one wait until its run is deleted, whatever becomes of the wait',
    async run(bench) {
      await bench.claim(await bench.claimable())
      await bench.begin(OTHER)
      await bench.conflict(bench.suspend({ scope: OTHER }), 'external_id_taken')
      assert.equal((await bench.store.getRun(OTHER))?.status, 'running')
      await bench.store.deleteRun(RUN)
      assert.equal((await bench.suspend({ scope: OTHER })).status, 'pending')
    },
  },
  {
    name: '39: the same external id of another provider and in another application is another wait',
    async run(bench) {
      await bench.waiting()
      await bench.begin(OTHER)
      const post = bench.provider({ provider: 'post' })
      await bench.suspend({ scope: OTHER, provider: post })
      const elsewhere = scopeWith({ applicationId: 'billing', runId: 'run-3' })
      await bench.begin(elsewhere)
      await bench.suspend({ scope: elsewhere })
      await bench.complete('mine', { scope: OTHER, provider: post })
      assert.equal((await bench.provider().lookup({ externalId: 'job-1' }))?.record.status, 'pending')
      assert.equal((await bench.provider({ applicationId: 'billing' }).lookup({ externalId: 'job-1' }))?.record.status, 'pending')
      assert.equal((await post.lookup({ externalId: 'job-1' }))?.record.result, 'mine')
    },
  },
  {
    name: '23: a run that was cancelled by itself leaves its wait pending and listed, and its session free',
    async run(bench) {
      const first = await bench.waiting()
      await bench.store.transitionRun({ scope: RUN, expectedStatus: 'waiting', status: 'cancelled' })
      const next = await bench.waiting('job-2', scopeWith({ runId: 'run-2' }))
      const ids = (await bench.provider().listPending()).map(({ record }) => record.continuationId)
      assert.deepEqual(ids, [first.continuationId, next.continuationId].sort())
    },
  },
  {
    name: 'S12: of two sessions that suspend with one external id one wins; the run of the other still runs',
    async run(bench) {
      for (let round = 0; round < 5; round++) {
        const scopes = ['a', 'b'].map((name) => scopeWith({ sessionId: `${name}-${round}`, runId: `${name}-${round}` }))
        for (const scope of scopes) await bench.begin(scope)
        const externalId = `job-${round}`
        assert.equal(await winners(...scopes.map((scope) => bench.suspend({ scope, externalId }))), 1)
        const found = await bench.provider().lookup({ externalId })
        for (const scope of scopes) {
          const status = (await bench.store.getRun(scope))?.status
          assert.equal(status, scope.runId === found?.record.runId ? 'waiting' : 'running')
        }
      }
    },
  },
  {
    name: 'an id is suspended once, wherever',
    async run(bench) {
      const record = recordOf()
      await bench.begin()
      await bench.begin(OTHER)
      await bench.store.suspendContinuation({ record, externalId: 'job-1' })
      await bench.conflict(bench.store.suspendContinuation({ record: record.with(OTHER), externalId: 'job-2' }), 'id_taken')
      assert.equal((await bench.store.getRun(OTHER))?.status, 'running')
    },
  },
  {
    name: 'only a new record is suspended',
    needs: 'guarded',
    async run(bench) {
      await bench.begin()
      const record = recordOf()
      for (const change of [{ status: 'claimed' as const, ready: true, revision: 3 }, { ready: true }, { revision: 1 }])
        await bench.conflict(bench.store.suspendContinuation({ record: record.with(change), externalId: 'job-1' }), 'not_new')
      assert.equal((await bench.store.getRun(RUN))?.status, 'running')
    },
  },
]

type RunIds = 'run-1' | 'run-2' | 'run-3'
