import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { expect, test } from 'vitest'
import type { JsonValue } from '../../src/base/index.ts'
import { type Message, parseMessages } from '../../src/messages/index.ts'
import { fromModelMessages, toModelMessages } from '../../src/models/index.ts'
import { NOW } from './raw-model.ts'

const messages = (...list: JsonValue[]): Message[] => parseMessages(list, { now: NOW })
const request = (...parts: JsonValue[]): JsonValue => ({ kind: 'request', parts, timestamp: NOW })
const response = (...parts: JsonValue[]): JsonValue => ({ kind: 'response', parts, timestamp: NOW })
const back = (history: Message[]) => fromModelMessages(toModelMessages(history), { now: NOW })
const png = { kind: 'binary', data: '-_8=', media_type: 'image/png', vendor_metadata: { detail: 'low' } }
const returned = (more: { [key: string]: JsonValue }): JsonValue => ({
  part_kind: 'tool-return',
  tool_name: 't',
  tool_call_id: 'c',
  content: 'x',
  ...more,
})

/** One part per row: what goes in must come back, except what a prompt cannot hold. */
const REQUEST_PARTS: [string, JsonValue][] = [
  ['system prompt', { part_kind: 'system-prompt', content: 's' }],
  ['user text', { part_kind: 'user-prompt', content: 'hi' }],
  [
    'user items',
    {
      part_kind: 'user-prompt',
      content: [
        'look',
        png,
        { kind: 'image-url', url: 'https://example.com/a.png', force_download: 'allow-local' },
        { kind: 'document-url', url: 'https://example.com/a.pdf' },
        { kind: 'audio-url', url: 'https://example.com/a.mp3' },
        { kind: 'video-url', url: 'https://example.com/a.mp4' },
        { kind: 'uploaded-file', file_id: 'file-1', provider_name: 'openai', media_type: 'text/plain' },
        'more',
        { kind: 'cache-point', ttl: '1h' },
      ],
    },
  ],
  ['return: text', returned({})],
  ['return: object', returned({ content: { a: [1, null] } })],
  ['return: null', returned({ content: null })],
  [
    'return: files',
    returned({ content: ['t', png, { kind: 'image-url', url: 'https://example.com/a.png', media_type: 'image/png' }] }),
  ],
  ['return: failed', returned({ outcome: 'failed' })],
  ['return: failed object', returned({ outcome: 'failed', content: { error: { code: 'x', retryable: true } } })],
  ['return: denied', returned({ outcome: 'denied' })],
  ['return: denied object', returned({ outcome: 'denied', content: { why: 1 } })],
  ['return: interrupted', returned({ outcome: 'interrupted' })],
  ['return: retried', returned({ outcome: 'retried', retry: { cause: 'model_retry', attempt: 1, max_retries: 5 } })],
  ['retry feedback', { part_kind: 'retry-feedback', content: 'no', retry: { cause: 'no_output' } }],
  [
    'retry feedback errors',
    { part_kind: 'retry-feedback', content: [{ loc: ['a'], msg: 'missing' }], retry: { cause: 'validation_error' } },
  ],
  [
    'speech',
    {
      part_kind: 'speech',
      speaker: 'user',
      transcript: 'hello',
      audio: { kind: 'binary', data: 'aGk=', media_type: 'audio/wav' },
    },
  ],
  [
    'speech without transcript',
    { part_kind: 'speech', speaker: 'user', audio: { kind: 'binary', data: 'aGk=', media_type: 'audio/wav' } },
  ],
  ['instruction delta', { part_kind: 'instruction-delta', id: 'agent', content: 'y' }],
]
const RESPONSE_PARTS: [string, JsonValue][] = [
  ['text', { part_kind: 'text', content: 'x', provider_name: 'openai', provider_details: { itemId: 'm1' } }],
  [
    'thinking',
    { part_kind: 'thinking', content: 'plan', signature: 'sig', provider_name: 'anthropic', provider_details: { n: 1 } },
  ],
  ['empty thinking', { part_kind: 'thinking', content: '', signature: 'sig', provider_name: 'anthropic' }],
  [
    'call',
    {
      part_kind: 'tool-call',
      tool_name: 't',
      tool_call_id: 'c',
      args: { a: 1 },
      provider_name: 'google',
      provider_details: { s: 'x' },
    },
  ],
  ['call that does not parse', { part_kind: 'tool-call', tool_name: 't', tool_call_id: 'c', args: '{"a":' }],
  [
    'provider call',
    { part_kind: 'builtin-tool-call', tool_name: 'web', tool_call_id: 'n', args: { q: 1 }, provider_name: 'function' },
  ],
  [
    'provider return',
    { part_kind: 'builtin-tool-return', tool_name: 'web', tool_call_id: 'n', content: { a: 1 }, provider_name: 'function' },
  ],
  [
    'provider return failed',
    { part_kind: 'builtin-tool-return', tool_name: 'web', tool_call_id: 'n', content: 'x', outcome: 'failed' },
  ],
  ['file', { part_kind: 'file', content: { ...png, vendor_metadata: null } }],
  [
    'reasoning file',
    { part_kind: 'file', content: { ...png, vendor_metadata: null }, provider_details: { 'threadlog.reasoning': true } },
  ],
  ['compaction', { part_kind: 'compaction', content: 'sum', provider_name: 'anthropic' }],
  ['compaction without provider', { part_kind: 'compaction', content: 'sum' }],
  ['speech', { part_kind: 'speech', speaker: 'assistant', transcript: 'hello' }],
  [
    'custom',
    {
      part_kind: 'text',
      content: '',
      provider_details: { 'threadlog.custom': { type: 'custom', kind: 'a.b', providerOptions: { a: { x: 1 } } } },
    },
  ],
]
for (const [name, part] of REQUEST_PARTS)
  test(`there and back: ${name}`, () => {
    const history = messages(response({ part_kind: 'text', content: 'before' }), request(part))
    const expected = name === 'system prompt' ? [history[1], history[0]] : history
    expect(back(history)).toEqual(expected)
  })
for (const [name, part] of RESPONSE_PARTS)
  test(`there and back: ${name}`, () => {
    const history = messages(request({ part_kind: 'user-prompt', content: 'hi' }), response(part))
    expect(back(history)).toEqual(history)
  })

test('records of availability and baselines are not shown to a model', () => {
  const history = messages(
    request(
      { part_kind: 'tool-availability-delta', tools_added: ['a'] },
      { part_kind: 'instruction-baseline', instructions: [] },
    ),
  )
  expect(toModelMessages(history)).toEqual([])
})

test('adjacent requests are one turn, results first, system prompts at the front', () => {
  const history = messages(
    request({ part_kind: 'system-prompt', content: 's1' }, { part_kind: 'user-prompt', content: 'hi' }),
    response(
      { part_kind: 'tool-call', tool_name: 't', tool_call_id: 'a', args: '' },
      { part_kind: 'tool-call', tool_name: 't', tool_call_id: 'b' },
    ),
    request(
      returned({ tool_call_id: 'a' }),
      { part_kind: 'user-prompt', content: 'and' },
      { part_kind: 'system-prompt', content: 's2' },
    ),
    { ...(request(returned({ tool_call_id: 'b', outcome: 'retried' })) as object), instructions: 'now' },
  )
  expect(toModelMessages(history)).toMatchObject([
    { role: 'system', content: 's1' },
    { role: 'system', content: 's2' },
    { role: 'system', content: 'now' },
    { role: 'user', content: [{ text: 'hi' }] },
    {
      role: 'assistant',
      content: [
        { toolCallId: 'a', input: {} },
        { toolCallId: 'b', input: {} },
      ],
    },
    {
      role: 'tool',
      content: [
        { toolCallId: 'a', output: { type: 'text' } },
        { toolCallId: 'b', output: { type: 'error-text' } },
      ],
    },
    { role: 'user', content: [{ text: 'and' }] },
  ])
})

test('a system prompt of scope request is shown until it is answered', () => {
  const nudge = request(
    { part_kind: 'system-prompt', content: 'nudge', scope: 'request' },
    { part_kind: 'user-prompt', content: 'hi' },
  )
  expect(toModelMessages(messages(nudge))[0]).toEqual({ role: 'system', content: 'nudge' })
  expect(toModelMessages(messages(nudge, response({ part_kind: 'text', content: 'x' })))[0]).toMatchObject({ role: 'user' })
})

test('a signature without a provider goes to the provider that is asked', () => {
  const history = messages(response({ part_kind: 'thinking', content: 'plan', signature: 'sig' }))
  expect(toModelMessages(history, { provider: 'anthropic' })[0]!.content[0]).toMatchObject({
    providerOptions: { anthropic: { signature: 'sig' } },
  })
})

// Adapters for chat UIs put the result of a client-side call into the assistant message; one that only knew the `tool` role dropped it,
// and the call was deferred again after a reload.
test('results inside an assistant message are kept, whoever executed the call', () => {
  const prompt: LanguageModelV4Prompt = [
    {
      role: 'assistant',
      content: [
        { type: 'tool-call', toolCallId: 'c', toolName: 'ext', input: { q: 1 } },
        { type: 'tool-call', toolCallId: 'n', toolName: 'web', input: {}, providerExecuted: true },
        { type: 'tool-result', toolCallId: 'c', toolName: 'ext', output: { type: 'json', value: { ok: true } } },
        { type: 'tool-result', toolCallId: 'n', toolName: 'web', output: { type: 'text', value: 'hit' } },
        { type: 'text', text: 'so' },
      ],
    },
    { role: 'user', content: [{ type: 'text', text: 'next' }] },
  ]
  expect(fromModelMessages(prompt, { now: NOW })).toMatchObject([
    {
      kind: 'response',
      parts: [
        { part_kind: 'tool-call' },
        { part_kind: 'builtin-tool-call' },
        { part_kind: 'builtin-tool-return' },
        { part_kind: 'text' },
      ],
    },
    {
      kind: 'request',
      parts: [
        { part_kind: 'tool-return', tool_call_id: 'c', outcome: 'success', content: { ok: true } },
        { part_kind: 'user-prompt' },
      ],
    },
  ])
})

test('what has no part of its own is refused by its place', () => {
  const prompt: LanguageModelV4Prompt = [
    { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'a', approved: true }] },
  ]
  expect(() => fromModelMessages(prompt, { now: NOW })).toThrow(
    expect.objectContaining({ code: 'model_prompt_unsupported', path: '$[0].content[0]' }),
  )
})
