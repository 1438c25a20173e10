import fc from 'fast-check'
import type { JsonValue } from '../../src/base/index.ts'
import {
  builtinToolCallPart,
  builtinToolReturnPart,
  type Message,
  type RequestPart,
  type ResponsePart,
  requestMessage,
  responseMessage,
  retryFeedbackPart,
  systemPromptPart,
  textPart,
  toolCallPart,
  toolCalls,
  toolReturnPart,
  userPromptPart,
} from '../../src/messages/index.ts'

// Histories as crashes, other hosts and older versions leave them: ids repeat, answers are missing, doubled or nobody's, native parts are cut.

export const timestamp = '2026-01-01T00:00:00Z'
const id = fc.constantFrom('a', 'b', 'c')
const name = fc.constantFrom('t', 'u')
const long = fc.integer({ min: 0, max: 3000 }).map((n) => '𝒙'.repeat(n % 2) + 'y'.repeat(n))
const content: fc.Arbitrary<JsonValue> = fc.oneof(
  long,
  fc.array(long, { maxLength: 2 }),
  fc.dictionary(fc.constantFrom('k', '__proto__'), fc.oneof(long, fc.array(long, { maxLength: 2 })), { maxKeys: 2 }),
  fc.integer(),
)

const requestPart: fc.Arbitrary<RequestPart> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ tool_call_id: id, tool_name: name, content }).map((p) => toolReturnPart({ ...p, timestamp })),
  },
  fc
    .record({ tool_call_id: id, tool_name: name, content, metadata: fc.constant({ 'a13n.cold-start': 'preserve' }) })
    .map((p) => toolReturnPart({ ...p, timestamp })),
  long.map((text) => userPromptPart({ content: text, timestamp })),
  fc.constant(systemPromptPart({ content: 's', timestamp })),
  fc.constant(retryFeedbackPart({ content: 'no', retry: { cause: 'model_retry', attempt: null, max_retries: null }, timestamp })),
)
const responsePart: fc.Arbitrary<ResponsePart> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ tool_call_id: id, tool_name: name }).map((p) => toolCallPart(p)) },
  fc.record({ tool_call_id: id, tool_name: name }).map((p) => builtinToolCallPart(p)),
  fc.record({ tool_call_id: id, tool_name: name }).map((p) => builtinToolReturnPart({ ...p, content: 1, timestamp })),
  fc.string().map((text) => textPart({ content: text })),
)
export const message: fc.Arbitrary<Message> = fc.oneof(
  fc
    .record({
      parts: fc.array(requestPart, { maxLength: 4 }),
      state: fc.constantFrom('complete', 'interrupted'),
      instructions: fc.constantFrom(null, null, 'one', 'two'),
    })
    .map((m) => requestMessage({ ...m, timestamp })),
  fc
    .record({
      parts: fc.array(responsePart, { maxLength: 4 }),
      state: fc.constantFrom('complete', 'interrupted', 'suspended'),
    })
    .map((m) => responseMessage({ ...m, timestamp })),
)
export const history = fc.array(message, { maxLength: 7 })

/** Answers of each response's window, by response. */
export function windows(messages: readonly Message[]): { calls: string[]; answers: string[]; state: string; last: boolean }[] {
  const found = [{ calls: [] as string[], answers: [] as string[], state: 'none', last: false }]
  for (const m of messages)
    if (m.kind === 'response')
      found.push({ calls: toolCalls(m).map((c) => c.tool_call_id), answers: [], state: m.state, last: false })
    else for (const part of m.parts) if (part.part_kind === 'tool-return') found.at(-1)!.answers.push(part.tool_call_id)
  found.at(-1)!.last = true
  return found
}
