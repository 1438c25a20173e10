import { describe, expect, it } from 'vitest'
import { jsonDigest } from '../../../src/base/index.ts'
import { foldStream, harnessState, INLINE_STATE } from '../../../src/projections/index.ts'
import { openIndexLog } from '../../support/index-log.ts'
import { recordsOf } from '../../support/legal-threads.ts'
import * as draft from '../../support/thread-drafts.ts'
import { ThreadScript } from '../../support/thread-script.ts'

const waiting = () =>
  new ThreadScript('order_1', { user: 'u/17' })
    .open()
    .run({ calls: ['a', 'b'] })
    .suspend([
      { call: 'a', wait: 'w-1' },
      { call: 'b', wait: 'w-2' },
    ])

describe('checkpointsOut', () => {
  it('publishes the whole state of a suspension, behind its waits, as a CloudEvent', async () => {
    await using log = await openIndexLog()
    const script = waiting()
    await log.append(...script.commits)
    const records = recordsOf(script.commits)
    const state = harnessState(foldStream(records).state).toJSON()
    const boundary = records.find(({ event }) => event!.type === 'run.suspended/1')!
    const [checkpoint, ...more] = await log.topic('checkpoints')
    expect(more).toEqual([])
    expect(checkpoint).toEqual({
      key: script.stream,
      headers: {
        specversion: '1.0',
        id: `${boundary.event!.commit.id}:0`,
        source: '/threadlog/app',
        type: 'threadlog.checkpoint/1',
        subject: 'app/u%2F17/order_1',
        time: new Date(boundary.event!.time).toISOString(),
        datacontenttype: 'application/json',
      },
      value: {
        application_id: 'app',
        user_id: 'u/17',
        thread_id: 'order_1',
        stream: script.stream,
        version: 9,
        hash: records[8]!.hash,
        run_id: script.runId,
        invocation_id: script.runId,
        status: 'suspended',
        time: boundary.event!.time,
        state_digest: jsonDigest(state),
        position: { partition: 0, offset: '9' },
        waits: ['w-1', 'w-2'],
        state,
      },
    })
  })

  it('leaves out a state larger than the limit and keeps its digest', async () => {
    await using log = await openIndexLog()
    const script = new ThreadScript('order_1').open().run()
    const data = (size: number) => ({ capability_id: 'big', version: '1', data: draft.json('x'.repeat(size)) })
    const size = async (bytes: number) => {
      script.add({ type: 'capability.written/1', data: data(bytes) }).end('completed')
      await log.append(...script.commits.slice(-2))
      const { value } = (await log.topic('checkpoints')).at(-1)!
      script.run()
      await log.append(script.commits.at(-1)!)
      return value
    }
    await log.append(...script.commits)
    const small = await size(1)
    const rest = Buffer.byteLength(JSON.stringify(small.state))
    // The next run adds two messages; only an upper bound is needed.
    expect((await size(INLINE_STATE - 2 * rest)).state).not.toBeNull()
    const large = await size(INLINE_STATE)
    expect(large.state).toBeNull()
    expect(large.state_digest).toMatch(/^[0-9a-f]{64}$/)
  })

  it.each(['completed', 'failed', 'cancelled'] as const)('marks a run that %s', async (how) => {
    await using log = await openIndexLog()
    const script = new ThreadScript('order_1').open().run().end(how)
    await log.append(...script.commits)
    expect((await log.topic('checkpoints')).map(({ value }) => [value.status, value.run_id, value.waits])).toEqual([
      [how, script.runId, []],
    ])
  })

  it('shows of a commit the last boundary, and not the run that begins behind it', async () => {
    await using log = await openIndexLog()
    const script = new ThreadScript('order_1').open().run().request('alpha', 'run-x').request('alpha', 'run-y')
    const next = { runId: 'run-y', invocationId: 'run-y', agent: 'alpha', revision: '1' }
    const ended = (run_id: string) => ({ type: 'run.cancelled/1' as const, data: { run_id, reason: 'stop' } })
    script.add(ended(script.runId), ended('run-x'), draft.started(next, { id: 'o', kind: 'engine' }), draft.composed(1))
    await log.append(...script.commits)
    const published = await log.topic('checkpoints')
    expect(published.map(({ value }) => [value.run_id, value.version, value.state.message_history.length])).toEqual([
      ['run-x', 8, 2],
    ])
  })

  it('gives none for an end that never was: not before its repair, and not after', async () => {
    await using log = await openIndexLog()
    const script = new ThreadScript('order_1').open().run()
    script.add({ type: 'run.completed/1', data: { run_id: 'nobody', output: draft.json(1) } })
    script.end('cancelled').add({ type: 'thread.repaired/1', data: { version: 5, reason: 'tested' } })
    await log.append(...script.commits.slice(0, -1))
    expect(await log.topic('checkpoints')).toEqual([])
    await log.append(script.commits.at(-1)!)
    expect((await log.topic('checkpoints')).map(({ value }) => [value.status, value.version])).toEqual([['cancelled', 6]])
  })

  it('names the invocation a resumed run belongs to', async () => {
    await using log = await openIndexLog()
    const script = waiting().answer('w-1').answer('w-2')
    await log.append(...script.refuse('w-1', '2').commits)
    expect((await log.topic('checkpoints')).at(-1)!.value).toMatchObject({
      ...{ status: 'failed', run_id: 'refused by 2', invocation_id: script.runId, waits: [] },
    })
  })
})
