import { describe, expect, it } from 'vitest'
import type { JsonValue } from '../../src/base/index.ts'
import { Payload } from '../../src/base/index.ts'
import {
  DEFAULT_DENIAL,
  decodeState,
  encodeState,
  FOLD_VERSION,
  foldStream,
  harnessState,
  idempotencyKey,
  initial,
  messageHistory,
  stateHash,
} from '../../src/projections/index.ts'
import { recordsOf } from '../support/legal-threads.ts'
import * as draft from '../support/thread-drafts.ts'
import { ThreadScript } from '../support/thread-script.ts'

/** A thread that waited for one call, got this answer, and took it into its history. */
function answered(kind: 'external' | 'approval', value: JsonValue | undefined, settlement: 'returned' | 'denied' | 'failed') {
  const script = new ThreadScript('order_1')
    .open()
    .run({ calls: ['a'] })
    .suspend([{ call: 'a', wait: 'w-1', kind }])
  const resumed = { runId: 'run-2', invocationId: script.runId, agent: 'alpha', revision: '1' }
  script
    .add(draft.answered('w-1', 2, 'result', value))
    .add(
      { type: 'continuation.claimed/1', data: { continuation_id: 'w-1', revision: 3 } },
      draft.started(resumed, { id: 'o', kind: 'engine' }, { kind: 'batch', continuation_ids: ['w-1'] }),
      draft.settled('a', settlement, 0, 'w-1'),
      draft.composed(2, ['a']),
    )
  return foldStream(recordsOf(script.commits)).state
}
const lastPart = (state: Parameters<typeof messageHistory>[0]) => messageHistory(state).at(-1)!.parts[0]

describe('a call answered from outside', () => {
  it.each<[string, 'external' | 'approval', JsonValue | undefined, 'returned' | 'denied' | 'failed', object]>([
    ['with a value', 'external', { reference: 'r-1' }, 'returned', { content: { reference: 'r-1' }, outcome: 'success' }],
    ['with null', 'external', null, 'returned', { content: null, outcome: 'success' }],
    [
      'with a failure',
      'external',
      undefined,
      'failed',
      { content: { error: { code: 'declined', retryable: false } }, outcome: 'failed' },
    ],
    ['with a denial', 'approval', { approved: false, message: 'too much' }, 'denied', { content: 'too much', outcome: 'denied' }],
    ['with a denial without a reason', 'approval', { approved: false }, 'denied', { content: DEFAULT_DENIAL, outcome: 'denied' }],
  ])('%s is in the history as a tool return', (_, kind, value, settlement, expected) => {
    const state = answered(kind, value, settlement)
    expect(lastPart(state)).toMatchObject({ part_kind: 'tool-return', tool_call_id: 'a', tool_name: 'pay', ...expected })
    // The event refers to the result and does not copy it; a snapshot holds the resolved message.
    expect(messageHistory(decodeState(encodeState(state)))).toEqual(messageHistory(state))
  })
})

describe('a snapshot', () => {
  it('of another fold version is refused', () => {
    const other = { ...(encodeState(initial) as object), fold_version: FOLD_VERSION + 1 } as JsonValue
    for (const value of [other, null, [], 'text'])
      expect(() => decodeState(value)).toThrow(expect.objectContaining({ code: 'snapshot_invalid', disposition: 'reject' }))
  })

  it('keeps payloads that look like its own tags', () => {
    const data = { $map: [['a', 1]], $list: [], $json: 2, $facts: null, role: 'request', template: 1, response: -1 }
    const script = new ThreadScript('order_1').open()
    script.add({ type: 'capability.written/1', data: { capability_id: '$json', version: '1', data: Payload.of(data) } })
    const { state } = foldStream(recordsOf(script.commits))
    const restored = decodeState(Payload.fromBytes(Payload.of(encodeState(state)).bytes).value)
    expect(restored.capabilities.get('$json')?.data.value).toEqual(data)
    expect(stateHash(restored)).toBe(stateHash(state))
  })
})

describe('the response of an open batch', () => {
  it('survives a snapshot when a revision has replaced it in the history', () => {
    const script = new ThreadScript('order_1')
      .open()
      .run({ calls: ['a'] })
      .add(draft.revised(1))
    const { state } = foldStream(recordsOf(script.commits))
    const restored = decodeState(Payload.fromBytes(Payload.of(encodeState(state)).bytes).value)
    expect(state.batch?.response.template.value).toMatchObject({ kind: 'response' })
    expect(restored.batch?.response.template.value).toEqual(state.batch?.response.template.value)
    expect(stateHash(restored)).toBe(stateHash(state))
  })
})

describe('a HarnessState', () => {
  it('of a foreign session with a free id cannot be', () => {
    const { state } = foldStream(recordsOf(new ThreadScript('Order 991').open().commits))
    expect(() => harnessState(state)).toThrow(expect.objectContaining({ code: 'thread_id_invalid' }))
  })

  it('keeps a capability whatever its name', () => {
    const script = new ThreadScript('order_1').open()
    script.add({ type: 'capability.written/1', data: { capability_id: '__proto__', version: '1', data: Payload.of({ n: 1 }) } })
    const { state } = foldStream(recordsOf(script.commits))
    expect(harnessState(state).entry('__proto__')).toEqual({ version: '1', data: { n: 1 } })
  })

  it('carries on what an import brought, unknown fields included', () => {
    const script = new ThreadScript('order_1')
    const imported = draft.importedState('order_1', [])
    script.add(draft.opened(script.key, 'imported', imported))
    const exported = harnessState(foldStream(recordsOf(script.commits)).state)
    expect(exported.unknownFields).toEqual({ 'x.unknown': [1] })
    expect(exported.messageHistory).toEqual(imported.message_history)
  })
})

describe('idempotencyKey', () => {
  it('is a fixed function of thread, response and call', () => {
    const key = idempotencyKey('0'.repeat(64), 'v7', 'call-1')
    expect(key).toBe('524eea11fbcb44fa13db687c2b8defa8b0da1ed8fc4d6f3d1fab19ef2c3dfeb8')
    expect(
      new Set([key, idempotencyKey('0'.repeat(64), 'v8', 'call-1'), idempotencyKey('0'.repeat(64), 'm7', 'call-1')]).size,
    ).toBe(3)
  })
})
