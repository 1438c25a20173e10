import { describe, expect, it } from 'vitest'
import { sha256Hex } from '../../../src/base/index.ts'
import type { EventDraft } from '../../../src/events/index.ts'
import { idempotencyKey } from '../../../src/projections/index.ts'
import { openIndexLog } from '../../support/index-log.ts'
import { recordsOf } from '../../support/legal-threads.ts'
import * as draft from '../../support/thread-drafts.ts'
import { ThreadScript } from '../../support/thread-script.ts'

const over = (type: 'cancelled' | 'expired' | 'abandoned', continuation_id: string, revision = 2): EventDraft => ({
  type: `continuation.${type}/1`,
  data: { continuation_id, revision, failure: null },
})
const suspended = () =>
  new ThreadScript('order_1')
    .open()
    .run({ calls: ['call-1', 'call-2'] })
    .suspend([
      { call: 'call-1', wait: 'w-1', deadline: 1_800_000_000_000, externalId: 'job-1' },
      { call: 'call-2', wait: 'w-2', kind: 'approval', provider: 'human' },
    ])

describe('requestsOut', () => {
  it('publishes what a provider must know, exactly so', async () => {
    await using log = await openIndexLog()
    const script = suspended()
    await log.append(...script.commits)
    const [first, second] = await log.topic('requests')
    // Versions: opened 1, started 2, composed 3, responded 4, run.suspended 5, then suspended and armed of each wait.
    expect(first).toEqual({
      key: script.stream,
      headers: {
        specversion: '1.0',
        id: 'w-1',
        source: '/threadlog/app',
        type: 'threadlog.request/1',
        subject: 'w-1',
        time: new Date(recordsOf(script.commits)[6]!.event!.time).toISOString(),
        datacontenttype: 'application/json',
      },
      value: {
        application_id: 'app',
        provider: 'payouts',
        capability: 'tool.call',
        continuation_id: 'w-1',
        external_id: 'job-1',
        schema_id: 'schema/1',
        tool: 'tool/client/pay',
        arguments: { cents: 1 },
        idempotency_key: sha256Hex(JSON.stringify(['threadlog/call/1', script.stream, `v4/${script.runId}`, 'call-1'])),
        proposal_digest: sha256Hex('call-1'),
        deadline: 1_800_000_000_000,
        stream: script.stream,
        version: 7,
      },
    })
    expect(second!.value).toMatchObject({ continuation_id: 'w-2', provider: 'human', deadline: null, version: 9 })
    expect(second!.value.idempotency_key).toBe(idempotencyKey(script.stream, `v4/${script.runId}`, 'call-2'))
  })

  it.each(['cancelled', 'expired', 'abandoned'] as const)('takes a request back when its wait is %s', async (how) => {
    await using log = await openIndexLog()
    await log.append(...suspended().add(over(how, 'w-1')).commits)
    const [first, , last, ...rest] = await log.topic('requests')
    expect(rest).toEqual([])
    expect(last!.value).toEqual({ ...first!.value, version: 10, cancelled: true })
    expect(last!.headers).toMatchObject({ id: 'w-1:cancelled', type: 'threadlog.request-cancelled/1', subject: 'w-1' })
  })

  it('says nothing when a wait is answered or claimed', async () => {
    await using log = await openIndexLog()
    const script = suspended().answer('w-1').answer('w-2')
    const claims = ['w-1', 'w-2'].map(
      (continuation_id): EventDraft => ({ type: 'continuation.claimed/1', data: { continuation_id, revision: 3 } }),
    )
    const run = { runId: 'run-2', invocationId: script.runId, agent: 'alpha', revision: '1' }
    const trigger = { kind: 'batch' as const, continuation_ids: ['w-1', 'w-2'] }
    await log.append(...script.add(...claims, draft.started(run, { id: 'o', kind: 'engine' }, trigger)).commits)
    expect(await log.topic('requests')).toHaveLength(2)
  })

  it('does not ask for a wait that ended within its own commit', async () => {
    await using log = await openIndexLog()
    const script = new ThreadScript('order_1').open().run({ calls: ['call-1'] })
    const item = draft.item('call-1', 'external', 'w-1')
    const [begun] = draft.waiting('w-1')
    script.add({ type: 'run.suspended/1', data: { run_id: script.runId, batch: [item] } }, begun!, over('cancelled', 'w-1', 1))
    await log.append(...script.commits)
    expect(await log.topic('requests')).toEqual([])
    expect(log.waits(script.stream)).toMatchObject([{ status: 'cancelled', ready: 0, revision: 1 }])
  })

  it('asks again, under another key, when a later response repeats a call id', async () => {
    await using log = await openIndexLog()
    const script = suspended().add(over('cancelled', 'w-1'), over('cancelled', 'w-2')).end('cancelled')
    script.run({ calls: ['call-1'] }).suspend([{ call: 'call-1', wait: 'w-3' }])
    await log.append(...script.commits)
    const records = (await log.topic('requests')).filter(({ value }) => !value.cancelled).map(({ value }) => value)
    expect(records.map((record) => record.continuation_id)).toEqual(['w-1', 'w-2', 'w-3'])
    expect(new Set(records.map((record) => record.idempotency_key)).size).toBe(3)
  })
})
