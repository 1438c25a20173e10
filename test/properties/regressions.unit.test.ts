import { expect, test } from 'vitest'
import { type JsonValue, Payload } from '../../src/base/index.ts'
import type { EventDraft } from '../../src/events/index.ts'
import { open, recover, request, resume, start } from '../../src/harness/begin.ts'
import { advance, cancel } from '../../src/harness/plan.ts'
import { responseMessage, toolCallPart } from '../../src/messages/index.ts'
import { initial, Proposal, type ThreadState, type Wait } from '../../src/projections/index.ts'
import { agentOf, toolbox } from '../support/agents.ts'

// What the played worlds found, as examples.

const context = {
  stream: 'a'.repeat(64),
  now: 1_000,
  actor: { kind: 'test', id: '', source: '' },
  runId: 'run-1',
  attempt: 1,
}
const owner = { id: 'o', kind: 'engine' } as const
const agent = agentOf([], Object.values(toolbox().tools))
let waits = 0
const environment = {
  agent,
  inFlight: new Set<string>(),
  missed: new Set<string>(),
  continuationId: () => `w${++waits}`,
  startByMs: 5,
}

/** A run in mode `always` whose model has made one call. */
function called(tool: string): ThreadState {
  const options = { toolRecovery: 'always', toolErrors: 'return' } as const
  const key = { application: 'a', user: 'u', thread: 'thread_a' }
  const wanted = { runId: 'run-1', agent: 'agent', input: 'go', options, commandId: null }
  const asked = request(open(Proposal.on(initial, context), key), wanted)
  const begun = advance(start(asked, asked.state.requested[0] as never, agent, owner), environment).proposal
  const part = toolCallPart({ tool_call_id: 'c1', tool_name: tool, args: '{"n":1}' })
  const message = Payload.of(responseMessage({ parts: [part], timestamp: '2026-01-01T00:00:00Z' }) as unknown as JsonValue)
  const data = { step: 1, message, usage: Payload.of({}), replaces_previous: false }
  return advance(begun.add({ type: 'model.responded/1', data }), environment).proposal.state
}

function answered(state: ThreadState, value: JsonValue): ThreadState {
  const [wait] = [...state.waits.values()] as [Wait]
  const draft: EventDraft = {
    type: 'continuation.completed/1',
    data: {
      continuation_id: wait.id,
      revision: wait.revision + 1,
      result_id: 'r',
      digest: 'd'.repeat(64),
      source: { cluster: null, topic: null, partition: null, offset: null, record_time: null, api: 'a', command_id: 'c' },
      value: Payload.of(value),
    },
  }
  return Proposal.on(state, context).add(draft).state
}

const resumed = (state: ThreadState, runId: string): Proposal => resume(Proposal.on(state, context), runId, agent, owner)

// A guarded call that was dispatched under an approval and interrupted suspends again. The recovery rule for its old dispatch stood before
// the new approval, so the call asked for an approval for ever and never ran.
test('a call approved anew after its dispatch was interrupted runs', () => {
  const first = advance(resumed(answered(called('guarded'), { approved: true }), 'run-2'), environment)
  expect(first.starts).toMatchObject([{ callId: 'c1', number: 1, approved: true }])
  const taken = recover(Proposal.on(first.proposal.state, context), owner, 'owner-gone')
  const again = advance(taken, environment)
  expect(again.proposal.state.run?.status).toBe('suspended')
  const second = advance(resumed(answered(again.proposal.state, { approved: true }), 'run-3'), environment)
  expect(second.starts).toMatchObject([{ callId: 'c1', number: 2, approved: true, key: first.starts[0]?.key }])
})

// A process that is closing claims the answers of a batch and stops before it settles them; then the run is cancelled. The cut closed
// every open call as unknown, so the model was told that no result had been recorded.
test('a cut settles a claimed answer as what it is', () => {
  const begun = resumed(answered(called('far'), { ok: true }), 'run-2')
  const cut = cancel(begun, 'no longer wanted')
  const settled = cut.drafts.find((draft) => draft.type === 'tool.settled/1')
  expect(settled?.data).toMatchObject({ call_id: 'c1', settlement: 'returned' })
  expect([...cut.state.closedWaits].map(([, wait]) => wait.status)).toEqual(['claimed'])
})
