import { expect, test, vi } from 'vitest'
import { systemIds } from '../../src/base/index.ts'
import { HarnessState } from '../../src/messages/index.ts'

const caught = (run: () => unknown): { code?: string; path?: string } => {
  try {
    run()
  } catch (error) {
    return error as { code: string; path: string }
  }
  return {}
}

test('case 12, 13, 14, 27: a state is detached in both directions and frozen', () => {
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

test('case 31: the order of keys in capability data does not matter, that of environment observations neither', () => {
  const state = (data: object) =>
    HarnessState.parse({
      schema_version: '1',
      thread_id: 'thr_a',
      agent_context_state: { entries: { x: { version: '1', data: [data] } } },
      environment_states: { w: { provider_key: 'local', state_version: '1', state: { deep: data } } },
    }).toText()
  expect(state({ b: 1, a: { d: 2, c: 3 } })).toBe(state({ a: { c: 3, d: 2 }, b: 1 }))
  expect(state({ a: 1 })).not.toBe(state({ a: true }))
})

test('case 29: one entry is had without a copy of the others', () => {
  const state = HarnessState.parse({
    schema_version: '1',
    thread_id: 'thr_a',
    agent_context_state: { entries: { big: { version: '1', data: 'x'.repeat(4 << 20) }, small: { version: '2', data: 1 } } },
  })
  const cloned = vi.spyOn(globalThis, 'structuredClone')
  expect(state.entry('small')).toEqual({ version: '2', data: 1 })
  expect(cloned.mock.calls.map(([value]) => JSON.stringify(value).length < 100)).toEqual([true])
  cloned.mockRestore()
})

test('keys named __proto__ survive', () => {
  const text =
    '{"schema_version":"1","thread_id":"thr_a","__proto__":{"x":1},"environment_states":{"__proto__":{"provider_key":"a","state_version":"1","state":{"__proto__":1}}}}'
  const state = HarnessState.parse(text)
  expect(state.toText()).toContain('"refs":[],"__proto__":{"x":1},"message_history":[]')
  expect(state.toText()).toContain('"__proto__":{"provider_key":"a","state_version":"1","state":{"__proto__":1}}')
})
