import { type JsonObject, type JsonValue, Payload } from '../base/index.ts'
import { isoTimestamp, type Message, type RequestMessage, type ResponseMessage, systemPromptPart } from '../messages/index.ts'
import { messageHistory, messageOf, type Proposal } from '../projections/index.ts'
import type { Agent } from './agent.ts'
import { callerAnswers, hasFacts } from './caller-answers.ts'
import { UNKNOWN_RESULT } from './drafts.ts'
import {
  closeOlder,
  closeUnanswered,
  coldStart,
  integrity,
  isCold,
  mergeAdjacent,
  withoutBrokenNatives,
} from './history/index.ts'

// What is done to a history before a run goes on from it (state spec §2.7). Each change is one `history.revised`: what stood there stays in the log.

/** What the model reads of a call that an older response left open. */
export const INTERRUPTED_BEFORE_RESULT = 'The call was interrupted before its result was recorded.'

/** Prepares the history of a thread for a run that begins; what comes from elsewhere is made whole once. */
export function prepareHistory(proposal: Proposal, agent: Agent): Proposal {
  const { state } = proposal
  const isFirst = state.identity?.origin === 'imported' && state.runs.size === 0
  const whole = isFirst ? revise(proposal, 'interrupted_tail', (history) => closedTail(proposal, history)) : proposal
  const prompted = reconcileSystemPrompt(whole, agent)
  const merged = isFirst
    ? revise(prompted, 'filter', (history) => closeOlder(mergeAdjacent(integrity(history)), interrupted(proposal)))
    : prompted
  return shortenCold(merged, agent)
}

const interrupted = ({ context }: Proposal) => ({
  content: INTERRUPTED_BEFORE_RESULT,
  timestamp: isoTimestamp(context.now),
})

/** Broken native parts go; in mode `never` open calls are closed, unless there are answers for them (state spec §4.4, §5.2). */
function closedTail({ state, context }: Proposal, history: readonly Message[]): readonly Message[] {
  const tail = withoutBrokenNatives(history)
  const answers = callerAnswers(state.run)
  if (state.run?.toolRecovery !== 'never' || (answers && hasFacts(answers))) return tail
  return closeUnanswered(tail, { content: UNKNOWN_RESULT, timestamp: isoTimestamp(context.now) })
}

type Why = 'interrupted_tail' | 'filter'

/** A capability's own view of the history, as one revision: what stands at its beginning and end stays what it is. */
export function compact(proposal: Proposal, messages: readonly Message[]): Proposal {
  const before = messageHistory(proposal.state)
  const most = Math.min(before.length, messages.length)
  let from = 0
  while (from < most && before[from] === messages[from]) from++
  let kept = 0
  while (kept < most - from && before.at(-1 - kept) === messages.at(-1 - kept)) kept++
  const inner = messages.slice(from, messages.length - kept) as unknown as JsonValue[]
  const patch = Payload.of({ splice: { from, count: before.length - kept - from, messages: inner } })
  return proposal.add({ type: 'history.revised/1', data: { why: 'compaction', patch } })
}

/** The revision that a pure change of the history makes, from the first message that differs. */
function revise(proposal: Proposal, why: Why, change: (history: readonly Message[]) => readonly Message[]): Proposal {
  const before = messageHistory(proposal.state)
  const after = change(before)
  if (after === before) return proposal
  let from = 0
  while (from < before.length && before[from] === after[from]) from++
  const messages = after.slice(from) as unknown as JsonValue[]
  return proposal.add({ type: 'history.revised/1', data: { why, patch: Payload.of({ tail: { from, messages } }) } })
}

/** Results that were consumed long ago are shortened, once the thread has been idle for long. */
function shortenCold(proposal: Proposal, agent: Agent): Proposal {
  const idleSeconds = agent.coldStartSeconds
  const { state, context } = proposal
  if (idleSeconds === undefined || !isCold(latest(proposal), { now: context.now, idleSeconds })) return proposal
  return state.history.length === 0 ? proposal : revise(proposal, 'filter', coldStart)
}

/** The latest response, alone: a thread is not read as a whole to see that it is not cold. */
function latest({ state }: Proposal): Message[] {
  for (let i = state.history.length - 1; i >= 0; i--) {
    const entry = state.history.at(i)
    if (entry?.role === 'response') return [messageOf(entry)]
  }
  return []
}

/** Puts the agent's current system prompt at the front of a history that carries another one (state spec §2.7 step 6). */
export function reconcileSystemPrompt(proposal: Proposal, agent: Agent): Proposal {
  const { history } = proposal.state
  const last = history.at(-1)
  if (last?.role === 'response' && (messageOf(last) as ResponseMessage).state === 'suspended') return proposal
  let first = 0
  while (first < history.length && history.at(first)?.role !== 'request') first++
  const entry = history.at(first)
  if (!entry || carries(messageOf(entry) as RequestMessage, agent.system)) return proposal
  const replace: JsonObject = {}
  for (const [index, other] of [...history].entries()) {
    if (other.role !== 'request') continue
    const message = messageOf(other) as RequestMessage
    const kept: RequestMessage['parts'] = message.parts.filter((part) => part.part_kind !== 'system-prompt')
    const parts = index === first ? [...systemPrompt(agent, proposal.context.now), ...kept] : kept
    if (index === first || kept.length !== message.parts.length)
      replace[String(index)] = { ...message, parts } as unknown as JsonValue
  }
  return proposal.add({ type: 'history.revised/1', data: { why: 'system_prompt', patch: Payload.of({ replace }) } })
}

function carries(message: RequestMessage, system: readonly string[]): boolean {
  const found = message.parts.flatMap((part) => (part.part_kind === 'system-prompt' ? [part.content] : []))
  return found.length === system.length && found.every((content, i) => content === system[i])
}

const systemPrompt = (agent: Agent, now: number) =>
  agent.system.map((content) => systemPromptPart({ content, timestamp: isoTimestamp(now) }))
