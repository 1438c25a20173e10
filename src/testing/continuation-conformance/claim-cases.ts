import assert from 'node:assert/strict'
import { ContinuationFailure } from '../../continuations/index.ts'
import { type ContinuationCase, RUN, refused, runOf, winners } from './suite.ts'

const stopped = new ContinuationFailure({ code: 'transport_cancelled' })

export const claimCases: ContinuationCase[] = [
  {
    name: '18: an outcome is claimed once, one after the other and at once',
    async run(bench) {
      const armed = await bench.claimable()
      assert.equal(await winners(...[1, 2, 3].map(() => bench.claim(armed))), 1)
      await bench.conflict(bench.claim(armed), 'already_claimed')
      await bench.conflict(bench.claim(await bench.now(armed)), 'already_claimed')
      assert.equal((await bench.store.getRun(RUN))?.revision, 2)
    },
  },
  {
    name: '28, 29: arming is by the revision of now, and once',
    async run(bench) {
      const record = await bench.waiting()
      await bench.complete(1)
      await bench.unchanged(record, () => bench.provider().arm(record), 'stale_revision')
      const armed = await bench.provider().arm(await bench.now(record))
      await bench.unchanged(record, () => bench.provider().arm(armed), 'already_armed')
      await bench.unchanged(record, () => bench.provider().arm(record), 'stale_revision')
    },
  },
  {
    name: '30, 31: no claim of what is not resolved, not armed or of another revision; a revision is a whole number from 1',
    async run(bench) {
      const record = await bench.waiting()
      const armed = await bench.provider().arm(record)
      await bench.unchanged(record, () => bench.claim(armed), 'not_resolved')
      await bench.complete(1)
      await bench.unchanged(record, () => bench.claim(armed), 'stale_revision')
      const at = { ...runOf(RUN), continuationId: record.continuationId }
      for (const expectedRevision of [0, 1.5, true, '2', Number.NaN] as number[])
        await refused(bench.provider().claim({ ...at, expectedRevision }), 'invalid_argument')
      assert.equal((await bench.claim(await bench.now(record))).status, 'claimed')
    },
  },
  {
    name: '30: an early outcome waits for the arm',
    async run(bench) {
      const record = await bench.waiting()
      const early = await bench.complete('early')
      assert.deepEqual([early.status, early.ready], ['completed', false])
      await bench.unchanged(record, () => bench.claim(early), 'not_armed')
      assert.equal((await bench.claim(await bench.provider().arm(early))).result, 'early')
    },
  },
  {
    name: '41: revisions count the changes, on every path',
    async run(bench) {
      const provider = bench.provider()
      const revision = async () => [
        (await bench.provider().lookup({ externalId: 'job-1' }))?.record.revision,
        (await bench.store.getRun(RUN))?.revision,
      ]
      const record = await bench.waiting()
      assert.deepEqual(await revision(), [0, 1])
      await provider.arm(record)
      assert.deepEqual(await revision(), [1, 1])
      await bench.complete(1)
      assert.deepEqual(await revision(), [2, 1])
      await bench.claim(await bench.now(record))
      assert.deepEqual(await revision(), [3, 2])
      await bench.store.deleteRun(RUN)
      await provider.cancel({ record: await bench.waiting(), failure: stopped })
      assert.deepEqual(await revision(), [1, 2])
      await bench.store.deleteRun(RUN)
      await provider.cancel({ record: await provider.arm(await bench.waiting()), failure: stopped })
      assert.deepEqual(await revision(), [2, 2])
    },
  },
  {
    name: '26, 34: a cancel ends the wait and its run, both or neither; no outcome comes after it',
    async run(bench) {
      const record = await bench.waiting()
      const failure = { code: 'text' } as ContinuationFailure
      await refused(bench.provider().cancel({ record, failure }), 'continuation_invalid', 'invalid_argument')
      assert.deepEqual([(await bench.now(record)).status, (await bench.store.getRun(RUN))?.status], ['pending', 'waiting'])
      const cancelled = await bench.provider().cancel({ record, failure: stopped })
      assert.deepEqual([cancelled.status, cancelled.failure?.toJSON()], ['failed', stopped.toJSON()])
      const run = await bench.store.getRun(RUN)
      assert.deepEqual([run?.status, run?.pendingAction], ['cancelled', null])
      await bench.unchanged(record, () => bench.complete(1), 'cancelled')
      assert.deepEqual(await bench.provider().listPending(), [])
    },
  },
  {
    name: '35, 36: armed before or after a cancel, the wait is never claimed',
    async run(bench) {
      const armed = await bench.provider().arm(await bench.waiting())
      const cancelled = await bench.provider().cancel({ record: armed, failure: stopped })
      assert.deepEqual([cancelled.status, cancelled.ready], ['failed', true])
      await bench.unchanged(armed, () => bench.claim(cancelled), 'cancelled')
      await bench.store.deleteRun(RUN)
      const unarmed = await bench.provider().cancel({ record: await bench.waiting(), failure: stopped })
      const late = await bench.provider().arm(unarmed)
      assert.deepEqual([late.status, late.ready], ['failed', true])
      await bench.unchanged(late, () => bench.claim(late), 'cancelled')
    },
  },
  {
    name: '72: a cancel never takes the place of an outcome',
    async run(bench) {
      const record = await bench.waiting()
      const cancel = async () => bench.provider().cancel({ record: await bench.now(record), failure: stopped })
      assert.equal(await winners(bench.complete(1), bench.provider().cancel({ record, failure: stopped })), 1)
      await bench.unchanged(record, cancel)
    },
  },
  {
    name: '47: arm and cancel of a record of another provider or application are conflicts',
    async run(bench) {
      const record = await bench.waiting()
      for (const stranger of [bench.provider({ provider: 'post' }), bench.provider({ applicationId: 'billing' })]) {
        await bench.unchanged(record, () => stranger.arm(record), 'other_provider')
        await bench.unchanged(record, () => stranger.cancel({ record, failure: stopped }), 'other_provider')
      }
    },
  },
  {
    name: 'W9: a run that was moved away from its wait does not go on by its outcome',
    async run(bench) {
      const record = await bench.provider().arm(await bench.waiting())
      await bench.store.transitionRun({ scope: RUN, expectedStatus: 'waiting', status: 'cancelled' })
      // Whether the outcome is kept is up to the store; that nothing resumes by it is not.
      await bench.complete(1).catch(() => undefined)
      await bench.conflict(bench.claim(await bench.now(record)))
      assert.equal((await bench.store.getRun(RUN))?.status, 'cancelled')
    },
  },
]
