import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { ContinuationRecord } from '../../continuations/index.ts'
import { type Bench, type ContinuationCase, RUN, refused, runOf, winners } from './suite.ts'

/** Milliseconds of a claim that is let run out, and until it surely has. */
const SHORT = 30
const OVER = 80
const LONG = 600_000

const claimFor = (bench: Bench, { continuationId, revision }: ContinuationRecord, leaseMs: number, store = bench.store) =>
  bench.provider({ store }).claim({ ...runOf(RUN), continuationId, expectedRevision: revision, leaseMs })
const heldBy = ({ continuationId, revision: fence }: ContinuationRecord) => ({ ...runOf(RUN), continuationId, fence })
const leaseOf = ({ continuationId, revision: fence }: ContinuationRecord) => ({ continuationId, fence })

export const leaseCases: ContinuationCase[] = [
  {
    name: 'S4: a claim for a time is nobody else’s until that is over, and then goes to exactly one, under the next revision',
    needs: 'leases',
    async run(bench) {
      const first = await claimFor(bench, await bench.claimable('paid'), LONG)
      assert.deepEqual([first.status, first.revision, first.result], ['claimed', 3, 'paid'])
      await bench.unchanged(first, () => claimFor(bench, first, LONG), 'already_claimed')
      await bench.provider().acknowledge(heldBy(first))
      await bench.store.transitionRun({ scope: RUN, expectedStatus: 'running', status: 'completed', lease: leaseOf(first) })
    },
  },
  {
    name: 'S4: what is not acknowledged in time is claimed again by one of many; its first holder has lost it',
    needs: 'leases',
    async run(bench) {
      const first = await claimFor(bench, await bench.claimable('paid'), SHORT)
      await delay(OVER)
      assert.equal(await winners(...[1, 2, 3].map(() => claimFor(bench, first, LONG))), 1)
      const second = await bench.now(first)
      assert.deepEqual([second.status, second.revision, second.result], ['claimed', 4, 'paid'])
      await bench.unchanged(second, () => bench.provider().acknowledge(heldBy(first)), 'lease_lost')
      const end = { scope: RUN, expectedStatus: 'running', status: 'completed' } as const
      await refused(bench.store.transitionRun({ ...end, lease: leaseOf(first) }), 'checkpoint_conflict')
      await refused(bench.store.transitionRun(end), 'checkpoint_conflict')
      assert.equal((await bench.store.getRun(RUN))?.status, 'running')
      await bench.store.transitionRun({ ...end, lease: leaseOf(second) })
      await bench.provider().acknowledge(heldBy(second))
    },
  },
  {
    name: 'S4: what is acknowledged is given to nobody again, however long ago; once more is as good',
    needs: 'leases',
    async run(bench) {
      const held = await claimFor(bench, await bench.claimable(), SHORT)
      await bench.provider().acknowledge(heldBy(held))
      await bench.provider().acknowledge(heldBy(held))
      await delay(OVER)
      await bench.unchanged(held, () => claimFor(bench, held, LONG), 'already_claimed')
      await bench.unchanged(held, () => bench.claim(held), 'already_claimed')
    },
  },
  {
    name: 'S4: a claim for good stays one: nobody takes it over, and its run is written without a lease',
    needs: 'leases',
    async run(bench) {
      const armed = await bench.claimable()
      const held = await bench.claim(armed)
      await bench.unchanged(held, () => claimFor(bench, held, LONG), 'already_claimed')
      await bench.store.transitionRun({ scope: RUN, expectedStatus: 'running', status: 'completed' })
    },
  },
]
