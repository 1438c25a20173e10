import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../src/base/index.ts'
import {
  asShown,
  closeOlder,
  closeUnanswered,
  coldStart,
  integrity,
  isCold,
  mergeAdjacent,
  withoutBrokenNatives,
} from '../../src/harness/history/index.ts'
import {
  builtinToolCallPart,
  builtinToolReturnPart,
  type Message,
  type RequestMessage,
  type RequestPart,
  type ResponsePart,
  type ResponseState,
  requestMessage,
  responseMessage,
  retryFeedbackPart,
  textPart,
  toolCallPart,
  toolReturnPart,
  userPromptPart,
} from '../../src/messages/index.ts'

// State spec §5.2 and §5.4, message by message. In short: `call a`, `a: x` answers it, `'text'` is said.

const timestamp = '2026-01-01T00:00:00Z'
const call = (tool_call_id: string) => toolCallPart({ tool_name: 't', tool_call_id })
const answer = (tool_call_id: string, content: JsonValue = 1, metadata: JsonValue = null) =>
  toolReturnPart({ tool_name: 't', tool_call_id, content, metadata, timestamp })
const said = (content: string) => userPromptPart({ content, timestamp })
const feedback = retryFeedbackPart({
  content: 'no',
  retry: { cause: 'model_retry', attempt: null, max_retries: null },
  timestamp,
})
const native = (id: string, name = 'n') => builtinToolCallPart({ tool_name: name, tool_call_id: id })
const nativeReturn = (id: string, name = 'n') =>
  builtinToolReturnPart({ tool_name: name, tool_call_id: id, content: 1, timestamp })
const text = textPart({ content: 'text' })

const request = (...parts: RequestPart[]): Message => requestMessage({ parts, timestamp })
const response = (...parts: ResponsePart[]): Message => responseMessage({ parts, timestamp })
const inState = (state: ResponseState, ...parts: ResponsePart[]): Message => responseMessage({ parts, timestamp, state })
const interruptedRequest = (...parts: RequestPart[]): Message => requestMessage({ parts, timestamp, state: 'interrupted' })

const unknown = (id: string) =>
  toolReturnPart({ tool_name: 't', tool_call_id: id, content: 'nobody knows', outcome: 'failed', timestamp })
const synthesized = (id: string) =>
  toolReturnPart({
    ...{ tool_name: 't', tool_call_id: id, content: 'nobody knows', outcome: 'interrupted', timestamp },
    metadata: { pydantic_ai_synthesized_tool_return: true },
  })
const o = { content: 'nobody knows', timestamp }
/** A request that was never sent has no time. */
const closing = (...parts: RequestPart[]): Message => requestMessage({ parts, timestamp: null })

type Case = [what: string, before: Message[], after: Message[] | 'as it is']
const table = (step: (history: readonly Message[]) => readonly Message[], cases: Case[]) =>
  test.each(cases)('%s', (_, before, after) => {
    const made = step(before)
    if (after === 'as it is') expect(made).toBe(before)
    else expect(made).toEqual(after)
  })

describe('native parts of a cut tail', () => {
  table(withoutBrokenNatives, [
    ['pairs stay', [inState('interrupted', native('a'), nativeReturn('a'), text)], 'as it is'],
    [
      'interleaved pairs stay',
      [inState('interrupted', native('a'), native('b'), nativeReturn('b'), nativeReturn('a'))],
      'as it is',
    ],
    [
      'an open call takes all native parts along',
      [inState('interrupted', native('a'), nativeReturn('a'), native('b'), text)],
      [inState('interrupted', text)],
    ],
    ['a return before its call', [inState('interrupted', nativeReturn('a'), native('a'), text)], [inState('interrupted', text)]],
    [
      'a return of another tool',
      [inState('interrupted', native('a'), nativeReturn('a', 'm'), text)],
      [inState('interrupted', text)],
    ],
    [
      'a second call of one id',
      [inState('interrupted', native('a'), nativeReturn('a'), native('a'), nativeReturn('a'), text)],
      [inState('interrupted', text)],
    ],
    [
      'a second return',
      [inState('interrupted', native('a'), nativeReturn('a'), nativeReturn('a'), call('c'))],
      [inState('interrupted', call('c'))],
    ],
    ['a response of nothing else goes', [request(said('hi')), inState('interrupted', native('a'))], [request(said('hi'))]],
    ['one that was empty before stays', [inState('interrupted')], 'as it is'],
    ['a whole response is not looked at', [response(native('a'))], 'as it is'],
    ['nor one that is not the tail', [inState('interrupted', native('a')), request(said('hi'))], 'as it is'],
  ])
})

describe('closing what the latest response left open', () => {
  table(
    (history) => closeUnanswered(history, o),
    [
      ['nothing is open', [response(call('a')), request(answer('a'))], 'as it is'],
      ['no response', [request(said('hi'))], 'as it is'],
      [
        'at the tail: in a request of its own',
        [response(call('a'), call('b'))],
        [response(call('a'), call('b')), closing(unknown('a'), unknown('b'))],
      ],
      [
        'a cut response',
        [inState('interrupted', text, call('a'))],
        [inState('interrupted', text, call('a')), closing(unknown('a'))],
      ],
      [
        'behind a request: into it, whatever it holds',
        [response(call('a')), request(said('hi'))],
        [response(call('a')), request(said('hi'), unknown('a'))],
      ],
      [
        'behind two requests: into the last, which keeps its state',
        [response(call('a'), call('b')), request(answer('a')), interruptedRequest(said('hi'))],
        [response(call('a'), call('b')), request(answer('a')), interruptedRequest(said('hi'), unknown('b'))],
      ],
      [
        'a call of one id made twice is closed once',
        [response(call('a'), call('a'))],
        [response(call('a'), call('a')), closing(unknown('a'))],
      ],
      [
        'an answer of an earlier response does not count',
        [response(call('a')), request(answer('a')), response(call('a'))],
        [response(call('a')), request(answer('a')), response(call('a')), closing(unknown('a'))],
      ],
      [
        'older calls stay open',
        [response(call('a')), response(call('b'))],
        [response(call('a')), response(call('b')), closing(unknown('b'))],
      ],
      [
        'feedback answers nothing',
        [response(call('a')), request(feedback)],
        [response(call('a')), request(feedback, unknown('a'))],
      ],
      ['a response the provider suspended is its own', [inState('suspended', call('a'))], 'as it is'],
    ],
  )
})

describe('what older responses left open, for the eyes of a model', () => {
  table(
    (history) => closeOlder(history, o),
    [
      ['the latest response is not looked at', [response(call('a')), request(said('hi'))], 'as it is'],
      [
        'at the head of the request behind it',
        [response(call('a'), call('b')), request(answer('b'), said('hi')), response(text)],
        [response(call('a'), call('b')), request(synthesized('a'), answer('b'), said('hi')), response(text)],
      ],
      [
        'an answer given to a later response does not count',
        [response(call('a')), request(said('hi')), response(call('a')), request(answer('a')), response(text)],
        [response(call('a')), request(synthesized('a'), said('hi')), response(call('a')), request(answer('a')), response(text)],
      ],
      [
        'an answer in a second request counts',
        [response(call('a')), request(said('hi')), request(answer('a')), response(text)],
        'as it is',
      ],
      ['without a request behind it there is no place', [response(call('a')), response(text)], 'as it is'],
    ],
  )
})

describe('what a model is shown', () => {
  table(
    (history) => asShown(history, o),
    [
      ['a whole history', [request(said('hi')), response(call('a')), request(answer('a'))], 'as it is'],
      ['the calls of the last message', [response(call('a'))], 'as it is'],
      [
        'an answer for what has none, behind those there are',
        [response(call('a'), call('b')), request(said('hi'), answer('b'))],
        [response(call('a'), call('b')), request(answer('b'), synthesized('a'), said('hi'))],
      ],
      [
        'an answer for each time a call was made',
        [response(call('a'), call('a')), request(answer('a'))],
        [response(call('a'), call('a')), request(answer('a'), synthesized('a'))],
      ],
      [
        'behind feedback too, which answers nothing',
        [response(call('a')), request(feedback), request(said('hi'))],
        [response(call('a')), request(synthesized('a'), feedback, said('hi'))],
      ],
      [
        'a request of its own where responses stand side by side',
        [response(call('a')), response(text), request(said('hi'))],
        [response(call('a')), closing(synthesized('a')), response(text), request(said('hi'))],
      ],
      [
        'an answer in a second request counts',
        [response(call('a')), request(said('1')), request(answer('a'))],
        [response(call('a')), request(answer('a'), said('1'))],
      ],
      [
        'an answer to a later response does not',
        [response(call('a')), request(said('1')), response(call('a')), request(answer('a'))],
        [response(call('a')), request(synthesized('a'), said('1')), response(call('a')), request(answer('a'))],
      ],
    ],
  )
})

describe('integrity', () => {
  table(integrity, [
    ['first answers stay', [response(call('a'), call('b')), request(answer('a')), request(answer('b'))], 'as it is'],
    [
      'a second answer goes',
      [response(call('a')), request(answer('a', 1), answer('a', 2), said('hi'))],
      [response(call('a')), request(answer('a', 1), said('hi'))],
    ],
    [
      'also in another request',
      [response(call('a')), request(answer('a', 1)), request(answer('a', 2), said('hi'))],
      [response(call('a')), request(answer('a', 1)), request(said('hi'))],
    ],
    [
      'an answer to another response goes',
      [response(call('a')), request(answer('a')), response(text), request(answer('a'), said('hi'))],
      [response(call('a')), request(answer('a')), response(text), request(said('hi'))],
    ],
    ['an answer before any response goes', [request(answer('a'), said('hi'))], [request(said('hi'))]],
    [
      'feedback closes the window, within a request too',
      [response(call('a'), call('b')), request(answer('a'), feedback, answer('b'))],
      [response(call('a'), call('b')), request(answer('a'), feedback)],
    ],
    [
      'and for the requests behind it',
      [response(call('a')), request(feedback), request(answer('a'), said('hi'))],
      [response(call('a')), request(feedback), request(said('hi'))],
    ],
    ['a request left empty goes', [request(answer('z')), response(text)], [response(text)]],
    ['unless it is the last', [response(text), request(answer('z'))], [response(text), request()]],
    [
      'one that was empty before stays',
      [request(), response(text), request(answer('z')), response(text)],
      [request(), response(text), response(text)],
    ],
  ])
})

describe('merging', () => {
  const withInstructions = (instructions: string | null, ...parts: RequestPart[]): RequestMessage =>
    requestMessage({ parts, timestamp, instructions })
  table(mergeAdjacent, [
    [
      'answers first',
      [request(said('hi'), answer('a')), request(answer('b'), said('more'))],
      [request(answer('a'), answer('b'), said('hi'), said('more'))],
    ],
    ['three', [request(said('1')), request(said('2')), request(answer('a'))], [request(answer('a'), said('1'), said('2'))]],
    ['not over a response', [request(said('1')), response(text), request(said('2'))], 'as it is'],
    ['not with other instructions', [withInstructions('one'), withInstructions('two')], 'as it is'],
    [
      'with the same, or none',
      [withInstructions('one', said('1')), withInstructions(null, said('2')), withInstructions('one', said('3'))],
      [withInstructions('one', said('1'), said('2'), said('3'))],
    ],
  ])
})

describe('cold start', () => {
  const consumed = (content: JsonValue, metadata: JsonValue = null): Message[] => [
    response(call('a')),
    request(answer('a', content, metadata)),
    response(text),
  ]
  const contentOf = (history: readonly Message[]) => (history[1] as { parts: { content: JsonValue }[] }).parts[0]?.content

  test('a text of 2,000 characters stays, one of 2,001 keeps 800 at both ends and says how many are gone', () => {
    const short = consumed('y'.repeat(2000))
    expect(coldStart(short)).toBe(short)
    const long = `${'a'.repeat(800)}${'b'.repeat(401)}${'c'.repeat(800)}`
    expect(contentOf(coldStart(consumed({ k: ['s', long] })))).toEqual({
      k: ['s', expect.stringMatching(/^a{800}[^abc]*401[\s\S]*c{800}$/)],
    })
    expect(JSON.stringify(coldStart(consumed(long)))).not.toContain('bbb')
  })

  test('characters are code points', () => {
    const short = consumed('😀'.repeat(2000))
    expect(coldStart(short)).toBe(short)
    expect(String(contentOf(coldStart(consumed('😀'.repeat(2001)))))).toMatch(/^(😀){800}\n[^😀]*401[^😀]*\n(😀){800}$/u)
  })

  test('a preserved result, prompts, and what no response has seen stay', () => {
    const long = 'y'.repeat(3000)
    for (const kept of [
      consumed(long, { 'a13n.cold-start': 'preserve' }),
      [request(said(long)), response(text)],
      [response(call('a')), request(answer('a', long))],
    ])
      expect(coldStart(kept)).toBe(kept)
    expect(coldStart(consumed(long, { 'a13n.cold-start': 'other' }))).not.toEqual(consumed(long, { 'a13n.cold-start': 'other' }))
  })

  test('cold is a latest response of at least so many seconds', () => {
    const now = Date.parse(timestamp) + 3_600_000
    const history = [response(text), request(said('hi'))]
    expect(isCold(history, { now, idleSeconds: 3600 })).toBe(true)
    expect(isCold(history, { now: now - 1, idleSeconds: 3600 })).toBe(false)
    expect(isCold([request(said('hi'))], { now, idleSeconds: 0 })).toBe(false)
  })
})
