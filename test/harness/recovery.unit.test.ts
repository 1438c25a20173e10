import { expect, test } from 'vitest'
import { countingIds, type JsonValue, Payload } from '../../src/base/index.ts'
import type { EventDraft, ToolRecovery } from '../../src/events/index.ts'
import { open, recover, request, start } from '../../src/harness/begin.ts'
import { advance } from '../../src/harness/plan.ts'
import { responseMessage, toolCallPart } from '../../src/messages/index.ts'
import { initial, Proposal } from '../../src/projections/index.ts'
import { agentOf, toolbox } from '../support/agents.ts'

const stream = 'a'.repeat(64)
const ids = countingIds()
const context = { stream, now: 1_000, actor: { kind: 'test', id: '', source: '' }, runId: 'run-1', attempt: 1 }
const owner = { id: 'o', kind: 'library' } as const
const { tools } = toolbox()
const agent = agentOf([], Object.values(tools))
const environment = {
  agent,
  inFlight: new Set<string>(),
  missed: new Set<string>(),
  continuationId: (index: number) => `w${index}`,
  startByMs: 5,
}

/** A run whose owner died after the response, with the named calls dispatched. */
function crashed(mode: ToolRecovery, made: [id: string, tool: string, args: JsonValue][], dispatched: string[]) {
  const options = { toolRecovery: mode, toolErrors: 'throw' } as const
  const key = { application: 'a', user: 'u', thread: 'thread_a' }
  const wanted = { runId: 'run-1', agent: 'agent', input: 'go', options, commandId: null }
  const asked = request(open(Proposal.on(initial, context), key), wanted)
  const begun = start(asked, asked.state.requested[0] as never, agent, owner)
  const parts = made.map(([tool_call_id, tool_name, args]) =>
    toolCallPart({ tool_call_id, tool_name, args: JSON.stringify(args) }),
  )
  const message = Payload.of(responseMessage({ parts, timestamp: '2026-01-01T00:00:00Z' }) as unknown as JsonValue)
  const responded: EventDraft = {
    type: 'model.responded/1',
    data: { step: 1, message, usage: Payload.of({}), replaces_previous: false },
  }
  const live = advance(begun, environment).proposal.add(responded)
  const sent = dispatched.map((call_id): EventDraft => {
    const data = {
      call_id,
      tool: 't',
      arguments_digest: 'b'.repeat(64),
      number: 1,
      idempotency_key: `key-${call_id}`,
      start_by_ms: 5,
      changed_proposal: null,
    }
    return { type: 'tool.dispatched/1', data }
  })
  return live.add(...sent).state
}

/** What the next attempt proposes, event by event, in short. */
function recovered(mode: ToolRecovery, made: [string, string, JsonValue][], dispatched: string[]) {
  const state = crashed(mode, made, dispatched)
  const next = recover(Proposal.on(state, { ...context, attempt: 2 }), { id: 'p', kind: 'engine' }, 'owner-gone')
  const plan = advance(next, environment)
  const short = plan.proposal.drafts.map((draft) => {
    if (draft.type === 'tool.settled/1')
      return `settled ${draft.data.call_id} ${draft.data.settlement} ${draft.data.reason ?? ''}`.trim()
    if (draft.type === 'tool.dispatched/1') return `dispatched ${draft.data.call_id} #${draft.data.number}`
    return draft.type.replace('/1', '')
  })
  return { short: short.slice(1), next: plan.next, starts: plan.starts }
}

const call = (tool: string, args: JsonValue = { n: 1 }): [string, string, JsonValue] => [`c-${tool}`, tool, args]

// State spec §4.2 for calls that were dispatched when the owner died.
test.each<[ToolRecovery, string, string[]]>([
  ['never', 'safe', ['settled c-safe unknown interrupted', 'request.composed']],
  ['never', 'plain', ['settled c-plain unknown interrupted', 'request.composed']],
  ['declared', 'safe', ['dispatched c-safe #2']],
  ['declared', 'plain', ['settled c-plain unknown interrupted', 'request.composed']],
  ['always', 'safe', ['dispatched c-safe #2']],
  ['always', 'plain', ['dispatched c-plain #2']],
  ['always', 'gone', ['settled c-gone unknown tool-gone', 'request.composed']],
  ['declared', 'gone', ['settled c-gone unknown tool-gone', 'request.composed']],
  ['declared', 'guarded', ['settled c-guarded unknown interrupted', 'request.composed']],
  ['always', 'guarded', ['run.suspended', 'continuation.suspended', 'continuation.armed']],
])('%s: a dispatched call of %s', (mode, tool, expected) => {
  expect(recovered(mode, [call(tool)], [`c-${tool}`]).short).toEqual(expected)
})

// The ledger says for certain that these never began.
test.each<[ToolRecovery, string, string[]]>([
  ['never', 'plain', ['settled c-plain unknown not-started', 'request.composed']],
  ['declared', 'plain', ['dispatched c-plain #1']],
  ['always', 'plain', ['dispatched c-plain #1']],
  ['declared', 'gone', ['settled c-gone retried', 'request.composed']],
  ['declared', 'guarded', ['run.suspended', 'continuation.suspended', 'continuation.armed']],
  ['declared', 'far', ['run.suspended', 'continuation.suspended', 'continuation.armed']],
  ['never', 'far', ['settled c-far unknown not-started', 'request.composed']],
])('%s: a call of %s that was never dispatched', (mode, tool, expected) => {
  expect(recovered(mode, [call(tool)], []).short).toEqual(expected)
})

test('a replayed call keeps its idempotency key and is not approved', () => {
  const first = recovered('declared', [call('safe')], ['c-safe']).starts[0]
  const again = recovered('always', [call('safe')], ['c-safe']).starts[0]
  expect(first?.key).toMatch(/^[0-9a-f]{64}$/)
  expect(again?.key).toBe(first?.key)
  expect(first?.approved).toBe(false)
})

test('arguments that no longer fit are answered, not run', () => {
  expect(recovered('always', [call('safe', { n: 'x' })], ['c-safe']).short).toEqual([
    'settled c-safe retried',
    'request.composed',
  ])
})

test('mixed: the marked one runs first, then the rest suspends', () => {
  const { short, next } = recovered('declared', [call('safe'), call('guarded'), call('plain')], ['c-safe', 'c-plain'])
  expect(short).toEqual(['dispatched c-safe #2', 'settled c-plain unknown interrupted'])
  expect(next).toBe('calls')
})

test('ids come with the command: the same command decides the same events (R2)', () => {
  const state = crashed('declared', [call('far')], [])
  const decide = () => advance(recover(Proposal.on(state, { ...context, attempt: 2 }), owner, 'x'), environment).proposal.drafts
  expect(JSON.stringify(decide())).toBe(JSON.stringify(decide()))
  expect(ids.run()).toMatch(/^run-/)
})
