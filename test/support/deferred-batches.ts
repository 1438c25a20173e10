import fc from 'fast-check'
import { canonicalJson, type JsonObject, type JsonValue } from '../../src/base/index.ts'
import {
  type DeferredRequest,
  DeferredRequests,
  DeferredToolResults,
  DeferredToolResume,
  toolApproved,
  toolDenied,
  toolFailed,
  toolReturn,
} from '../../src/harness/index.ts'
import {
  HarnessState,
  type Message,
  requestMessage,
  responseMessage,
  toolCallPart,
  toolReturnPart,
  userPromptPart,
} from '../../src/messages/index.ts'

const timestamp = '2026-01-01T00:00:00Z'

/** JSON that survives: no −0, no integer beyond 2^53. */
export const json: fc.Arbitrary<JsonValue> = fc
  .jsonValue({ maxDepth: 2 })
  .filter((value) => !/\d{16}|e\+/.test(JSON.stringify(value)))
  .map((value) => JSON.parse(canonicalJson(value as JsonValue)) as JsonValue)
const object: fc.Arbitrary<JsonObject> = fc.dictionary(fc.string({ maxLength: 6 }), json, { maxKeys: 3 })

const content = fc.oneof(
  fc.string(),
  fc.array(
    fc.oneof(
      fc.string(),
      fc.constant({ kind: 'cache-point', ttl: '5m' }),
      fc.constant({ kind: 'text-content', content: 'more', metadata: null }),
      fc.constant({ kind: 'image-url', url: 'https://example.com/a.png', media_type: 'image/png' }),
    ),
    { maxLength: 3 },
  ),
)

/** Every kind of answer to a call. */
export const callValue: fc.Arbitrary<unknown> = fc.oneof(
  json,
  fc.string().map(toolFailed),
  fc.record({ returnValue: json, content, metadata: object }, { requiredKeys: ['returnValue'] }).map(toolReturn),
)
/** Every kind of decision. */
export const decision: fc.Arbitrary<unknown> = fc.oneof(
  fc.boolean(),
  fc.record({ overrideArgs: object }, { requiredKeys: [] }).map(toolApproved),
  fc.record({ message: fc.string() }, { requiredKeys: [] }).map(toolDenied),
)

interface Item {
  category: 'calls' | 'approvals'
  /** A proxy tool forwarded the call: it is answered under another id. */
  forwarded: boolean
  args: JsonObject
  /** The model wrote its arguments as text. */
  asText: boolean
  value: unknown
  decision: unknown
  metadata: JsonObject | undefined
  answered: boolean
}

const item: fc.Arbitrary<Item> = fc.record({
  category: fc.constantFrom('calls', 'approvals'),
  forwarded: fc.boolean(),
  args: object,
  asText: fc.boolean(),
  value: callValue,
  decision,
  metadata: fc.option(object, { nil: undefined }),
  answered: fc.boolean(),
})

export interface Batch {
  resume: DeferredToolResume
  /** The history that asked for it: nothing answered. */
  asked: Message[]
  /** The same with some items answered by later requests. */
  partly: Message[]
  /** Target ids of the items that `partly` leaves open. */
  open: string[]
}

const returned = (id: string) => toolReturnPart({ tool_name: 't', tool_call_id: id, content: 1, timestamp })
const answer = (id: string) => requestMessage({ parts: [returned(id)], timestamp })

function batchOf(items: readonly Item[], recovery: boolean): Batch {
  const made = items.map((one, i) => {
    const modelCall = { toolCallId: `m${i}`, toolName: 't', args: one.args }
    const targetCall = one.forwarded ? { toolCallId: `t${i}`, toolName: 'inner', args: { n: i } } : modelCall
    return { ...one, id: targetCall.toolCallId, request: { modelCall, targetCall, identity: `tool/local/t` } as DeferredRequest }
  })
  const of = (category: Item['category']) => made.filter((one) => one.category === category)
  const byId = (list: typeof made, value: (one: (typeof made)[number]) => unknown) =>
    Object.fromEntries(list.map((one) => [one.id, value(one)]))
  const metadata = byId(
    made.filter((one) => one.metadata),
    (one) => one.metadata,
  )
  const parts = made.map((one, i) =>
    toolCallPart({ tool_name: 't', tool_call_id: `m${i}`, args: one.asText ? JSON.stringify(one.args) : one.args }),
  )
  const asked: Message[] = [
    requestMessage({ parts: [userPromptPart({ content: 'go', timestamp })], timestamp }),
    // An earlier response made the same calls, and they were answered: that says nothing about these.
    responseMessage({ parts, timestamp }),
    requestMessage({ parts: made.map((_, i) => returned(`m${i}`)), timestamp }),
    responseMessage({ parts, timestamp }),
  ]
  const answers = made.flatMap((one, i) => (one.answered ? [answer(`m${i}`)] : []))
  return {
    resume: new DeferredToolResume({
      requests: new DeferredRequests({
        calls: of('calls').map((one) => one.request),
        approvals: of('approvals').map((one) => one.request),
        metadata,
      }),
      results: new DeferredToolResults({
        calls: byId(of('calls'), (one) => one.value),
        approvals: byId(of('approvals'), (one) => one.decision),
        metadata,
      }),
      recovery,
    }),
    asked,
    partly: [...asked, ...answers],
    open: made.flatMap((one) => (one.answered ? [] : [one.id])),
  }
}

/** A batch that fits its history, with every kind of answer. */
export const batch: fc.Arbitrary<Batch> = fc
  .tuple(fc.array(item, { minLength: 1, maxLength: 5 }), fc.boolean())
  .map(([items, recovery]) => batchOf(items, recovery))

export const stateOf = (messageHistory: readonly Message[]): HarnessState =>
  HarnessState.of({ threadId: 'thr_batch', messageHistory })
