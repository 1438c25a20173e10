import { canonicalJson, isThreadlogError, type JsonObject, type JsonValue, parseJson } from '../base/index.ts'
import type { ResponseMessage, Usage } from './types.ts'

/** The exact text of a state: written key order, canonical data, floats as the other library spells them. */
export function stateText(state: JsonObject): string {
  const { agent_context_state, message_history, environment_states, ...rest } = state as unknown as {
    agent_context_state: { entries: Record<string, { version: string; data: JsonValue }> }
    message_history: (ResponseMessage | { kind: 'request' })[]
    environment_states: Record<string, { provider_key: string; state_version: string; state: JsonValue }>
    [field: string]: unknown
  }
  const { schema_version, thread_id, ...tail } = rest
  const entries = record(agent_context_state.entries, (e) => `{"version":${text(e.version)},"data":${canonicalJson(e.data)}}`)
  const mounts = record(
    environment_states,
    (e) => `{"provider_key":${text(e.provider_key)},"state_version":${text(e.state_version)},"state":${canonicalJson(e.state)}}`,
  )
  const fields = Object.entries(tail).map(([key, value]) => `${text(key)}:${text(value)},`)
  const messages = message_history.map((message) => (message.kind === 'request' ? text(message) : responseText(message)))
  return (
    `{"schema_version":${text(schema_version)},"thread_id":${text(thread_id)},"agent_context_state":{"entries":${entries}},` +
    `${fields.join('')}"message_history":[${messages.join(',')}],"environment_states":${mounts}}`
  )
}

const text = (value: unknown): string => JSON.stringify(value)
const record = <T>(map: Record<string, T>, write: (item: T) => string): string =>
  `{${Object.entries(map)
    .map(([key, item]) => `${text(key)}:${write(item)}`)
    .join(',')}}`

const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON

/** `audio_seconds` is a float over there and keeps its `.0`. */
const withFloats = (usage: Usage): unknown =>
  Number.isInteger(usage.audio_seconds) ? { ...usage, audio_seconds: rawJson(`${usage.audio_seconds}.0`) } : usage

const responseText = (message: ResponseMessage): string =>
  text({
    ...message,
    usage: withFloats(message.usage),
    failed_attempts: message.failed_attempts?.map((a) => (a.usage === null ? a : { ...a, usage: withFloats(a.usage) })) ?? null,
  })

const MARK = '\u0000not-finite'
const TOKENS = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"|-?Infinity|NaN/g

/** Where a text holds `NaN` or `Infinity`, which JSON does not know and other writers emit all the same; `undefined` if nowhere. */
export function findNonFinite(input: string): string | undefined {
  const marked = input.replace(TOKENS, (token) => (token.startsWith('"') ? token : text(MARK)))
  if (marked === input) return undefined
  try {
    return findMark(parseJson(marked), '$')
  } catch (error) {
    if (isThreadlogError(error, 'json_invalid')) return undefined
    throw error
  }
}

function findMark(value: JsonValue, path: string): string | undefined {
  if (value === MARK) return path
  if (value === null || typeof value !== 'object') return undefined
  for (const [key, item] of Object.entries(value)) {
    const found = findMark(item, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`)
    if (found !== undefined) return found
  }
  return undefined
}
