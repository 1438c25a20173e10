import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { externalIdKey, reservationStream } from '../../src/continuations/index.ts'
import type { EventType } from '../../src/events/index.ts'
import { openThreadlog } from '../../src/index.ts'
import { listWaits } from '../../src/projections/index.ts'
import { checkStream } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { effects } from '../support/processes/ledger.ts'
import { places } from '../support/processes/place.ts'
import { eventsOf } from '../support/processes/streams.ts'
import { jobOf, submittingAgent } from '../support/processes/submitting.ts'

// An engine is killed at each point between the dispatch of a submission and the suspension; another one finishes it (continuation spec §3.3).

const place = places()

const POINTS: readonly [where: string, at: { after?: EventType; hangs?: true }, submissions: number, generation: number][] = [
  ['dispatched and not submitted', { after: 'tool.dispatched/1' }, 1, 1],
  ['submitted and not reserved', { hangs: true }, 2, 1],
  ['reserved and not suspended', { after: 'reservation.taken/1' }, 2, 1],
  ['suspended', { after: 'run.suspended/1' }, 1, 1],
]

test.each(POINTS)(
  'killed where a job is %s: it is submitted again with the same key, and has one wait: rows 92, 93',
  async (_, at, submissions, generation) => {
    const { file, log, ledger } = place()
    await using threads = await openThreadlog({ log, application: 'shop', agents: [submittingAgent(ledger, async () => {})] })
    const child = await Child.start('submitter.ts', { file, ledger, ...at })
    const run = await threads.start({ agent: 'submitting', thread: 'order_1', input: 'ship' })
    await child.must('reached')
    await child.kill()

    await threads.serve({ sweepMs: 50 })
    const stream = threads.thread('order_1').stream
    const pending = () => listWaits(threads.backend.tables, { application: 'shop' })
    while (pending().length === 0) await delay(20)
    const done = effects(ledger)
    expect(done).toHaveLength(submissions)
    expect(new Set(done.map(({ key }) => key)).size).toBe(1)
    const id = jobOf(done[0]?.key ?? '')
    const [wait] = pending()
    expect(wait).toMatchObject({ external_id: id, tool_name: 'job' })

    const reserved = reservationStream({
      kind: 'external_id',
      application: 'shop',
      provider: 'jobs',
      key: externalIdKey('jobs', id),
    })
    const { reservation } = await threads.store.load(reserved)
    expect(reservation).toMatchObject({ status: 'taken', generation, holder: { thread: 'order_1', id: wait?.continuation_id } })
    expect((await threads.submit({ provider: 'jobs', external_id: id, result: { ok: true } })).verdict).toBe('accepted')
    expect(await run.result()).toMatchObject({ status: 'completed', output: 'did ship' })
    await checkStream(threads.store, stream)
    const types = (await eventsOf(threads.backend, stream)).map(({ type }) => type)
    expect(types.filter((type) => type === 'continuation.suspended/1')).toHaveLength(1)
  },
  60_000,
)
