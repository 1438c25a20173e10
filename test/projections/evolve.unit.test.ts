import { describe, expect, it } from 'vitest'
import type { EventDraft, LogEvent } from '../../src/events/index.ts'
import { evolve, foldStream, initial, Proposal, type ThreadState, threadStatus } from '../../src/projections/index.ts'
import { ACTOR, recordsOf } from '../support/legal-threads.ts'
import * as draft from '../support/thread-drafts.ts'
import { ThreadScript } from '../support/thread-script.ts'

const stateOf = (script: ThreadScript): ThreadState => {
  const { state, quarantine } = foldStream(recordsOf(script.commits))
  expect(quarantine).toBeUndefined()
  return state
}
const apply = (script: ThreadScript, ...drafts: EventDraft[]): ThreadState => {
  const context = { stream: script.stream, now: 1_795_000_000_000, actor: ACTOR, runId: script.runId, attempt: 1 }
  return Proposal.on(stateOf(script), context).add(...drafts).state
}

const fresh = () => new ThreadScript('order_1')
const idle = () => fresh().open()
const running = () => idle().run({ calls: ['a', 'b'] })
const waiting = () =>
  running().suspend([
    { call: 'a', wait: 'w-1' },
    { call: 'b', wait: 'w-2' },
  ])
const done = (run_id: string): EventDraft => ({ type: 'run.completed/1', data: { run_id, output: draft.json(1) } })
const wait = (type: 'armed' | 'claimed', revision: number): EventDraft => ({
  type: `continuation.${type}/1`,
  data: { continuation_id: 'w-1', revision },
})
const over = (type: 'cancelled' | 'expired' | 'abandoned', revision: number): EventDraft => ({
  type: `continuation.${type}/1`,
  data: { continuation_id: 'w-1', revision, failure: null },
})
const again = { runId: 'run-2', invocationId: 'run-2', agent: 'alpha', revision: '1' }
const owner = { id: 'o-1', kind: 'engine' as const }

describe('evolve refuses', () => {
  it.each<[string, () => ThreadScript, EventDraft[]]>([
    ['a thread that begins with anything but its opening', fresh, [draft.requested('r', 'alpha', 'x')]],
    ['a second opening', idle, [draft.opened(idle().key, 'new', null)]],
    ['a second run', running, [draft.started(again, owner)]],
    ['the end of a run that is not there', idle, [done('r')]],
    ['the end of another run', running, [done('r')]],
    ['the end of a run whose waits are open', waiting, [done(running().runId)]],
    ['a response without a run', idle, [draft.responded(1, 'x')]],
    ['a recovery without a run', idle, [{ type: 'run.recovered/1', data: { run_id: 'r', attempt: 2, owner, why: 'gone' } }]],
    ['a dispatch without a response', idle, [draft.dispatched('a', 1)]],
    ['a dispatch number that does not follow', running, [draft.dispatched('a', 2)]],
    ['a dispatch number twice', running, [draft.dispatched('a', 1), draft.dispatched('a', 1)]],
    ['a dispatch of a settled call', running, [draft.settled('a', 'returned'), draft.dispatched('a', 1)]],
    ['a call settled twice', running, [draft.settled('a', 'returned'), draft.settled('a', 'unknown')]],
    ['a call settled by a wait without an outcome', waiting, [draft.settled('a', 'returned', 0, 'w-1')]],
    ['a call settled by an unknown wait', running, [draft.settled('a', 'returned', 0, 'w-1')]],
    ['a request that names an open call', running, [draft.composed(2, ['a'])]],
    [
      'a request that names a call twice',
      running,
      [draft.settled('a', 'returned'), draft.composed(2, ['a']), draft.composed(3, ['a'])],
    ],
    ['a revision of a message that does not exist', running, [draft.revised(9)]],
    ['a wait no suspension names', running, draft.waiting('w-1')],
    ['a wait twice', waiting, draft.waiting('w-1')],
    ['a suspension without a response', () => idle(), [{ type: 'run.suspended/1', data: { run_id: 'r', batch: [] } }]],
    ['a revision that does not follow', waiting, [draft.answered('w-1', 3, 'result', 1)]],
    ['two answers', waiting, [draft.answered('w-1', 2, 'result', 1), draft.answered('w-1', 3, 'result')]],
    ['a claim of what is not answered', waiting, [wait('claimed', 2)]],
    ['a second claim', waiting, [draft.answered('w-1', 2, 'result', 1), wait('claimed', 3), wait('claimed', 4)]],
    ['a cancellation of what is answered', waiting, [draft.answered('w-1', 2, 'result', 1), over('cancelled', 3)]],
    ['an expiry of what is answered', waiting, [draft.answered('w-1', 2, 'result', 1), over('expired', 3)]],
    ['an answer to what has expired', waiting, [over('expired', 2), draft.answered('w-1', 3, 'result', 1)]],
    ['arming what is over', waiting, [over('abandoned', 2), wait('armed', 3)]],
  ])('%s', (_, script, drafts) => {
    const refused = { code: 'event_unfoldable', disposition: 'fatal' }
    expect(() => apply(script(), ...drafts)).toThrow(expect.objectContaining(refused))
  })
})

describe('evolve', () => {
  it('refuses an opening of a kind a newer version knows', () => {
    const [event] = recordsOf(idle().commits).map((record) => record.event as LogEvent<'thread.opened/1'>)
    const unknown = { ...event, data: { ...event?.data, kind: 'unrecognised' } } as LogEvent
    expect(() => evolve(initial, unknown)).toThrow(expect.objectContaining({ code: 'event_unfoldable', disposition: 'fatal' }))
  })

  it('ends a request that never began as its own invocation', () => {
    const state = stateOf(idle().request('alpha', 'r').end('failed', 'r'))
    expect(state.requested).toEqual([])
    expect(state.invocations.get('r')).toMatchObject({ status: 'failed', invocationId: 'r' })
    expect(threadStatus(state)).toBe('idle')
  })

  it('knows which run a command asked for', () => {
    const state = apply(idle(), draft.requested('r', 'alpha', 'x', 'command-1'))
    expect(state.commands.get('command-1')).toBe('r')
  })

  it('returns to the suspension when its resume is refused, and remembers the revision', () => {
    const state = stateOf(waiting().answer('w-1').answer('w-2').refuse('w-1', '2'))
    expect(state.run).toMatchObject({
      status: 'suspended',
      waitIds: ['w-1', 'w-2'],
      blocked: { code: 'tool_threw', revision: '2' },
    })
    expect(state.runs.get('refused by 2')?.status).toBe('failed')
    expect(state.invocations.size).toBe(0)
    expect(threadStatus(state)).toBe('resolved')
  })

  it('ends a queued request without touching a resume that is being tried', () => {
    const script = waiting().answer('w-1').answer('w-2').request('alpha', 'queued')
    const tried = { ...again, invocationId: script.runId }
    const state = apply(
      script,
      draft.started(tried, owner, { kind: 'batch', continuation_ids: ['w-1', 'w-2'] }),
      draft.failed('queued'),
    )
    expect(state.run).toMatchObject({ runId: 'run-2', status: 'running' })
    expect(state.invocations.get('queued')?.status).toBe('failed')
    expect(state.requested).toEqual([])
  })

  it('gives each response its own calls: a repeated id is another call', () => {
    const script = running()
    const state = apply(
      script,
      ...[draft.settled('a', 'returned'), draft.settled('b', 'returned'), draft.composed(2, ['a', 'b'])],
      draft.responded(2, 'again', [draft.call('a')]),
      draft.dispatched('a', 1),
    )
    expect(state.batch).toMatchObject({ origin: `v8/${script.runId}` })
    expect(state.batch?.calls.get('a')).toMatchObject({ settled: undefined, dispatch: { number: 1 } })
  })

  it('counts retries of a tool until it has another outcome', () => {
    const once = apply(running(), draft.settled('a', 'retried'))
    expect([...once.run!.retries]).toEqual([['tool', 1]])
    expect([...apply(running(), draft.settled('a', 'retried'), draft.settled('b', 'retried')).run!.retries]).toEqual([
      ['tool', 2],
    ])
    expect([...apply(running(), draft.settled('a', 'retried'), draft.settled('b', 'returned')).run!.retries]).toEqual([])
  })

  it('keeps the raw response as the batch’s when a revision replaces it in the history', () => {
    const state = apply(running(), draft.revised(1))
    expect(state.history.at(1)?.role).toBe('request')
    expect(state.batch?.response.template.value).toMatchObject({ kind: 'response' })
  })

  it('opens the calls of an imported last response under its place', () => {
    const key = fresh().key
    const state = apply(fresh(), draft.opened(key, 'imported', draft.importedState(key.thread, [draft.call('i-1')])))
    expect(state.batch).toMatchObject({ origin: 'm1', attempt: null })
    expect(state.history.length).toBe(2)
    expect(state.capabilities.get('notes')?.version).toBe('1')
  })
})
