import { type Message, requestMessage, type ToolCallPart, toolCalls } from '../../messages/index.ts'
import { interruptedReturn, isReturn, mergeAdjacent, returnsFirst } from './interrupted.ts'

/**
 * A history as a model is shown it; nothing of this is recorded. Requests beside each other are one, answers first. Every call but those of
 * the last message has an answer: one without, or made more often than answered, is answered as interrupted (settled list A2).
 * @param o.content what the model reads of such a call
 */
export function asShown(history: readonly Message[], o: { content: string; timestamp: string }): readonly Message[] {
  const merged = mergeAdjacent(history)
  const shown: Message[] = []
  let missing: ToolCallPart[] = []
  let changed = false
  for (const [at, message] of merged.entries()) {
    if (missing.length > 0) {
      const returns = missing.map((call) => interruptedReturn(call, o))
      changed = true
      if (message.kind === 'request') shown.push({ ...message, parts: returnsFirst([...message.parts, ...returns]) })
      else shown.push(requestMessage({ parts: returns, timestamp: null }), message)
    } else shown.push(message)
    missing = message.kind === 'response' ? unansweredBehind(merged, at) : []
  }
  return changed ? shown : merged
}

/** The calls of a response that have no return of their own in the requests behind it. */
function unansweredBehind(history: readonly Message[], at: number): ToolCallPart[] {
  const response = history[at]
  const calls = response?.kind === 'response' ? toolCalls(response) : []
  if (calls.length === 0) return calls
  const answers = new Map<string, number>()
  for (let i = at + 1; i < history.length; i++) {
    const message = history[i]
    if (message?.kind !== 'request') break
    for (const part of message.parts)
      if (isReturn(part)) answers.set(part.tool_call_id, (answers.get(part.tool_call_id) ?? 0) + 1)
  }
  return calls.filter(({ tool_call_id: id }) => {
    const left = answers.get(id) ?? 0
    if (left > 0) answers.set(id, left - 1)
    return left === 0
  })
}
