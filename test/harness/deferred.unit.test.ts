import { describe, expect, test } from 'vitest'
import {
  type DeferredRequest,
  DeferredRequests,
  DeferredToolResults,
  DeferredToolResume,
  preflight,
  toolApproved,
  toolReturn,
} from '../../src/harness/index.ts'
import { HarnessState, requestMessage, responseMessage, toolCallPart, toolReturnPart } from '../../src/messages/index.ts'
import { codeOf } from '../support/refusals.ts'

const timestamp = '2026-01-01T00:00:00Z'

/** All a resume is made of, still to be spoiled. */
interface Draft {
  state: boolean
  resume: boolean
  response: boolean
  calls: DeferredRequest[]
  approvals: DeferredRequest[]
  metadata: Record<string, unknown>
  results: { calls: Record<string, unknown>; approvals: Record<string, unknown>; metadata: Record<string, unknown> }
  made: { id: string; name: string; args: string }[]
  answered: string[]
}

const request = (id: string, name = 'ext'): DeferredRequest => {
  const call = { toolCallId: id, toolName: name, args: { id } }
  return { modelCall: call, targetCall: call, identity: `tool/client/${name}` }
}

/** A batch of three calls and two approvals that fits its history. Each fault spoils another item. */
function legal(): Draft {
  const calls = ['e1', 'e2', 'e3'].map((id) => request(id))
  const approvals = ['a1', 'a2'].map((id) => request(id, 'danger'))
  const made = [...calls, ...approvals].map(({ modelCall: { toolCallId: id, toolName: name } }) => {
    return { id, name, args: JSON.stringify({ id }) }
  })
  return {
    ...{ state: true, resume: true, response: true, calls, approvals, made, answered: [] },
    metadata: { e1: { k: 1 } },
    results: { calls: { e1: 1, e2: 2, e3: 3 }, approvals: { a1: true, a2: toolApproved() }, metadata: { a1: { k: 1 } } },
  }
}

function check(d: Draft): DeferredToolResume | undefined {
  const messages = [
    responseMessage({
      parts: d.made.map(({ id, name, args }) => toolCallPart({ tool_name: name, tool_call_id: id, args })),
      timestamp,
    }),
    ...d.answered.map((id) =>
      requestMessage({ parts: [toolReturnPart({ tool_name: 'ext', tool_call_id: id, content: 1, timestamp })], timestamp }),
    ),
  ].slice(d.response ? 0 : 1)
  const state = d.state ? HarnessState.of({ threadId: 'thr_a', messageHistory: messages }) : undefined
  const { calls, approvals, metadata } = d
  const requests = new DeferredRequests({ calls, approvals, metadata })
  return preflight(state, d.resume ? new DeferredToolResume({ requests, results: new DeferredToolResults(d.results) }) : 'yes')
}

const circle: unknown[] = []
circle.push(circle)
const changed = (
  list: DeferredRequest[],
  i: number,
  change: (call: { args: unknown; toolName: string; toolCallId: string }) => object,
) => list.splice(i, 1, { ...list[i]!, ...spread(change({ ...list[i]!.modelCall })) })
const spread = (call: object) => ({ modelCall: call as never, targetCall: call as never })

/** In the order of the checks: what spoils a batch, and what that is called. */
const faults: [row: string, code: string, spoil: (d: Draft) => void][] = [
  ['1', 'deferred_resume_invalid', (d) => (d.resume = false)],
  ['2', 'deferred_state_required', (d) => (d.state = false)],
  ['4', 'deferred_request_duplicate', (d) => d.calls.push(request('e1'))],
  ['5', 'deferred_request_category_overlap', (d) => d.approvals.push(request('e2', 'danger'))],
  ['7', 'deferred_requests_too_large', (d) => d.calls.push(...Array.from({ length: 124 }, (_, i) => request(`more${i}`)))],
  ['7a', 'deferred_request_invalid', (d) => changed(d.calls, 0, (call) => ({ ...call, args: { q: circle } }))],
  [
    '7b',
    'deferred_request_duplicate',
    (d) => {
      const { modelCall, identity } = d.calls[1]!
      d.calls[1] = { modelCall: { ...modelCall, toolCallId: 'other' }, targetCall: { ...modelCall, toolCallId: 'e2' }, identity }
      d.approvals[1] = { modelCall: { ...modelCall, toolCallId: 'e2' }, targetCall: { ...modelCall, toolCallId: 'a2' }, identity }
    },
  ],
  ['8', 'deferred_metadata_invalid', (d) => (d.metadata['nobody'] = {})],
  ['9', 'deferred_results_incomplete', (d) => delete d.results.calls['e3']],
  ['10', 'deferred_approval_invalid', (d) => (d.results.approvals['a1'] = 1)],
  ['11 call', 'deferred_results_invalid', (d) => (d.results.calls['e1'] = Number.NaN)],
  ['11 override', 'deferred_results_invalid', (d) => (d.results.approvals['a2'] = toolApproved({ overrideArgs: { q: circle } }))],
  ['12', 'deferred_metadata_invalid', (d) => (d.results.metadata['nobody'] = {})],
  ['13', 'deferred_request_missing', (d) => (d.response = false)],
  ['14', 'deferred_request_duplicate', (d) => d.made.push({ id: 'z', name: 'x', args: '' }, { id: 'z', name: 'x', args: '' })],
  ['15', 'deferred_request_missing', (d) => (d.made = d.made.filter(({ id }) => id !== 'e1'))],
  ['16', 'deferred_request_completed', (d) => d.answered.push('e2')],
  ['18', 'deferred_request_mismatch', (d) => (d.made = d.made.map((call) => (call.id === 'a1' ? { ...call, name: 'x' } : call)))],
]

describe('the first fault in the order of the checks is the one that is named', () => {
  test('a batch without fault is accepted as it is', () => expect(check(legal())?.toJSON()).toMatchObject({ recovery: false }))

  test.each(faults)('row %s alone: %s', (_, code, spoil) => {
    const draft = legal()
    spoil(draft)
    expect(codeOf(() => check(draft))).toBe(code)
  })

  const pairs = faults.flatMap(([row, code, first], i) =>
    faults.slice(i + 1).map((later) => [row, later[0], code, first, later[2]] as const),
  )
  test.each(pairs)('row %s before row %s: %s', (_row, _later, code, first, later) => {
    // The order in which a batch was spoiled says nothing about which fault is seen.
    for (const spoils of [
      [first, later],
      [later, first],
    ]) {
      const draft = legal()
      for (const spoil of spoils) spoil(draft)
      expect(codeOf(() => check(draft))).toBe(code)
    }
  })
})

describe('ill-formed wire forms are refused by name', () => {
  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['text', '{}'],
    ['requests that are none', { requests: 1, results: {} }],
    ['results that are none', { requests: {}, results: null }],
    ['calls that are no list', { requests: { calls: {} }, results: {} }],
    ['a call that is none', { requests: { calls: [1] }, results: {} }],
    ['approvals that are null', { requests: { approvals: null }, results: {} }],
    ['metadata in a list', { requests: { metadata: [] }, results: {} }],
    ['results in a list', { requests: {}, results: { calls: [] } }],
    ['an answer without form', { requests: {}, results: { calls: { e1: 1 } } }],
    ['a failure without message', { requests: {}, results: { calls: { e1: { tool_failed: null } } } }],
    ['a failure that is no text', { requests: {}, results: { calls: { e1: { tool_failed: { message: 1 } } } } }],
    ['a wrapper that is none', { requests: {}, results: { calls: { e1: { tool_return: 1 } } } }],
    ['an approval that is none', { requests: {}, results: { approvals: { a1: { approved: true } } } }],
    ['a denial that is none', { requests: {}, results: { approvals: { a1: { denied: 1 } } } }],
  ])('%s', (_, value) => expect(codeOf(() => DeferredToolResume.parse(value))).toBe('argument_type_invalid'))

  test.each<[string, () => unknown]>([
    ['requests that are no list', () => new DeferredRequests({ calls: {} as never })],
    ['answers that are no object', () => new DeferredToolResults({ calls: [] as never })],
    ['a function among the answers', () => new DeferredToolResults({ calls: { e1: () => 1 } })],
    [
      'a function inside an answer',
      () => new DeferredToolResults({ calls: { e1: toolReturn({ returnValue: { f: () => 1 } }) } }),
    ],
    ['plain requests', () => new DeferredToolResume({ requests: {} as never, results: new DeferredToolResults() })],
  ])('case 82: %s', (_, make) => expect(codeOf(make)).toBe('argument_type_invalid'))
})

test('ids that are special in JavaScript are ids like others', () => {
  const call = { toolCallId: '__proto__', toolName: 'ext', args: {} }
  const requests = new DeferredRequests({ calls: [{ modelCall: call, targetCall: call, identity: 'i' }] })
  const results = requests.buildResults({ calls: JSON.parse('{"__proto__":{"v":1}}') })
  const history = [responseMessage({ parts: [toolCallPart({ tool_name: 'ext', tool_call_id: '__proto__' })], timestamp })]
  for (const recovery of [false, true]) {
    const resume = new DeferredToolResume({ requests, results, recovery })
    const accepted = preflight(HarnessState.of({ threadId: 'thr_a', messageHistory: history }), resume)
    expect(JSON.stringify(accepted?.results)).toBe('{"calls":{"__proto__":{"value":{"v":1}}},"approvals":{},"metadata":{}}')
  }
})

test('case 102: extra content of an answer joins its value; cache markers stay apart', () => {
  const call = request('e1')
  const marker = { kind: 'cache-point', ttl: '5m' }
  const image = { kind: 'image-url', url: 'https://example.com/a.png', media_type: 'image/png' }
  const lowered = (content: unknown) => {
    const results = { e1: toolReturn({ returnValue: { v: 1 }, content, metadata: { by: 'u' } }) }
    const draft = {
      ...legal(),
      calls: [call],
      approvals: [],
      metadata: {},
      results: { calls: results, approvals: {}, metadata: {} },
    }
    return (check(draft)!.toJSON() as { results: { calls: { e1: unknown } } }).results.calls.e1
  }
  const note = (media: boolean) => ({ display: false, source_id: 'a13n.tool', media })
  expect(lowered(['see', image, marker])).toEqual({
    tool_return: {
      return_value: [{ v: 1 }, 'see', image],
      content: [marker],
      metadata: { by: 'u', 'a13n.tool-content': { result_index: 0, items: [note(false), note(true)] } },
    },
  })
  expect(lowered([marker])).toEqual({ tool_return: { return_value: { v: 1 }, content: [marker], metadata: { by: 'u' } } })
  expect(lowered([])).toEqual({ tool_return: { return_value: { v: 1 }, metadata: { by: 'u' } } })
})

// An approval held a yes but not what it was a yes to, so a call with other arguments ran under it.
// A batch names tool and arguments of each call, and any other byte in the history's call is another call.
test('row 50: a batch does not fit a call of which one byte has changed', () => {
  const args = '{"to":"DE89","cents":4200}'
  const given = (text: string) => {
    const call = { toolCallId: 'a1', toolName: 'danger', args }
    const requests = new DeferredRequests({ approvals: [{ modelCall: call, targetCall: call, identity: 'i' }] })
    const history = [
      responseMessage({ parts: [toolCallPart({ tool_name: 'danger', tool_call_id: 'a1', args: text })], timestamp }),
    ]
    const results = requests.buildResults({ approveAll: true })
    return codeOf(() =>
      preflight(HarnessState.of({ threadId: 'thr_a', messageHistory: history }), new DeferredToolResume({ requests, results })),
    )
  }
  expect(given(args)).toBeUndefined()
  expect(given(`{ "cents": 4200, "to": "DE89" }`)).toBeUndefined()
  for (let i = 0; i < args.length; i++)
    for (const other of ['7', 'x', '"'])
      if (other !== args[i]) expect(given(args.slice(0, i) + other + args.slice(i + 1))).toBe('deferred_request_mismatch')
})
