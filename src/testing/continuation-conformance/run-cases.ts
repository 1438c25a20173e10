import assert from 'node:assert/strict'
import { type ContinuationCase, OTHER, RUN, refused, scopeWith, winners } from './suite.ts'

const action = { type: 'human_approval', actionId: 'a-1', capability: 'ask.person' } as const
const end = (status: 'completed' | 'failed' | 'cancelled') => ({ scope: RUN, expectedStatus: 'running', status }) as const
const wait = { scope: RUN, expectedStatus: 'running', status: 'waiting' } as const
const goOn = { scope: RUN, expectedStatus: 'waiting', status: 'running' } as const

export const runCases: ContinuationCase[] = [
  {
    name: '60: one run of a session is active; the same run begins once, and an ended one makes room',
    async run(bench) {
      const first = await bench.begin()
      assert.deepEqual([first.status, first.revision, first.pendingAction], ['running', 0, null])
      const next = scopeWith({ runId: 'run-3' })
      await refused(bench.begin(next), 'checkpoint_conflict')
      assert.equal((await bench.begin()).revision, 0)
      await bench.store.transitionRun(end('completed'))
      assert.equal((await bench.begin()).status, 'completed')
      assert.equal((await bench.begin(next)).status, 'running')
      assert.equal((await bench.begin(OTHER)).status, 'running')
    },
  },
  {
    name: '60: a run id is one run, wherever; it is free again when its run is deleted',
    async run(bench) {
      await bench.begin()
      for (const part of [{ applicationId: 'billing' }, { userId: 'user-2' }, { sessionId: 'session-2' }])
        await refused(bench.begin(scopeWith(part)), 'checkpoint_conflict')
      await refused(bench.store.beginRun({ scope: RUN, framework: 'adk' }), 'checkpoint_conflict')
      await bench.store.deleteRun(RUN)
      assert.equal((await bench.begin(scopeWith({ userId: 'user-2' }))).status, 'running')
    },
  },
  {
    name: 'settled A2: deleting an ended run leaves the active one its session',
    async run(bench) {
      await bench.begin()
      await bench.store.transitionRun(end('completed'))
      await bench.begin(scopeWith({ runId: 'run-2' }))
      await bench.store.deleteRun(RUN)
      await refused(bench.begin(scopeWith({ runId: 'run-3' })), 'checkpoint_conflict')
    },
  },
  {
    name: '61: waiting keeps the action, running clears it, once each',
    async run(bench) {
      await bench.begin()
      const waiting = await bench.store.transitionRun({ ...wait, pendingAction: action })
      assert.deepEqual([waiting.status, waiting.revision, { ...waiting.pendingAction }], ['waiting', 1, action])
      await refused(bench.store.transitionRun({ ...wait, pendingAction: action }), 'checkpoint_conflict')
      const running = await bench.store.transitionRun(goOn)
      assert.deepEqual([running.status, running.revision, running.pendingAction], ['running', 2, null])
      await refused(bench.store.transitionRun(goOn), 'checkpoint_conflict')
    },
  },
  {
    name: '62: of two moves at once one counts',
    async run(bench) {
      await bench.begin()
      assert.equal(await winners(bench.store.transitionRun(end('completed')), bench.store.transitionRun(end('failed'))), 1)
      assert.equal((await bench.store.getRun(RUN))?.revision, 1)
    },
  },
  {
    name: '63: a foreign run is not read, not moved and not deleted',
    async run(bench) {
      await bench.begin()
      for (const part of [{ userId: 'user-2' }, { sessionId: 'session-2' }, { applicationId: 'billing' }, { runId: 'run-2' }]) {
        const scope = scopeWith(part)
        assert.equal(await bench.store.getRun(scope), null)
        await refused(bench.store.transitionRun({ ...end('failed'), scope }), 'not_found')
        await bench.store.deleteRun(scope)
      }
      assert.equal((await bench.store.getRun(RUN))?.status, 'running')
    },
  },
  {
    name: '64: waiting is not completed, an end is the end, and an action is there exactly when a run waits',
    async run(bench) {
      await bench.begin()
      const move = (o: Parameters<typeof bench.store.transitionRun>[0]) => bench.store.transitionRun(o)
      await refused(
        invoke(() => move({ ...goOn, status: 'completed' })),
        'checkpoint_conflict',
      )
      await refused(
        invoke(() => move(wait)),
        'invalid_argument',
      )
      await refused(
        invoke(() => move({ ...end('failed'), pendingAction: action })),
        'invalid_argument',
      )
      await move(end('failed'))
      for (const status of ['running', 'waiting', 'completed', 'cancelled'] as const)
        await refused(
          invoke(() => move({ scope: RUN, expectedStatus: 'failed', status })),
          'checkpoint_conflict',
        )
      assert.equal((await bench.store.getRun(RUN))?.revision, 1)
    },
  },
  {
    name: 'settled C: a plain move cannot make a run wait for a continuation',
    needs: 'guarded',
    async run(bench) {
      const armed = await bench.claimable()
      const { pendingAction } = armed
      await bench.store.transitionRun(goOn)
      await refused(
        invoke(() => bench.store.transitionRun({ ...wait, pendingAction })),
        'invalid_argument',
      )
      await bench.conflict(bench.claim(armed), 'run_not_waiting')
    },
  },
  {
    name: '59: a run that ends while it suspends either waits and ends, or ends and leaves no wait',
    async run(bench) {
      await bench.begin()
      const [suspended] = await Promise.allSettled([bench.suspend(), bench.store.transitionRun(end('failed'))])
      const pending = (await bench.provider().listPending()).length
      assert.equal(pending, suspended.status === 'fulfilled' ? 1 : 0)
      assert.equal((await bench.store.getRun(RUN))?.status, suspended.status === 'fulfilled' ? 'waiting' : 'failed')
    },
  },
]

/** A refusal may be thrown or rejected. */
const invoke = async (work: () => Promise<unknown>): Promise<unknown> => work()
