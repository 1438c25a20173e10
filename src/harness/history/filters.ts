import { isJsonObject, type JsonValue } from '../../base/index.ts'
import {
  COLD_START,
  type Message,
  type RequestPart,
  readTimestamp,
  type ToolReturnPart,
  toolCalls,
} from '../../messages/index.ts'

// Filters whose result becomes part of the history (state spec §5.4). Pure, as those of `interrupted.ts`.

/**
 * Keeps the first answer of each call of the response before it; answers to other calls and second ones go. Feedback on a whole output closes
 * the window: what follows answers nothing. A request left empty goes, unless it was empty before or is the last.
 */
export function integrity(history: readonly Message[]): readonly Message[] {
  let open = new Set<string>()
  let changed = false
  const kept: Message[] = []
  for (const [i, message] of history.entries()) {
    if (message.kind === 'response') {
      open = new Set(toolCalls(message).map((call) => call.tool_call_id))
      kept.push(message)
      continue
    }
    const parts = message.parts.filter((part) => {
      if (part.part_kind === 'retry-feedback') open = new Set()
      return part.part_kind !== 'tool-return' || open.delete(part.tool_call_id)
    })
    if (parts.length === message.parts.length) {
      kept.push(message)
      continue
    }
    changed = true
    if (parts.length > 0 || i === history.length - 1) kept.push({ ...message, parts })
  }
  return changed ? kept : history
}

/** When a thread counts as cold, in seconds since its latest response (state spec §1.7). */
export const COLD_START_IDLE_SECONDS = 3600
const CUT_ABOVE = 2000
const HEAD = 800
const TAIL = 800

/** True if the latest response is so old that what was consumed before it may be shortened. */
export function isCold(history: readonly Message[], o: { now: number; idleSeconds: number }): boolean {
  const response = history.findLast((message) => message.kind === 'response')
  const time = response?.timestamp ? readTimestamp(response.timestamp) : undefined
  return time !== undefined && o.now - Date.parse(time) >= o.idleSeconds * 1000
}

/** Shortens long texts inside tool returns before the latest response; a return marked to be preserved stays. */
export function coldStart(history: readonly Message[]): readonly Message[] {
  const latest = history.findLastIndex((message) => message.kind === 'response')
  let changed = false
  const next = history.map((message, i) => {
    if (i >= latest || message.kind !== 'request') return message
    const parts = message.parts.map((part): RequestPart => {
      if (part.part_kind !== 'tool-return' || isPreserved(part)) return part
      const content = shortened(part.content)
      if (content === part.content) return part
      changed = true
      return { ...part, content }
    })
    return { ...message, parts }
  })
  return changed ? next : history
}

const isPreserved = ({ metadata }: ToolReturnPart): boolean => isJsonObject(metadata) && metadata[COLD_START] === 'preserve'

/** Lengths count code points, as the states are shared with implementations that do. */
function shortened(value: JsonValue): JsonValue {
  if (typeof value === 'string') return cut(value)
  if (Array.isArray(value)) {
    const items = value.map(shortened)
    return items.some((item, i) => item !== value[i]) ? items : value
  }
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).map(([key, item]) => [key, shortened(item)] as const)
  return entries.some(([key, item]) => item !== value[key]) ? Object.fromEntries(entries) : value
}

function cut(text: string): string {
  if (text.length <= CUT_ABOVE) return text
  const points = [...text]
  if (points.length <= CUT_ABOVE) return text
  const removed = points.length - HEAD - TAIL
  return `${points.slice(0, HEAD).join('')}\n[… ${removed} characters removed …]\n${points.slice(-TAIL).join('')}`
}
