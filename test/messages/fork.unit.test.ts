import { expect, test } from 'vitest'
import { countingIds, type JsonObject, type JsonValue } from '../../src/base/index.ts'
import { HarnessState } from '../../src/messages/index.ts'

const child = (id: string, thread: string, more: JsonObject = {}): JsonObject => ({
  child_definition_id: 'd',
  child_instance_id: id,
  child_thread_id: thread,
  refs: [],
  state: { key: 'k', digest: '0'.repeat(64), size: 1 },
  subagent_name: id.slice(0, -5),
  ...more,
})
const state = (data: JsonValue) =>
  HarnessState.parse({
    schema_version: '1',
    thread_id: 'thr_a',
    agent_context_state: { entries: { 'a13n.subagents': { version: '2', data } } },
  })
const scout = child('scout-00ff', 'thr_c')

test('case 35: a fork onto its own thread is refused', () => {
  const own = state({ children: {} })
  expect(() => own.fork({ threadId: 'thr_a' })).toThrow(expect.objectContaining({ code: 'state_fork_same_thread' }))
})

test('case 37: children that are nobody else get fresh threads, in the order of their ids', () => {
  const source = state({ children: { 'scout-00ff': scout, 'a-b-0001': child('a-b-0001', 'thr_d') }, more: 1 })
  const fork = source.fork({ threadId: 'thr_b', ids: countingIds() })
  const { data } = fork.entry('a13n.subagents') as unknown as { data: { children: Record<string, JsonObject>; more: number } }
  expect(Object.entries(data.children).map(([id, one]) => [id, one['child_thread_id']])).toEqual([
    ['a-b-0001', `thread_${'1'.padStart(32, '0')}`],
    ['scout-00ff', `thread_${'2'.padStart(32, '0')}`],
  ])
  expect(data.more).toBe(1)
  expect(data.children['scout-00ff']?.['state']).toEqual(scout['state'])
})

test.each<[string, JsonValue]>([
  ['no object', 1],
  ['no children', {}],
  ['children in a list', { children: [] }],
  ['a child that is none', { children: { 'scout-00ff': 1 } }],
  ['a key that is not the id', { children: { 'scout-00fe': scout } }],
  ['an id without a name', { children: { 'scout-00ff': { ...scout, subagent_name: 'other' } } }],
  ['an id without four digits', { children: { scout: child('scout', 'thr_c', { subagent_name: 'scout' }) } }],
  ['no thread', { children: { 'scout-00ff': { ...scout, child_thread_id: 'Not A Thread' } } }],
  ['two on one thread', { children: { 'scout-00ff': scout, 'scout-00fe': child('scout-00fe', 'thr_c') } }],
])('case 37: a registry with %s is refused, and nothing is forked', (_, data) => {
  expect(() => state(data).fork({ threadId: 'thr_b' })).toThrow(
    expect.objectContaining({ code: 'capability_state_invalid', kind: 'StateError' }),
  )
})
