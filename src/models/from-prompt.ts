import type { LanguageModelV4Message, LanguageModelV4Prompt, LanguageModelV4ToolResultPart } from '@ai-sdk/provider'
import { isJsonObject, type JsonObject, type JsonValue, reject, toJson } from '../base/index.ts'
import { CUSTOM_CONTENT, encodeBase64, INVALID_JSON, type Message, parseMessages, REASONING_FILE } from '../messages/index.ts'
import { bytesOf, fromFilePart } from './prompt-files.ts'
import { readMark, readMetadata, readThinkingMetadata } from './provider-metadata.ts'
import type { AssistantPart } from './to-assistant.ts'
import { fromOutput } from './tool-output.ts'

/**
 * A model prompt as a history. Turns between two assistant messages become one request. A result inside an assistant message answers
 * the provider's own call there, else it is the return of an ordinary call and goes to the request that follows: no result is dropped.
 * @param o.now ISO 8601 timestamp of all messages
 * @throws ThreadlogError `model_prompt_unsupported` for content that has no part of its own, `message_history_invalid`
 */
export function fromModelMessages(prompt: LanguageModelV4Prompt, o: { now: string }): Message[] {
  const messages: { kind: string; parts: JsonValue[]; timestamp: string }[] = []
  const partsOf = (kind: 'request' | 'response'): JsonValue[] => {
    const last = messages.at(-1)
    if (last?.kind === kind && kind === 'request') return last.parts
    const parts: JsonValue[] = []
    messages.push({ kind, parts, timestamp: o.now })
    return parts
  }
  prompt.forEach((message, i) => {
    if (message.role !== 'assistant') {
      partsOf('request').push(...requestParts(message, `$[${i}]`))
      return
    }
    const { parts, returns } = responseParts(message.content, `$[${i}]`)
    partsOf('response').push(...parts)
    if (returns.length > 0) partsOf('request').push(...returns)
  })
  return parseMessages(toJson(messages), o)
}

const unsupported = (path: string, type: string) =>
  reject('model_prompt_unsupported', `Content of type ${type} cannot be kept in a history.`, { path })

type RequestTurn = Exclude<LanguageModelV4Message, { role: 'assistant' }>

function requestParts(message: RequestTurn, path: string): JsonValue[] {
  if (message.role === 'system') return [{ part_kind: 'system-prompt', content: message.content }]
  if (message.role === 'user') return userPrompts(message.content)
  return message.content.map((part, i) => {
    if (part.type !== 'tool-result') throw unsupported(`${path}.content[${i}]`, part.type)
    return toolReturn(part)
  })
}

const toolReturn = (part: LanguageModelV4ToolResultPart): JsonObject => ({
  part_kind: 'tool-return',
  tool_name: part.toolName,
  tool_call_id: part.toolCallId,
  ...fromOutput(part),
})

/** Plain parts of one user message are one prompt; marked ones are the part they were. */
function userPrompts(content: Extract<LanguageModelV4Message, { role: 'user' }>['content']): JsonValue[] {
  const parts: JsonValue[] = []
  let items: JsonValue[] = []
  const flush = () => {
    if (items.length > 0)
      parts.push({ part_kind: 'user-prompt', content: items.length === 1 && typeof items[0] === 'string' ? items[0] : items })
    items = []
  }
  for (const part of content) {
    const mark = readMark(part.providerOptions)
    if (isJsonObject(mark.part)) {
      flush()
      parts.push(mark.part)
      continue
    }
    items.push(part.type === 'text' ? part.text : fromFilePart(part))
    const cache = part.providerOptions?.anthropic?.cacheControl as JsonValue | undefined
    if (isJsonObject(cache)) items.push({ kind: 'cache-point', ttl: cache.ttl === '1h' ? '1h' : '5m' })
  }
  flush()
  return parts
}

function responseParts(content: AssistantPart[], path: string): { parts: JsonValue[]; returns: JsonValue[] } {
  const providerCalls = new Set(
    content.flatMap((part) => (part.type === 'tool-call' && part.providerExecuted ? [part.toolCallId] : [])),
  )
  const ordinaryCalls = new Set(
    content.flatMap((part) => (part.type === 'tool-call' && !part.providerExecuted ? [part.toolCallId] : [])),
  )
  const parts: JsonValue[] = []
  const returns: JsonValue[] = []
  for (const [i, part] of content.entries()) {
    if (part.type !== 'tool-result') parts.push(responsePart(part, `${path}.content[${i}]`))
    else if (ordinaryCalls.has(part.toolCallId) && !providerCalls.has(part.toolCallId)) returns.push(toolReturn(part))
    else {
      const { retry, ...read } = fromOutput(part)
      parts.push({
        part_kind: 'builtin-tool-return',
        tool_name: part.toolName,
        tool_call_id: part.toolCallId,
        ...read,
        ...readMetadata(part.providerOptions),
      })
    }
  }
  return { parts, returns }
}

function responsePart(part: Exclude<AssistantPart, { type: 'tool-result' }>, path: string): JsonValue {
  const mark = readMark(part.providerOptions)
  if (isJsonObject(mark.part)) return mark.part
  switch (part.type) {
    case 'text':
      return { part_kind: 'text', content: part.text, ...readMetadata(part.providerOptions) }
    case 'reasoning':
      return { part_kind: 'thinking', content: part.text, ...readThinkingMetadata(part.providerOptions) }
    case 'tool-call':
      return {
        part_kind: part.providerExecuted ? 'builtin-tool-call' : 'tool-call',
        tool_name: part.toolName,
        tool_call_id: part.toolCallId,
        args: argsOf(part.input),
        ...readMetadata(part.providerOptions),
      }
    case 'file':
    case 'reasoning-file':
      return filePart(part, path)
    case 'custom':
      return { part_kind: 'text', content: '', provider_details: { [CUSTOM_CONTENT]: toJson(part) } }
  }
}

/** An object, or the text that could not be parsed when it was shown to the model. */
function argsOf(input: unknown): JsonValue {
  if (typeof input === 'string') return input
  const value = toJson(input ?? null)
  if (!isJsonObject(value)) return value === null ? null : JSON.stringify(value)
  const raw = value[INVALID_JSON]
  return typeof raw === 'string' && Object.keys(value).length === 1 ? raw : value
}

function filePart(part: Extract<AssistantPart, { type: 'file' | 'reasoning-file' }>, path: string): JsonValue {
  const { data, mediaType: media_type } = part
  const { provider_name, provider_details } = readMetadata(part.providerOptions)
  if (data.type === 'url') {
    const custom = toJson({ ...part, data: undefined, url: data.originalUrl ?? data.url.href })
    return { part_kind: 'text', content: '', provider_details: { [CUSTOM_CONTENT]: custom } }
  }
  if (data.type !== 'data') throw unsupported(path, `file/${data.type}`)
  return {
    part_kind: 'file',
    content: { kind: 'binary', data: encodeBase64(bytesOf(data.data)), media_type },
    provider_name,
    provider_details: part.type === 'reasoning-file' ? { ...provider_details, [REASONING_FILE]: true } : provider_details,
  }
}
