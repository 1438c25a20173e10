import { expect, test } from 'vitest'
import { isThreadlogError, type JsonValue } from '../../src/base/index.ts'
import {
  emptyUsage,
  isoTimestamp,
  openCalls,
  parseArgs,
  parseMessages,
  readTimestamp,
  requestMessage,
  responseMessage,
  retryFeedbackPart,
  systemPromptPart,
  textPart,
  thinkingPart,
  toolCallPart,
  toolReturnPart,
  toWire,
  userPromptPart,
} from '../../src/messages/index.ts'

const timestamp = '2026-01-01T00:00:00Z'
const parse = (messages: JsonValue) => parseMessages(messages, { now: timestamp })
const request = (...parts: JsonValue[]): JsonValue => ({ kind: 'request', parts })
const response = (...parts: JsonValue[]): JsonValue => ({ kind: 'response', parts })
const pathOf = (messages: JsonValue): string | undefined => {
  try {
    parse(messages)
  } catch (error) {
    if (isThreadlogError(error, 'message_history_invalid')) return error.path
    throw error
  }
  return undefined
}

test('constructors write every key in the order of the reader', () => {
  const messages = [
    requestMessage({
      parts: [
        systemPromptPart({ content: 's', timestamp }),
        userPromptPart({ content: ['a', { kind: 'cache-point', ttl: '5m' }], timestamp }),
        toolReturnPart({
          tool_name: 't',
          content: { a: 1 },
          tool_call_id: 'c',
          outcome: 'failed',
          timestamp: '2026-01-01T00:00:00.120Z',
        }),
        retryFeedbackPart({ content: 'again', retry: { cause: 'no_output', attempt: 1, max_retries: null }, timestamp }),
      ],
      timestamp,
    }),
    responseMessage({
      parts: [
        textPart({ content: 'x' }),
        thinkingPart({ content: 'y', signature: 's' }),
        toolCallPart({ tool_name: 't', tool_call_id: 'c' }),
      ],
      usage: { ...emptyUsage(), input_tokens: 3 },
      timestamp,
      state: 'interrupted',
    }),
  ]
  expect(JSON.stringify(messages.map((m) => toWire(m as unknown as JsonValue)))).toBe(JSON.stringify(messages))
  expect(messages[0]!.parts[2]).toMatchObject({ timestamp: '2026-01-01T00:00:00.120000Z', retry: null })
})

test('errors name the place and never the payload', () => {
  expect(pathOf({})).toBe('$')
  expect(pathOf([request(), { kind: 'note', parts: [] }])).toBe('$[1].kind')
  expect(pathOf([request({ part_kind: 'text', content: 'x' })])).toBe('$[0].parts[0].part_kind')
  expect(
    pathOf([request({ part_kind: 'user-prompt', content: ['a', { kind: 'binary', data: '***', media_type: 'a/b' }] })]),
  ).toBe('$[0].parts[0].content[1].data')
  expect(pathOf([response({ part_kind: 'text', content: 'x', citations: [{ sources: [{ kind: 'web' }] }] })])).toBe(
    '$[0].parts[0].citations[0].sources[0].url',
  )
  try {
    parse([response({ part_kind: 'tool-call', tool_name: { secret: 'x' } })])
  } catch (error) {
    expect(JSON.stringify(error)).not.toContain('secret')
  }
})

test('core tool kinds check their payload, others do not', () => {
  const call = (tool_kind: string, args: JsonValue, tool_name = 'search') => [
    response({ part_kind: 'tool-call', tool_name, tool_kind, args }),
  ]
  expect(pathOf(call('tool-search', { queries: ['a'] }))).toBeUndefined()
  expect(pathOf(call('tool-search', 'not even json'))).toBeUndefined()
  expect(pathOf(call('tool-search', { queries: 'a' }))).toBe('$[0].parts[0].args.queries')
  expect(pathOf(call('mine', { queries: 'a' }))).toBeUndefined()
  const returned = (more: { [key: string]: JsonValue }) => [
    request({
      part_kind: 'tool-return',
      tool_name: 'load_capability',
      tool_kind: 'capability-load',
      tool_call_id: 'c',
      content: 'x',
      ...more,
    }),
  ]
  expect(pathOf(returned({}))).toBe('$[0].parts[0].content')
  expect(pathOf(returned({ content: { instructions: 'do' } }))).toBeUndefined()
  expect(pathOf(returned({ outcome: 'failed' }))).toBeUndefined()
})

test('older names and forms are read', () => {
  const [older] = parse([
    {
      ...(response() as object),
      vendor_id: 'r',
      vendor_details: { a: 1 },
      usage: { request_tokens: 2, details: null, mine: 7, total_tokens: 9 },
    },
  ])
  expect(older).toMatchObject({
    provider_response_id: 'r',
    provider_details: { a: 1 },
    usage: { input_tokens: 2, details: {}, mine: 7 },
  })
  expect((older as unknown as { usage: object }).usage).not.toHaveProperty('total_tokens')
  const [retried] = parse([request({ part_kind: 'retry-prompt', content: 'no', tool_name: 't', tool_call_id: 'c' })])
  expect(retried!.parts[0]).toMatchObject({ part_kind: 'tool-return', outcome: 'retried', retry: null, content: 'no' })
})

test('a missing call id is made, the same one at each reading', () => {
  const messages = [response({ part_kind: 'tool-call', tool_name: 'a' }, { part_kind: 'tool-call', tool_name: 'a' })]
  const ids = (parse(messages)[0]!.parts as { tool_call_id: string }[]).map((part) => part.tool_call_id)
  expect(new Set(ids).size).toBe(2)
  expect((parse(messages)[0]!.parts as { tool_call_id: string }[]).map((part) => part.tool_call_id)).toEqual(ids)
})

test('bytes are written in the URL-safe alphabet, with identifiers', () => {
  const part = (data: string) =>
    parse([request({ part_kind: 'user-prompt', content: [{ kind: 'binary', data, media_type: 'a/b' }] })])
  const [written] = (part('+/+/')[0]!.parts[0] as { content: { data: string; identifier: string }[] }).content
  expect(written!.data).toBe('-_-_')
  expect(part('-_-_')).toEqual(part('+/+/'))
  expect(written!.identifier).toMatch(/^[0-9a-f]{6}$/)
  expect(() => part('+_')).toThrow()
})

test('arguments', () => {
  expect(parseArgs({})).toEqual({ ok: true, value: {} })
  expect(parseArgs({ args: null })).toEqual({ ok: true, value: {} })
  expect(parseArgs({ args: '' })).toEqual({ ok: true, value: {} })
  expect(parseArgs({ args: '{"a":1}' })).toEqual({ ok: true, value: { a: 1 } })
  for (const args of ['{"a":', '[1]', '1', '{"a":9007199254740993}']) expect(parseArgs({ args })).toEqual({ ok: false })
})

test('open calls are those of the latest response only', () => {
  const call = (tool_call_id: string) => toolCallPart({ tool_name: 't', tool_call_id })
  const answer = (tool_call_id: string) =>
    toolReturnPart({ tool_name: 't', tool_call_id, content: 1, outcome: 'retried', timestamp })
  const first = responseMessage({ parts: [call('old')], timestamp })
  const second = responseMessage({ parts: [call('a'), call('b'), call('c')], timestamp })
  const ask = (...ids: string[]) => requestMessage({ parts: ids.map(answer), timestamp })
  expect(openCalls([ask('a')])).toEqual([])
  expect(openCalls([first, ask('a'), second, ask('a'), ask('c')]).map((c) => c.tool_call_id)).toEqual(['b'])
})

test('timestamps', () => {
  expect(isoTimestamp(0)).toBe('1970-01-01T00:00:00Z')
  expect(isoTimestamp(1767225600120)).toBe('2026-01-01T00:00:00.120000Z')
  expect(readTimestamp(1767225600120)).toBe('2026-01-01T00:00:00.120000Z')
  expect(readTimestamp('2024-02-29T23:59:59-05:30')).toBe('2024-02-29T23:59:59-05:30')
  for (const bad of ['2026-02-29T00:00:00Z', '2026-13-01T00:00:00Z', '2026-01-01T24:00:00Z', 'now', '', null, {}, 1e15])
    expect(readTimestamp(bad)).toBeUndefined()
})
