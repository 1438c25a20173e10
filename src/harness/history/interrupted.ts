import {
  answeredCallIds,
  dropBrokenNativePairs,
  type Message,
  type RequestMessage,
  type RequestPart,
  type ResponseMessage,
  requestMessage,
  SYNTHESIZED_RETURN,
  type ToolCallPart,
  type ToolReturnPart,
  toolCalls,
  toolReturnPart,
} from '../../messages/index.ts'

// What is made of a history that was cut (state spec §5.2), as it comes in. Pure: the input stays, and comes back itself if nothing changes.

/** The native parts of an interrupted tail that are no strict pairs go; a response that held nothing else goes too (B). */
export function withoutBrokenNatives(history: readonly Message[]): readonly Message[] {
  const last = history.at(-1)
  if (last?.kind !== 'response' || last.state !== 'interrupted') return history
  const parts = dropBrokenNativePairs(last.parts)
  if (parts === last.parts) return history
  const rest = history.slice(0, -1)
  return parts.length > 0 ? [...rest, { ...last, parts }] : rest
}

/** The calls of the latest response without an answer, and where that response stands; none for one that the provider suspended. */
export function unanswered(history: readonly Message[]): { at: number; calls: ToolCallPart[] } {
  const at = history.findLastIndex((message) => message.kind === 'response')
  const response = history[at] as ResponseMessage | undefined
  if (response === undefined || response.state === 'suspended') return { at, calls: [] }
  const answered = answeredCallIds(history.slice(at + 1))
  const seen = new Set<string>()
  const open = toolCalls(response).filter(({ tool_call_id: id }) => !answered.has(id) && !seen.has(id) && seen.add(id))
  return { at, calls: open }
}

/**
 * Closes what the latest response left open: into the last request behind it, else in a new one (state spec §4.4 "Placement").
 * @param o.content what the model reads of a call whose outcome nobody knows
 */
export function closeUnanswered(history: readonly Message[], o: { content: string; timestamp: string }): readonly Message[] {
  const { at, calls } = unanswered(history)
  if (calls.length === 0) return history
  const returns = calls.map(
    (call): ToolReturnPart =>
      toolReturnPart({
        tool_name: call.tool_name,
        tool_call_id: call.tool_call_id,
        content: o.content,
        outcome: 'failed',
        timestamp: o.timestamp,
      }),
  )
  const last = history.at(-1)
  if (history.length - 1 > at && last?.kind === 'request')
    return [...history.slice(0, -1), { ...last, parts: [...last.parts, ...returns] }]
  return [...history, requestMessage({ parts: returns, timestamp: null })]
}

/**
 * Answers the calls that an *older* response left open, at the head of the request behind it, so that no model is shown a call without an
 * answer (settled list A2).
 */
export function closeOlder(history: readonly Message[], o: { content: string; timestamp: string }): readonly Message[] {
  const latest = history.findLastIndex((message) => message.kind === 'response')
  let changed: Message[] | undefined
  for (let at = 0; at < latest; at++) {
    const response = history[at]
    if (response?.kind !== 'response') continue
    const end = nextResponse(history, at)
    const answered = answeredCallIds(history.slice(at + 1, end))
    const open = toolCalls(response).filter((call) => !answered.has(call.tool_call_id))
    const target = history[at + 1]
    if (open.length === 0 || target?.kind !== 'request') continue
    const parts: RequestPart[] = open.map((call) => interruptedReturn(call, o))
    changed ??= [...history]
    changed[at + 1] = { ...target, parts: [...parts, ...target.parts] }
  }
  return changed ?? history
}

/** The return that stands in for the missing one of an older response. */
export const interruptedReturn = (call: ToolCallPart, o: { content: string; timestamp: string }): ToolReturnPart =>
  toolReturnPart({
    tool_name: call.tool_name,
    tool_call_id: call.tool_call_id,
    content: o.content,
    outcome: 'interrupted',
    metadata: { [SYNTHESIZED_RETURN]: true },
    timestamp: o.timestamp,
  })

const nextResponse = (history: readonly Message[], at: number): number => {
  const next = history.findIndex((message, i) => i > at && message.kind === 'response')
  return next < 0 ? history.length : next
}

/** Requests beside each other become one, tool results first, unless both have instructions that differ. */
export function mergeAdjacent(history: readonly Message[]): readonly Message[] {
  const merged: Message[] = []
  for (const message of history) {
    const last = merged.at(-1)
    if (message.kind === 'request' && last?.kind === 'request' && areCompatible(last, message))
      merged[merged.length - 1] = merge(last, message)
    else merged.push(message)
  }
  return merged.length === history.length ? history : merged
}

const areCompatible = (a: RequestMessage, b: RequestMessage): boolean =>
  a.instructions === null || b.instructions === null || a.instructions === b.instructions

function merge(a: RequestMessage, b: RequestMessage): RequestMessage {
  return {
    ...b,
    timestamp: b.timestamp ?? a.timestamp,
    instructions: b.instructions ?? a.instructions,
    metadata: a.metadata || b.metadata ? { ...a.metadata, ...b.metadata } : null,
    parts: returnsFirst([...a.parts, ...b.parts]),
  }
}

export const isReturn = (part: RequestPart): part is ToolReturnPart => part.part_kind === 'tool-return'

/** As a model takes them: answers before anything else. */
export const returnsFirst = (parts: readonly RequestPart[]): RequestPart[] => [
  ...parts.filter(isReturn),
  ...parts.filter((part) => !isReturn(part)),
]
