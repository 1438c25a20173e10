import { expect, test } from 'vitest'
import { countingIds, systemIds } from '../../src/base/index.ts'
import { checkThreadId, HarnessState, isThreadId, openCalls } from '../../src/messages/index.ts'
import { vectorsOf } from './vectors.ts'

const caught = (run: () => unknown): { code?: string; path?: string } => {
  try {
    run()
  } catch (error) {
    return error as { code: string; path: string }
  }
  return {}
}
const pathOf = (loc: string[]): string =>
  loc.reduce((path, key) => (/^\d+$/.test(key) ? `${path}[${key}]` : `${path}.${key}`), '$')

for (const vector of vectorsOf('thread-id'))
  test(`${vector.id}: ${vector.title}`, () => {
    if (vector.kind === 'thread-id') {
      for (const { thread_id, ok } of vector.expect) {
        expect(isThreadId(thread_id), JSON.stringify(thread_id)).toBe(ok)
        expect(caught(() => checkThreadId(thread_id)).code).toBe(ok ? undefined : 'thread_id_invalid')
      }
      return
    }
    const [a, b] = [HarnessState.new({ ids: systemIds }), HarnessState.new({ ids: systemIds })]
    expect(a.threadId).toMatch(new RegExp(vector.expect.pattern))
    expect(a.threadId === b.threadId).toBe(!vector.expect.distinct)
    expect(HarnessState.new({ ids: countingIds() }).toJSON()).toEqual(vector.expect.initial_state)
  })

for (const vector of vectorsOf('state-roundtrip'))
  test(`${vector.id}: ${vector.title}`, () => {
    const { thread_id, messages, open_calls, namespaces, canonical, canonical_text } = vector.expect
    const state = HarnessState.parse(vector.input_text ?? vector.input)
    expect(state.threadId).toBe(thread_id)
    expect(state.messageHistory).toHaveLength(messages)
    expect(openCalls(state.messageHistory).map((call) => call.tool_call_id)).toEqual(open_calls)
    expect(Object.keys(state.entries).sort()).toEqual([...namespaces].sort())
    expect(state.toJSON()).toEqual(canonical)
    expect(state.toText()).toBe(canonical_text)
    expect(HarnessState.parse(canonical_text).toText()).toBe(canonical_text)
  })

for (const vector of vectorsOf('state-invalid'))
  test(`${vector.id}: ${vector.rule}`, () => {
    const error = caught(() => HarnessState.parse(vector.input_text ?? vector.input))
    expect(error.code).toBe('state_invalid')
    const first: string[] = vector.expect.rules[0].loc
    if (first[0] === 'message_history') expect(error.path).toMatch(/^\$\.message_history/)
    else expect(error.path).toBe(pathOf(first))
  })

test('a state is detached in both directions and frozen', () => {
  const source = {
    schema_version: '1',
    thread_id: 'thr_a',
    future: { a: 1 },
    agent_context_state: { entries: { x: { version: '1', data: [1] } } },
  }
  const state = HarnessState.parse(source)
  const before = state.toText()
  source.future.a = 2
  source.agent_context_state.entries.x.data.push(2)
  state.entries.x!.version = '9'
  state.unknownFields.future = null
  state.toJSON().thread_id = 'thr_b'
  state.messageHistory.push({} as never)
  expect(state.entry('x')).toEqual({ version: '1', data: [1] })
  expect(state.entry('toString')).toBeUndefined()
  expect(state.toText()).toBe(before)
  expect(() => Object.assign(state, { threadId: 'thr_b' })).toThrow(TypeError)
})

test('what JSON cannot hold is refused with its place', () => {
  const state = (data: unknown) => ({
    schema_version: '1',
    thread_id: 'thr_a',
    agent_context_state: { entries: { x: { version: '1', data } } },
  })
  expect(caught(() => HarnessState.parse(state(Number.NaN)))).toMatchObject({
    code: 'state_invalid',
    path: '$.agent_context_state.entries.x.data',
  })
  expect(caught(() => HarnessState.parse(state([1n])))).toMatchObject({ code: 'state_invalid' })
  expect(caught(() => HarnessState.parse('{'))).toMatchObject({ code: 'state_invalid', path: '$' })
  expect(caught(() => HarnessState.new({ threadId: 'a b', ids: systemIds })).code).toBe('thread_id_invalid')
})

test('keys named __proto__ survive', () => {
  const text =
    '{"schema_version":"1","thread_id":"thr_a","__proto__":{"x":1},"environment_states":{"__proto__":{"provider_key":"a","state_version":"1","state":{"__proto__":1}}}}'
  const state = HarnessState.parse(text)
  expect(state.toText()).toContain('"refs":[],"__proto__":{"x":1},"message_history":[]')
  expect(state.toText()).toContain('"__proto__":{"provider_key":"a","state_version":"1","state":{"__proto__":1}}')
})
