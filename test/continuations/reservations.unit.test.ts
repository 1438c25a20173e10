import { describe, expect, it } from 'vitest'
import { type Clock, isThreadlogError } from '../../src/base/index.ts'
import { ContinuationRecord, type LogContinuationStore } from '../../src/continuations/index.ts'
import { openThreadlog } from '../../src/index.ts'
import { type LogBackend, openLog } from '../../src/log/index.ts'
import { hastyClock } from '../support/continuation-play.ts'
import { gatedLog } from '../support/gated-log.ts'

const session = (sessionId: string, runId: string) => ({ applicationId: 'shop', userId: 'ann', sessionId, runId })
const [FIRST, SECOND] = [session('first', 'run-1'), session('second', 'run-2')]

const storeOn = async (log: LogBackend, clock?: Clock) =>
  (await openThreadlog({ log, ...(clock ? { clock } : {}) })).continuationStore()

const suspend = (store: LogContinuationStore, scope: typeof FIRST, continuationId: string, provider = 'bank') =>
  store.suspendContinuation({
    record: new ContinuationRecord({ ...scope, continuationId, provider, capability: 'workflow.run', schemaId: 'result/v1' }),
    externalId: 'job-1',
  })

const reason = async (work: Promise<unknown>): Promise<unknown> => {
  try {
    await work
    return 'done'
  } catch (error) {
    if (!isThreadlogError(error)) throw error
    return error.details['reason'] ?? error.code
  }
}
const byExternalId = { applicationId: 'shop', provider: 'bank', externalId: 'job-1' }

describe('a reservation', () => {
  it('is not withdrawn once its thread rests on it, however long that took', async () => {
    // The doubter has waited long enough and is about to withdraw when the suspension is written. Withdrawing all the same would give
    // the external id to two waits.
    const backend = await openLog('memory')
    const [slow, doubter] = [gatedLog(backend, 'continuation.suspended/1'), gatedLog(backend, 'reservation.withdrawn/1')]
    const here = await storeOn(slow.log)
    const there = await storeOn(
      doubter.log,
      hastyClock(() => 10_000),
    )
    for (const scope of [FIRST, SECOND]) await here.beginRun({ scope, framework: 'adk' })
    const first = suspend(here, FIRST, 'c1')
    await slow.reached
    const second = reason(suspend(there, SECOND, 'c2'))
    await doubter.reached
    slow.open()
    expect((await first).continuationId).toBe('c1')
    doubter.open()
    expect(await second).toBe('external_id_taken')
    expect((await there.getContinuationByExternalId(byExternalId))?.record.continuationId).toBe('c1')
    expect(await there.getRun(SECOND)).toMatchObject({ status: 'running', revision: 0 })
    await backend.close()
  })

  it('that was withdrawn voids what its thread still writes for it; the thread asks anew and hears who has it: row 92', async () => {
    const backend = await openLog('memory')
    const slow = gatedLog(backend, 'continuation.suspended/1')
    const [here, there] = [
      await storeOn(slow.log),
      await storeOn(
        backend,
        hastyClock(() => 10_000),
      ),
    ]
    for (const scope of [FIRST, SECOND]) await here.beginRun({ scope, framework: 'adk' })
    const first = reason(suspend(here, FIRST, 'c1'))
    await slow.reached
    expect((await suspend(there, SECOND, 'c2')).continuationId).toBe('c2')
    slow.open()
    expect(await first).toBe('external_id_taken')
    expect(await here.getRun(FIRST)).toMatchObject({ status: 'running', revision: 0 })
    expect(await here.getContinuation({ scope: FIRST, continuationId: 'c1' })).toBeNull()
    await backend.close()
  })

  it('of a deleted run is not given back under the same run that began again meanwhile', async () => {
    // Between the deletion and the release the same run may begin once more, on the reservation it finds. Releasing it then would let
    // another session have a run of that id.
    const backend = await openLog('memory')
    const slow = gatedLog(backend, 'reservation.released/1')
    const [here, there] = [await storeOn(slow.log), await storeOn(backend)]
    await here.beginRun({ scope: FIRST, framework: 'adk' })
    const deleted = here.deleteRun(FIRST)
    await slow.reached
    expect(await there.beginRun({ scope: FIRST, framework: 'adk' })).toMatchObject({ status: 'running', revision: 0 })
    slow.open()
    await deleted
    expect(await reason(there.beginRun({ scope: session('second', 'run-1'), framework: 'adk' }))).toBe('checkpoint_conflict')
    await backend.close()
  })

  it('rests on the wait with its own external id, not on another one of that continuation id', async () => {
    // A suspension lost to another one with the same continuation id and another provider. Taken for confirmed, its external id would be
    // reserved for ever.
    const backend = await openLog('memory')
    const slow = gatedLog(backend, 'continuation.suspended/1')
    const [here, there] = [await storeOn(slow.log), await storeOn(backend)]
    for (const scope of [FIRST, SECOND]) await here.beginRun({ scope, framework: 'adk' })
    const lost = reason(suspend(here, FIRST, 'c1', 'post'))
    await slow.reached
    await suspend(there, FIRST, 'c1')
    slow.open()
    expect(await lost).toBe('run_not_running')
    expect((await suspend(there, SECOND, 'c2', 'post')).provider).toBe('post')
    await backend.close()
  })
})
