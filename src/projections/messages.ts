import { isJsonObject, type JsonObject, type JsonValue, Payload } from '../base/index.ts'
import { isoTimestamp, type Message, type ToolReturnPart, toolReturnPart } from '../messages/index.ts'
import type { HistoryEntry, SettledCall, ThreadState, Wait } from './state.ts'

/** In a request message, the place of the settled return of a call. */
export const settledReference = (callId: string): JsonObject => ({ $settled: callId })

const MARK = Buffer.from('"$settled"')

/** Call ids whose settled returns a composed request names. Parses only messages that can hold such a name. */
export function composedCalls(template: Payload): string[] {
  const bytes = Buffer.from(template.bytes.buffer, template.bytes.byteOffset, template.bytes.byteLength)
  if (!bytes.includes(MARK)) return []
  return partsOf(template.value).flatMap((part) => referenceOf(part) ?? [])
}

/** The parts of a message as it stands in the log. */
export const partsOf = (message: JsonValue): JsonValue[] =>
  isJsonObject(message) && Array.isArray(message['parts']) ? message['parts'] : []

const referenceOf = (part: JsonValue): string | undefined =>
  isJsonObject(part) && typeof part['$settled'] === 'string' && Object.keys(part).length === 1 ? part['$settled'] : undefined

const cache = new WeakMap<HistoryEntry, JsonValue>()

/**
 * The message of one history entry. What stands in the log was checked when it came in, so it is not checked again; its keys stand in
 * canonical order (`toWire` puts them in written order). Shared: read only.
 */
export const messageOf = (entry: HistoryEntry): Message => resolved(entry) as unknown as Message

const written = new WeakMap<HistoryEntry, Uint8Array>()

/** The canonical JSON of a message as UTF-8: what the log holds, or made once where that names settled calls. Shared: read only. */
export function messageBytes(entry: HistoryEntry): Uint8Array {
  if (!entry.settled) return entry.template.bytes
  let bytes = written.get(entry)
  if (bytes === undefined) {
    bytes = Payload.of(resolved(entry)).bytes
    written.set(entry, bytes)
  }
  return bytes
}

/** The message as plain JSON, references replaced. */
export function resolved(entry: HistoryEntry): JsonValue {
  if (!entry.settled) return entry.template.value
  let message = cache.get(entry)
  if (message === undefined) {
    message = replaced(entry)
    cache.set(entry, message)
  }
  return message
}

function replaced(entry: HistoryEntry): JsonValue {
  const value = entry.template.value
  if (!isJsonObject(value)) return value
  const parts = partsOf(value).map((part) => {
    const id = referenceOf(part)
    const call = id === undefined ? undefined : entry.settled?.get(id)
    return call && id !== undefined ? settledPart(call, id) : part
  })
  return { ...value, parts }
}

/** The messages of the history, as {@link messageOf} gives them. */
export const messageHistory = (state: ThreadState): Message[] => state.history.slice().map(messageOf)

/** The tool-return part of a settled call: as recorded, or made from the outcome of the wait that answered it. */
export function settledPart(call: SettledCall, callId: string): JsonValue {
  return call.wait ? ({ ...returnOf(call.wait, callId, call.time) } as JsonObject) : call.part.value
}

/** Text of a denial that gives no reason. */
export const DEFAULT_DENIAL = 'The call was denied. It was not run.'

function returnOf(wait: Wait, callId: string, time: number): ToolReturnPart {
  const common = { tool_name: wait.item.tool_name, tool_call_id: callId, timestamp: isoTimestamp(time) }
  const outcome = wait.outcome
  if (outcome?.failure) {
    const { code, retryable } = outcome.failure
    return toolReturnPart({ ...common, content: { error: { code, retryable } }, outcome: 'failed' })
  }
  const value = outcome?.value?.value ?? null
  if (wait.item.kind !== 'approval') return toolReturnPart({ ...common, content: value })
  const message = isJsonObject(value) && typeof value['message'] === 'string' ? value['message'] : DEFAULT_DENIAL
  return toolReturnPart({ ...common, content: message, outcome: 'denied' })
}
