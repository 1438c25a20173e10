import assert from 'node:assert/strict'
import { isContinuationStore } from '../../continuations/index.ts'
import { type ContinuationCase, RUN, recordOf, refused, runOf, scopeWith, winners } from './suite.ts'

export const readCases: ContinuationCase[] = [
  {
    name: '27: the store has the nine operations',
    async run({ store }) {
      assert.ok(isContinuationStore(store))
    },
  },
  {
    name: '19, 37: a wait is read in every status by its own run, its provider and its external id, and by nobody else',
    async run(bench) {
      const provider = bench.provider()
      const seen = async (record: { continuationId: string }) => {
        const { continuationId } = record
        assert.equal((await provider.lookup({ externalId: 'job-1' }))?.record.continuationId, continuationId)
        assert.equal((await provider.getPending({ ...runOf(RUN), continuationId }))?.externalId, 'job-1')
        assert.equal(
          (await bench.provider({ provider: 'post' }).get({ ...runOf(RUN), continuationId }))?.continuationId,
          continuationId,
        )
        assert.equal(await bench.provider({ provider: 'post' }).getPending({ ...runOf(RUN), continuationId }), null)
        assert.equal(await bench.provider({ provider: 'post' }).lookup({ externalId: 'job-1' }), null)
        assert.equal(await bench.provider({ applicationId: 'billing' }).lookup({ externalId: 'job-1' }), null)
        for (const part of [{ userId: 'user-2' }, { sessionId: 'session-2' }, { runId: 'run-2' }]) {
          assert.equal(await provider.get({ ...runOf(RUN), ...part, continuationId }), null)
          assert.equal(await provider.getPending({ ...runOf(RUN), ...part, continuationId }), null)
        }
      }
      const record = await bench.waiting()
      await seen(record)
      await seen(await bench.complete({ rows: 3 }))
      await seen(await bench.claim(await provider.arm(await bench.now(record))))
      assert.deepEqual((await provider.lookup({ externalId: 'job-1' }))?.record.result, { rows: 3 })
    },
  },
  {
    name: '25: a deleted run takes its waits along',
    async run(bench) {
      const record = await bench.waiting()
      await bench.store.deleteRun(RUN)
      assert.equal(await bench.store.getContinuation({ scope: RUN, continuationId: record.continuationId }), null)
      assert.equal(await bench.provider().lookup({ externalId: 'job-1' }), null)
      assert.deepEqual(await bench.provider().listPending(), [])
      assert.equal(await bench.store.getRun(RUN), null)
      await bench.conflict(bench.complete(1), 'unknown')
    },
  },
  {
    name: '22, 89: pages of pending waits in the order of their ids, from a cursor that need not exist',
    async run(bench) {
      const ids: string[] = []
      for (let i = 0; i < 5; i++) {
        const scope = scopeWith({ sessionId: `s-${i}`, runId: `r-${i}` })
        await bench.begin(scope)
        const record = recordOf(scope).with({ continuationId: ['b', 'B', '_', '-', '0'][i]!.repeat(3) })
        await bench.store.suspendContinuation({ record, externalId: `job-${i}` })
        ids.push(record.continuationId)
      }
      ids.sort()
      const pages: string[][] = []
      for (let after: string | null = null; ; ) {
        const page = await bench.provider().listPending({ after, limit: 2 })
        pages.push(page.map(({ record }) => record.continuationId))
        if (page.length < 2) break
        after = page.at(-1)!.record.continuationId
      }
      assert.deepEqual(pages, [ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)])
      const behind = await bench.provider().listPending({ after: `${ids[1]}x` })
      assert.deepEqual(
        behind.map(({ record }) => record.continuationId),
        ids.slice(2),
      )
      await bench.complete(1, { externalId: 'job-0', scope: scopeWith({ sessionId: 's-0', runId: 'r-0' }) })
      assert.equal((await bench.provider().listPending()).length, 4)
      assert.deepEqual(await bench.provider({ provider: 'post' }).listPending(), [])
      assert.deepEqual(await bench.provider({ applicationId: 'billing' }).listPending(), [])
    },
  },
  {
    name: '22, 45: a limit is a whole number from 1 to 1000, a cursor is not blank',
    async run(bench) {
      for (const o of [{ limit: 0 }, { limit: 1001 }, { limit: true }, { limit: 1.5 }, { after: '' }, { after: ' ' }] as {
        limit?: number
      }[]) {
        await refused(bench.provider().listPending(o), 'invalid_argument')
        const whose = { applicationId: 'reports', provider: 'hatchet' }
        await refused(
          Promise.resolve().then(() => bench.store.listPendingContinuations({ ...whose, ...o })),
          'invalid_argument',
        )
      }
    },
  },
  {
    name: 'S8: what is suspended while somebody pages is found by the next sweep',
    async run(bench) {
      const suspend = async (i: number) => bench.waiting(`job-${i}`, scopeWith({ sessionId: `s-${i}`, runId: `r-${i}` }))
      for (let i = 0; i < 6; i++) await suspend(i)
      const sweep = async (between: (page: number) => Promise<unknown>) => {
        const found = new Set<string>()
        for (let after: string | null = null, page = 0; ; page++) {
          const pairs = await bench.provider().listPending({ after, limit: 2 })
          for (const { externalId } of pairs) found.add(externalId)
          if (pairs.length < 2) return found
          after = pairs.at(-1)!.record.continuationId
          await between(page)
        }
      }
      const first = await sweep((page) => suspend(10 + page))
      for (let i = 0; i < 6; i++) assert.ok(first.has(`job-${i}`))
      const open = (await bench.provider().listPending()).length
      assert.equal((await sweep(async () => {})).size, open)
    },
  },
]

export const replicaCases: ContinuationCase[] = [
  {
    name: 'S9: what one has acknowledged, the other finds at once and goes on from',
    needs: 'replicas',
    async run(bench) {
      const there = await bench.replica()
      const provider = bench.provider({ store: there })
      assert.equal(await provider.lookup({ externalId: 'job-1' }), null)
      const record = await bench.waiting()
      assert.equal((await provider.lookup({ externalId: 'job-1' }))?.record.continuationId, record.continuationId)
      assert.equal((await provider.listPending()).length, 1)
      const armed = await bench.provider().arm(await bench.complete(1, { provider }))
      assert.equal((await bench.claim(armed, provider)).status, 'claimed')
      await bench.conflict(bench.claim(armed), 'already_claimed')
      await there.deleteRun(RUN)
      assert.equal(await bench.provider().lookup({ externalId: 'job-1' }), null)
    },
  },
  {
    name: '18, 21, 62, S12: of the same change on two replicas at once one counts',
    needs: 'replicas',
    async run(bench) {
      const there = await bench.replica()
      const [here, other] = [bench.provider(), bench.provider({ store: there })]
      const [one, two] = [scopeWith({ sessionId: 'one', runId: 'one' }), scopeWith({ sessionId: 'two', runId: 'two' })]
      for (const scope of [one, two]) await bench.begin(scope)
      assert.equal(
        await winners(bench.suspend({ scope: one, provider: here }), bench.suspend({ scope: two, provider: other })),
        1,
      )
      const { record } = (await here.lookup({ externalId: 'job-1' }))!
      const { scope } = record
      assert.equal(
        await winners(bench.complete('a', { scope, provider: here }), bench.complete('b', { scope, provider: other })),
        1,
      )
      const resolved = await bench.now(record)
      assert.equal(await winners(here.arm(resolved), other.arm(resolved)), 1)
      const armed = await bench.now(record)
      assert.equal(await winners(bench.claim(armed, here), bench.claim(armed, other)), 1)
      const end = { scope, expectedStatus: 'running', status: 'completed' } as const
      assert.equal(await winners(bench.store.transitionRun(end), there.transitionRun(end)), 1)
    },
  },
  {
    name: '57, 95: what was acknowledged is there when the store is opened again, and goes on',
    needs: 'durable',
    async run(bench) {
      const armed = await bench.claimable()
      const store = await bench.reopened()
      assert.deepEqual((await bench.now(armed, store)).toJSON(), armed.toJSON())
      const claimed = await bench.claim(armed, bench.provider({ store }))
      assert.deepEqual(claimed.result, { rows: 3 })
      const end = { scope: RUN, expectedStatus: 'running', status: 'completed' } as const
      assert.equal((await store.transitionRun(end)).status, 'completed')
      await store.deleteRun(RUN)
      assert.equal(await store.getRun(RUN), null)
    },
  },
]
