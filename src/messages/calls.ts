import { isJsonObject, isThreadlogError, type JsonObject, type JsonValue, parseJson } from '../base/index.ts'
import type { Message, ResponseMessage, ToolCallPart } from './types.ts'

/** The calls a response makes of us, in order: provider-executed calls are none of them. */
export const toolCalls = (response: ResponseMessage): ToolCallPart[] =>
  response.parts.filter((part): part is ToolCallPart => part.part_kind === 'tool-call')

/** Ids of the calls that have a tool return, of any outcome, in the requests among `messages`. */
export function answeredCallIds(messages: Iterable<Message>): Set<string> {
  const answered = new Set<string>()
  for (const message of messages)
    if (message.kind === 'request')
      for (const part of message.parts) if (part.part_kind === 'tool-return') answered.add(part.tool_call_id)
  return answered
}

/** The calls of the latest response that no request after it answers, in order. */
export function openCalls(messages: readonly Message[]): ToolCallPart[] {
  const last = messages.findLastIndex((message) => message.kind === 'response')
  if (last < 0) return []
  const answered = answeredCallIds(messages.slice(last + 1))
  return toolCalls(messages[last] as ResponseMessage).filter((call) => !answered.has(call.tool_call_id))
}

export type ParsedArgs = { ok: true; value: JsonObject } | { ok: false }

/** The arguments of a call as an object. Missing, null and empty mean none; text that is no JSON object is not ok. */
export function parseArgs(part: { args?: string | JsonObject | null }): ParsedArgs {
  const args = part.args ?? ''
  if (typeof args !== 'string') return { ok: true, value: args }
  if (args === '') return { ok: true, value: {} }
  let value: JsonValue
  try {
    value = parseJson(args)
  } catch (error) {
    if (isThreadlogError(error, 'json_invalid')) return { ok: false }
    throw error
  }
  return isJsonObject(value) ? { ok: true, value } : { ok: false }
}
