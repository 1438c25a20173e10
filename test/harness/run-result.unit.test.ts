import { expect, test } from 'vitest'
import { DeferredRequests, RunResult, type RunResultFields } from '../../src/harness/index.ts'
import { HarnessState, requestMessage, userPromptPart } from '../../src/messages/index.ts'

const timestamp = '2026-01-01T00:00:00Z'
const history = ['1', '2', '3'].map((content) => requestMessage({ parts: [userPromptPart({ content, timestamp })], timestamp }))
const state = HarnessState.of({ threadId: 'thr_a', messageHistory: history })
const thread = { application: 'a', user: 'u', thread: 'thr_a' }
const fields: RunResultFields<never> = {
  status: 'completed',
  thread,
  runId: 'r',
  invocationId: 'r',
  version: 7,
  state,
  output: 1,
  before: 1,
}

test('case 39: a result carries the state of its own thread', () => {
  const other = HarnessState.of({ threadId: 'thr_b' })
  expect(() => new RunResult({ ...fields, state: other })).toThrow(expect.objectContaining({ code: 'argument_value_invalid' }))
  expect(() => new RunResult(fields).replace({ state: other })).toThrow(
    expect.objectContaining({ code: 'argument_value_invalid' }),
  )
})

test('case 42: what a result shows is detached from what it holds and from what it was given', () => {
  const details = { limit: [1] }
  const failed = new RunResult<never>({
    ...fields,
    status: 'failed',
    output: null,
    failure: { code: 'x', message: 'y', details },
  })
  details.limit.push(2)
  expect(failed.failure?.details).toEqual({ limit: [1] })
  expect(() => (failed.failure!.details['limit'] as number[]).push(3)).toThrow(TypeError)
  const output = { list: [1] }
  const result = new RunResult({ ...fields, output })
  output.list.push(2)
  const shown = result.output as { list: number[] }
  expect(shown).toEqual({ list: [1] })
  expect(() => shown.list.push(3)).toThrow(TypeError)
  expect(result.output).toEqual({ list: [1] })
  result.allMessages().pop()
  result.newMessages()[0]!.parts.pop()
  expect(result.allMessages()).toEqual(history)
  expect(result.newMessages()).toEqual(history.slice(1))
})

test('case 40: a suspended result says what it waits for, and says it as it was', () => {
  const call = { toolCallId: 'c', toolName: 't', args: { n: [1] } }
  const deferred = new DeferredRequests({ calls: [{ modelCall: call, targetCall: call, identity: 'i' }] })
  const suspended = { ...fields, status: 'suspended' as const, output: null, suspendReason: 'deferred' as const }
  expect(() => new RunResult(suspended)).toThrow(expect.objectContaining({ code: 'argument_value_invalid' }))
  const result = new RunResult({ ...suspended, deferred })
  call.args.n.push(2)
  expect(result.deferred?.calls[0]?.modelCall.args).toEqual({ n: [1] })
})
