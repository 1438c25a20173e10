import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider'
import { canonicalJson, type JsonObject, type JsonValue } from '../base/index.ts'
import type { Message, RequestPart, RetryFeedbackPart, UserContent } from '../messages/index.ts'
import { toFilePart } from './prompt-files.ts'
import { toAssistantContent } from './to-assistant.ts'
import { markOptions, outputMark, toOutput } from './tool-output.ts'

export interface PromptOptions {
  /** Provider namespace for signatures of thinking parts that do not record their provider. */
  provider?: string
}
type UserPart = LanguageModelV4TextPart | LanguageModelV4FilePart

/**
 * A history as a model prompt. Adjacent requests become one turn: tool results first, then user content. System prompts stand at the
 * front, then the latest instructions; a system prompt of scope `request` is shown only until it is answered. Availability deltas and
 * instruction baselines are records, not content: they are not sent, nor are metadata and timestamps.
 */
export function toModelMessages(messages: readonly Message[], o: PromptOptions = {}): LanguageModelV4Prompt {
  const turns: LanguageModelV4Message[] = []
  let pending: RequestPart[] = []
  for (const message of messages) {
    if (message.kind === 'request') {
      pending.push(...message.parts)
      continue
    }
    const content = toAssistantContent(message, o)
    if (content.length === 0) continue
    turns.push(...toTurn(pending), { role: 'assistant', content })
    pending = []
  }
  return [...systemMessages(messages), ...turns, ...toTurn(pending)]
}

function systemMessages(messages: readonly Message[]): LanguageModelV4Message[] {
  const current = messages.findLastIndex((message) => message.kind === 'response') + 1
  const texts = messages.flatMap((message, i) =>
    message.kind === 'response'
      ? []
      : message.parts.flatMap((part) =>
          part.part_kind === 'system-prompt' && (part.scope === 'conversation' || i >= current) ? [part.content] : [],
        ),
  )
  const instructions = messages.findLast((message) => message.kind === 'request')?.instructions
  if (instructions) texts.push(instructions)
  return texts.map((content) => ({ role: 'system', content }))
}

function toTurn(parts: RequestPart[]): LanguageModelV4Message[] {
  const results: LanguageModelV4ToolResultPart[] = []
  const user: UserPart[] = []
  for (const part of parts) {
    if (part.part_kind === 'tool-return')
      results.push({
        type: 'tool-result',
        toolCallId: part.tool_call_id,
        toolName: part.tool_name,
        output: toOutput(part),
        ...markOptions(outputMark(part)),
      })
    else user.push(...userParts(part))
  }
  return [
    ...(results.length > 0 ? [{ role: 'tool' as const, content: results }] : []),
    ...(user.length > 0 ? [{ role: 'user' as const, content: user }] : []),
  ]
}

function userParts(part: Exclude<RequestPart, { part_kind: 'tool-return' }>): UserPart[] {
  switch (part.part_kind) {
    case 'user-prompt':
      return typeof part.content === 'string' ? [{ type: 'text', text: part.content }] : userItems(part.content)
    case 'retry-feedback':
      return [marked(feedbackText(part), part)]
    case 'instruction-delta':
      return [marked(part.content ?? 'An earlier instruction no longer applies.', part)]
    case 'speech':
      if (part.transcript !== null) return [marked(part.transcript, part)]
      return part.audio === null ? [] : [{ ...toFilePart(part.audio), ...markOptions({ part: json(part) }) } as UserPart]
    default:
      return []
  }
}

const json = (value: unknown): JsonObject => value as JsonObject
const marked = (text: string, part: RequestPart): UserPart => ({ type: 'text', text, ...markOptions({ part: json(part) }) })

function userItems(items: UserContent[]): UserPart[] {
  const parts: UserPart[] = []
  for (const item of items) {
    if (typeof item === 'string') parts.push({ type: 'text', text: item })
    else if (item.kind === 'text-content') parts.push({ type: 'text', text: item.content })
    else if (item.kind !== 'cache-point') parts.push(toFilePart(item))
    else {
      const last = parts.at(-1)
      const cacheControl = { type: 'ephemeral', ...(item.ttl === '1h' ? { ttl: '1h' } : {}) }
      if (last !== undefined) last.providerOptions = { ...last.providerOptions, anthropic: { cacheControl } }
    }
  }
  return parts
}

/** How feedback on its output is shown to a model. */
function feedbackText({ content }: RetryFeedbackPart): string {
  const errors = typeof content === 'string' ? content : content.map(errorLine).join('\n')
  return `${errors}\n\nFix the errors and try again.`
}

function errorLine(error: JsonObject): string {
  const place = Array.isArray(error.loc) ? error.loc.map((step: JsonValue) => String(step)).join('.') : ''
  return `${place === '' ? '' : `${place}: `}${typeof error.msg === 'string' ? error.msg : canonicalJson(error)}`
}
