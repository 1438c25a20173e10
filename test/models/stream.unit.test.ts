import { APICallError } from '@ai-sdk/provider'
import { expect, test } from 'vitest'
import { countingIds } from '../../src/base/index.ts'
import { parseArgs, parseMessage, type ResponseMessage, type ResponsePart } from '../../src/messages/index.ts'
import { type Delta, type ModelOutcome, RECORDED_MODEL, type ScriptEntry, scriptedModel } from '../../src/models/index.ts'
import { vectorsOf } from '../support/vectors/files.ts'
import { ask, finish, NOW, rawModel } from './raw-model.ts'

const text = (id: string, ...deltas: string[]) => [
  { type: 'text-start', id },
  ...deltas.map((delta) => ({ type: 'text-delta', id, delta })),
  { type: 'text-end', id },
]
const call = (toolCallId: string, input = '{}', more = {}) => ({ type: 'tool-call', toolCallId, toolName: 't', input, ...more })
const responseOf = (outcome: ModelOutcome): ResponseMessage => {
  expect(outcome.kind).toBe('response')
  return (outcome as { message: ResponseMessage }).message
}
const failureOf = (outcome: ModelOutcome) => {
  expect(outcome.kind).toBe('failed')
  return outcome as Extract<ModelOutcome, { kind: 'failed' }>
}

/** The normal form of the recorded vectors. */
const normal = (part: ResponsePart) => {
  if (part.part_kind === 'text') return { kind: 'text', content: part.content }
  if (part.part_kind === 'thinking') return { kind: 'thinking', content: part.content, signature: part.signature }
  if (part.part_kind === 'tool-call' || part.part_kind === 'builtin-tool-call') {
    const args = parseArgs(part)
    return {
      kind: part.part_kind,
      tool_call_id: part.tool_call_id,
      tool_name: part.tool_name,
      args: args.ok ? args.value : { $unparsed: part.args },
    }
  }
  if (part.part_kind !== 'builtin-tool-return') throw new Error(part.part_kind)
  const { tool_call_id, tool_name, outcome, content } = part
  return { kind: part.part_kind, tool_call_id, tool_name, outcome, content }
}

for (const vector of vectorsOf('harness', 'interrupted-stream'))
  test(`${vector.id}: ${vector.title}`, async () => {
    const kept: unknown[] = []
    const stored: unknown[] = []
    for (const entry of vector.model_script as ScriptEntry[]) {
      const abort = new AbortController()
      const outcome = ask(scriptedModel([entry], RECORDED_MODEL), { signal: abort.signal })
      if (entry.then === 'hang') setTimeout(() => abort.abort(), 20)
      const { kind, ...rest } = await outcome
      expect(kind).toBe(
        entry.then === 'hang' ? 'cancelled' : entry.then === 'disconnect' || entry.fail_before ? 'failed' : 'response',
      )
      const message = 'message' in rest ? rest.message : 'partial' in rest ? rest.partial : undefined
      if (message === undefined) continue
      expect(parseMessage(JSON.parse(JSON.stringify(message)), { now: NOW })).toEqual(message)
      kept.push({ role: 'response', state: message.state, parts: message.parts.map(normal) })
      stored.push(message)
    }
    expect(kept).toEqual(vector.expect.history.filter((m: { role: string }) => m.role === 'response'))
    const recorded = (vector.expect.state?.message_history ?? []) as { kind: string; parts: { timestamp?: string }[] }[]
    expect(asParsed(stored)).toEqual(asParsed(recorded.filter((message) => message.kind === 'response')))
  })

/** Streamed arguments are text; the other side spells it with spaces. */
const asParsed = (messages: unknown[]) =>
  JSON.parse(JSON.stringify(messages), (key, value) =>
    key === 'args' && typeof value === 'string' ? ['text', parseArgs({ args: value })] : value,
  )

test('a whole response: envelope, usage, order, deltas', async () => {
  const deltas: Delta[] = []
  const outcome = await ask(
    rawModel([
      { type: 'stream-start', warnings: [] },
      { type: 'response-metadata', id: 'resp_1', modelId: 'raw-1-2026' },
      { type: 'reasoning-start', id: '0' },
      { type: 'reasoning-delta', id: '0', delta: 'think' },
      { type: 'reasoning-delta', id: '0', delta: '', providerMetadata: { anthropic: { signature: 'sig', redacted: false } } },
      { type: 'reasoning-end', id: '0' },
      { type: 'text-start', id: '0' },
      { type: 'tool-input-start', id: 'c1', toolName: 't' },
      { type: 'text-delta', id: '0', delta: 'he' },
      { type: 'tool-input-delta', id: 'c1', delta: '{"a"' },
      { type: 'text-delta', id: '0', delta: 'llo' },
      { type: 'text-end', id: '0', providerMetadata: { openai: { itemId: 'msg_1' } } },
      { type: 'tool-input-delta', id: 'c1', delta: ':oops' },
      { type: 'tool-input-end', id: 'c1' },
      call('c1', '{"a":oops'),
      call('', '{}'),
      { type: 'raw', rawValue: {} },
      finish('tool-calls', 'tool_use'),
    ]),
    { runId: 'run-1', threadId: 'thr_a', ids: countingIds(), onDelta: (delta) => deltas.push(delta) },
  )
  const message = responseOf(outcome)
  expect(message).toMatchObject({
    kind: 'response',
    state: 'complete',
    model_name: 'raw-1-2026',
    provider_name: 'raw.chat',
    provider_response_id: 'resp_1',
    provider_details: { finish_reason: 'tool_use' },
    finish_reason: 'tool_call',
    run_id: 'run-1',
    conversation_id: 'thr_a',
    usage: { input_tokens: 3, cache_read_tokens: 1, output_tokens: 5, output_reasoning_tokens: 2 },
  })
  expect(message.parts).toMatchObject([
    {
      part_kind: 'thinking',
      content: 'think',
      signature: 'sig',
      provider_name: 'anthropic',
      provider_details: { redacted: false },
    },
    { part_kind: 'text', content: 'hello', provider_name: 'openai', provider_details: { itemId: 'msg_1' } },
    { part_kind: 'tool-call', tool_call_id: 'c1', args: '{"a":oops' },
    { part_kind: 'tool-call', tool_call_id: `call_${countingIds().token()}`, args: '{}' },
  ])
  expect(parseMessage(JSON.parse(JSON.stringify(message)), { now: NOW })).toEqual(message)
  expect(deltas.map((d) => [d.type, d.index])).toEqual([
    ['thinking', 0],
    ['text', 1],
    ['tool-call', 2],
    ['text', 1],
    ['tool-call', 2],
    ['tool-call', 2],
    ['tool-call', 3],
  ])
})

test('states: a pause suspends, an unfinished stream of the provider is interrupted', async () => {
  expect(responseOf(await ask(rawModel([...text('0', 'a'), finish('stop', 'pause_turn')]))).state).toBe('suspended')
  const interrupted = responseOf(
    await ask(rawModel([...text('0', 'a'), { type: 'tool-input-start', id: 'c', toolName: 't' }, finish('interrupted')])),
  )
  expect(interrupted).toMatchObject({ state: 'interrupted', finish_reason: null, parts: [{ content: 'a' }] })
  expect(await ask(rawModel([finish('interrupted')]))).toMatchObject({
    kind: 'failed',
    code: 'model_stream_ended',
    retryable: true,
  })
  const long = await ask(rawModel([...text('0', 'a'), { type: 'tool-input-start', id: 'c', toolName: 't' }, finish('length')]))
  expect(responseOf(long)).toMatchObject({ state: 'complete', finish_reason: 'length', parts: [{ content: 'a' }] })
  expect(failureOf(await ask(rawModel([...text('0', 'a'), finish('error')])))).toMatchObject({
    retryable: true,
    partial: { parts: [{ content: 'a' }] },
  })
})

test('provider-executed calls, files, sources and custom content have their parts', async () => {
  const message = responseOf(
    await ask(
      rawModel([
        ...text('0', 'see'),
        { type: 'source', sourceType: 'url', id: 's', url: 'https://example.com/', title: 'T' },
        call('n1', '{"q":1}', { providerExecuted: true, toolName: 'web_search' }),
        { type: 'tool-result', toolCallId: 'n1', toolName: 'web_search', result: { preview: true }, preliminary: true },
        { type: 'tool-result', toolCallId: 'n1', toolName: 'web_search', result: { hits: [] }, isError: true },
        { type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([251, 255]) } },
        { type: 'custom', kind: 'openai.state', providerMetadata: { openai: { blob: 'x' } } },
        finish(),
      ]),
    ),
  )
  expect(message.parts).toMatchObject([
    { part_kind: 'text', citations: [{ sources: [{ url: 'https://example.com/', kind: 'web' }], anchor: null }] },
    { part_kind: 'builtin-tool-call', tool_name: 'web_search', args: { q: 1 } },
    { part_kind: 'builtin-tool-return', outcome: 'failed', content: { hits: [] } },
    { part_kind: 'file', content: { kind: 'binary', data: '-_8=', media_type: 'image/png' } },
    { part_kind: 'text', content: '', provider_details: { 'threadlog.custom': { type: 'custom', kind: 'openai.state' } } },
  ])
  expect(parseMessage(JSON.parse(JSON.stringify(message)), { now: NOW })).toEqual(message)
})

const FAULTS: [string, unknown[], string][] = [
  ['delta before start', [{ type: 'text-delta', id: '0', delta: 'a' }], 'part_not_started'],
  ['end before start', [{ type: 'reasoning-end', id: '0' }], 'part_not_started'],
  [
    'started twice',
    [
      { type: 'text-start', id: '0' },
      { type: 'text-start', id: '0' },
    ],
    'part_started_twice',
  ],
  ['input of no call', [{ type: 'tool-input-delta', id: 'c', delta: '{' }], 'part_not_started'],
  ['call never ended', [{ type: 'tool-input-start', id: 'c', toolName: 't' }, finish()], 'call_without_end'],
  ['same call id twice', [call('c'), call('c'), finish()], 'duplicate_call_id'],
  ['call without name', [call('c', '{}', { toolName: '' })], 'call_without_name'],
  ['call with object input', [call('c', {} as string)], 'call_without_input'],
  ['part after finish', [finish(), ...text('0', 'late')], 'part_after_finish'],
  ['approval of the provider', [{ type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' }], 'unsupported_part'],
  ['unknown part', [{ type: 'hologram' }], 'unsupported_part'],
  ['no part at all', ['text'], 'part_without_type'],
  [
    'metadata that is not JSON',
    [{ type: 'text-start', id: '0', providerMetadata: { x: { y: 1n } } }, { type: 'text-delta', id: '0', delta: 'a' }, finish()],
    'json_invalid',
  ],
]
for (const [name, parts, error_type] of FAULTS)
  test(`a stream that cannot be understood fails the request: ${name}`, async () => {
    const failure = failureOf(await ask(rawModel(parts)))
    expect(failure).toMatchObject({ code: 'model_response_invalid', retryable: false, details: { error_type } })
    expect(failure.partial?.state ?? 'interrupted').toBe('interrupted')
  })

test('text whose start was never seen counts in what is kept', async () => {
  const failure = failureOf(await ask(rawModel([...text('0', 'a'), { type: 'text-delta', id: '9', delta: 'b' }])))
  expect(failure.partial!.parts.map((part) => (part as { content: string }).content)).toEqual(['a', 'b'])
})

test('failures are told apart by shape and never quote the provider', async () => {
  const secret = 'the-secret-prompt'
  const api = (statusCode: number, responseHeaders = {}) =>
    new APICallError({
      message: secret,
      url: `https://${secret}`,
      requestBodyValues: { secret },
      responseBody: secret,
      statusCode,
      responseHeaders,
    })
  const asked = async (error: unknown) => {
    const failure = failureOf(await ask(rawModel([], { doStream: () => Promise.reject(error) })))
    expect(JSON.stringify(failure)).not.toContain(secret)
    return failure
  }
  expect(await asked(api(429, { 'retry-after': '2' }))).toMatchObject({
    code: 'model_request_failed',
    retryable: true,
    retryAfterMs: 2000,
    details: { error_type: 'AI_APICallError', status: 429 },
  })
  expect(await asked(api(503, { 'retry-after': 'Thu, 01 Jan 2026 00:01:00 GMT' }))).toMatchObject({ retryAfterMs: 60_000 })
  expect(await asked(api(400))).toMatchObject({ retryable: false, details: { status: 400 } })
  expect(await asked(Object.assign(new Error(secret), { lastError: api(500) }))).toMatchObject({
    retryable: true,
    details: { status: 500 },
  })
  expect(await asked(new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } }))).toMatchObject({ retryable: true })
  expect(await asked(new TypeError(secret))).toMatchObject({ retryable: false, details: { error_type: 'TypeError' } })
  expect(await asked(secret)).toMatchObject({ retryable: false, details: { error_type: 'Error' } })
  expect(await asked(undefined)).toMatchObject({ retryable: false })
  const inStream = failureOf(
    await ask(rawModel([...text('0', 'a'), { type: 'error', error: { type: 'overloaded_error', message: secret } }])),
  )
  expect(inStream).toMatchObject({
    retryable: true,
    details: { error_type: 'overloaded_error' },
    partial: { parts: [{ content: 'a' }] },
  })
  expect(JSON.stringify(inStream)).not.toContain(secret)
  expect(await ask(rawModel(text('0', 'a')))).toMatchObject({ kind: 'failed', code: 'model_stream_ended', retryable: true })
})

test('after finish a broken connection changes nothing', async () => {
  expect(responseOf(await ask(rawModel([...text('0', 'a'), finish(), new Error('reset')]))).state).toBe('complete')
})

test('an abort wins over what the provider makes of it, and over models that ignore it', async () => {
  const before = new AbortController()
  before.abort()
  expect(await ask(rawModel([]), { signal: before.signal })).toEqual({ kind: 'cancelled' })

  for (const doStream of [
    () => new Promise<never>(() => {}),
    async () => ({ stream: new ReadableStream({ start: (c) => c.enqueue({ type: 'text-start', id: '0' } as never) }) }),
  ]) {
    const abort = new AbortController()
    setTimeout(() => abort.abort(), 5)
    expect(await ask(rawModel([], { doStream }), { signal: abort.signal })).toEqual({ kind: 'cancelled' })
  }

  const translated = new AbortController()
  const model = rawModel([], {
    doStream: async () => {
      translated.abort()
      throw new APICallError({ message: 'socket', url: '', requestBodyValues: {}, statusCode: 500 })
    },
  })
  expect(await ask(model, { signal: translated.signal })).toEqual({ kind: 'cancelled' })
})

test('a watcher that throws fails the request, not the process', async () => {
  const outcome = await ask(rawModel([...text('0', 'a'), finish()]), {
    onDelta: () => {
      throw new RangeError('x')
    },
  })
  expect(failureOf(outcome).details.error_type).toBe('RangeError')
})

test('options reach the model', async () => {
  const model = scriptedModel([{ parts: [{ text: 'ok' }], usage: { input: 1, output: 2 } }])
  const outcome = await ask(model, {
    tools: [{ name: 't', description: 'd', inputSchema: { type: 'object' } }],
    responseFormat: { type: 'json', schema: { type: 'object' } },
    settings: { temperature: 0 },
  })
  expect(responseOf(outcome).usage).toMatchObject({ input_tokens: 1, output_tokens: 2 })
  expect(model.requests[0]).toMatchObject({
    temperature: 0,
    responseFormat: { type: 'json' },
    tools: [{ type: 'function', name: 't' }],
  })
  expect(model.prompts).toEqual([[{ role: 'user', content: [{ type: 'text', text: 'go' }] }]])
  expect(await ask(model)).toMatchObject({ kind: 'failed', retryable: false, details: { error_type: 'script_exhausted' } })
})
