import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import type { LogEvent } from '../../../src/events/index.ts'
import { type Message, toolCalls } from '../../../src/messages/index.ts'
import { decodeState, encodeState, emptyFold, findWait, type Folded, foldRecord, foldStream, messageHistory, stateHash, type ThreadState } from '../../../src/projections/index.ts'
import { type Execution } from './process.ts'
import type { World } from './world.ts'

/** A commit as it stands in the log, and the fold on both sides of it. */
export interface Step {
  readonly events: readonly LogEvent[]
  readonly before: ThreadState
  readonly after: ThreadState
}

/** What a world left behind, read once for all laws. */
export interface Story {
  readonly world: World
  readonly events: readonly LogEvent[]
  readonly commits: readonly Step[]
  /** The fold after each number of events. */
  readonly folds: readonly Folded[]
}

export function storyOf(world: World): Story {
  const folds: Folded[] = [emptyFold]
  for (const record of world.log.records) folds.push(foldRecord(folds.at(-1) as Folded, record))
  const events = world.log.records.map((record) => record.event as LogEvent)
  const commits: Step[] = []
  for (let at = 0; at < events.length; ) {
    const { size } = (events[at] as LogEvent).commit
    commits.push({ events: events.slice(at, at + size), before: stateAt(folds, at), after: stateAt(folds, at + size) })
    at += size
  }
  return { world, events, commits, folds }
}

const stateAt = (folds: readonly Folded[], version: number): ThreadState => (folds[version] as Folded).state

/** What is wrong, or nothing. */
type Law = (story: Story) => Iterable<string>

/** Calls answered exactly once, by what follows them, before the model speaks again. */
function* illegal(messages: readonly Message[]): Iterable<string> {
  let open = new Map<string, string>()
  let before: Message | undefined
  for (const [i, message] of messages.entries()) {
    if (message.kind === 'response') {
      if (open.size > 0) yield `message ${i}: ${[...open.keys()].join(', ')} unanswered when the model speaks`
      if (before?.kind === 'response' && before.state !== 'suspended') yield `message ${i}: two responses in a row`
      open = new Map(toolCalls(message).map((call) => [call.tool_call_id, call.tool_name]))
    } else
      for (const part of message.parts) {
        if (part.part_kind !== 'tool-return') continue
        if (open.get(part.tool_call_id) !== part.tool_name) yield `message ${i}: a return of ${part.tool_call_id} without its call`
        open.delete(part.tool_call_id)
      }
    before = message
  }
  if (before?.kind === 'request' && open.size > 0) yield `the request leaves ${[...open.keys()].join(', ')} open`
}

function* illegalPrompt(prompt: LanguageModelV4Prompt): Iterable<string> {
  let open = new Set<string>()
  let role = ''
  for (const message of prompt) {
    if (message.role !== 'tool' && open.size > 0) yield `a ${message.role} message before the results of ${[...open].join(', ')}`
    if (message.role === role && role !== 'assistant' && role !== 'system') yield `two ${role} messages in a row`
    role = message.role
    if (message.role === 'assistant')
      open = new Set(message.content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : [])))
    if (message.role === 'tool')
      for (const part of message.content)
        if (part.type === 'tool-result' && !open.delete(part.toolCallId)) yield `a result of ${part.toolCallId} without its call`
  }
  if (open.size > 0) yield `the prompt ends with ${[...open].join(', ')} open`
}

/** The model is asked when a run goes on from a request. */
const isAsking = (state: ThreadState): boolean =>
  state.run?.status === 'running' && !state.run.cancel && state.history.at(-1)?.role === 'request'

const historyIsLegal: Law = function* ({ world, commits }) {
  for (const prompt of world.prompts) yield* illegalPrompt(prompt)
  for (const { after } of commits) if (isAsking(after)) yield* illegal(messageHistory(after))
  const end = commits.at(-1)?.after
  if (end && !end.run) yield* illegal(messageHistory(end))
}

/** The dispatch an effect began under: the latest one of its key when it began. */
function dispatchOf(events: readonly LogEvent[], { key, version }: Execution) {
  const event = events.slice(0, version).findLast((e) => e.type === 'tool.dispatched/1' && e.data.idempotency_key === key)
  return event?.type === 'tool.dispatched/1' ? event : undefined
}

const modeAt = (folds: readonly Folded[], version: number) => stateAt(folds, version).run?.toolRecovery

const effectsAreOnce: Law = function* ({ world, events, folds }) {
  const earlier = new Map<string, Execution>()
  for (const execution of world.executions) {
    const { key, version, agent, tool, callId } = execution
    const before = earlier.get(key)
    earlier.set(key, execution)
    if (!before) continue
    const [then, now] = [dispatchOf(events, before), dispatchOf(events, execution)]
    if (then?.version === now?.version) yield `${callId} ${tool} ran twice under one dispatch`
    const mode = modeAt(folds, version)
    const marked = agent.tools.get(tool)?.retryable === true
    if (mode !== 'always' && !(mode === 'declared' && marked)) yield `${callId} ${tool} ran twice in mode ${mode}`
  }
}

const effectsFollowTheirEvent: Law = function* ({ world, events, folds }) {
  for (const execution of world.executions) {
    const { callId, tool, owner, version, key } = execution
    const dispatch = dispatchOf(events, execution)
    if (!dispatch) {
      yield `${callId} ${tool} began at version ${version}, before its dispatch`
      continue
    }
    if (dispatch.data.call_id !== callId) yield `the key of ${callId} belongs to ${dispatch.data.call_id}`
    if (stateAt(folds, dispatch.version).run?.owner.id !== owner) yield `${owner} ran ${callId}, dispatched by another`
    const batches = new Set(
      events.filter((e) => e.type === 'tool.dispatched/1' && e.data.idempotency_key === key).map((e) => stateAt(folds, e.version).batch?.origin),
    )
    if (batches.size > 1) yield `one key for calls of ${batches.size} responses`
    const taken = events.slice(0, version).find((e) => e.type === 'run.recovered/1' && e.data.run_id === dispatch.run_id && e.data.attempt > (dispatch.attempt ?? 0))
    if (taken) yield `${callId} ${tool} began after the takeover at version ${taken.version}`
  }
}

const approvalsCountOnce: Law = function* ({ world, events, folds }) {
  for (const execution of world.executions) {
    const { callId, tool, approved, agent } = execution
    const dispatch = dispatchOf(events, execution)
    if (!approved) {
      if (agent.tools.get(tool)?.needsApproval({ n: 1 })) yield `${callId} ${tool} ran without an approval`
      continue
    }
    const state = stateAt(folds, execution.version)
    const granted = [...state.closedWaits].some(
      ([, wait]) =>
        wait.status === 'claimed' &&
        wait.item.kind === 'approval' &&
        wait.item.model_call_id === callId &&
        wait.claimedBy?.runId === dispatch?.run_id &&
        wait.claimedBy?.attempt === dispatch?.attempt &&
        (wait.outcome?.value?.value as { approved?: boolean } | undefined)?.approved === true,
    )
    if (!granted) yield `${callId} ${tool} ran as approved, but this attempt claimed no approval`
  }
}

/** Verdicts that stand once given; the others may give way to what has become of the wait, never to `accepted`. */
const LASTING = new Set(['accepted', 'duplicate', 'conflict', 'cancelled', 'abandoned', 'expired', 'late', 'schema-mismatch'])

const verdictsAreFinal: Law = function* ({ world, folds }) {
  const state = stateAt(folds, folds.length - 1)
  for (const [i, { verdicts, waitId, submission, context }] of world.submitted.entries()) {
    const [first] = verdicts
    if (first === undefined) continue
    const wait = findWait(state, waitId)
    for (const verdict of verdicts) {
      if (verdict !== first && (LASTING.has(first) || verdict === 'accepted')) yield `result #${i}: ${first}, then ${verdict}`
      if (verdict === 'accepted') {
        const { outcome } = wait ?? {}
        if (outcome?.digest !== submission.digest) yield `result #${i} is accepted, and its wait has another outcome`
        const own = outcome && JSON.stringify(outcome.source) === JSON.stringify(context.source)
        if (!own && (submission.result_id === undefined || outcome?.resultId !== submission.result_id))
          yield `result #${i} is accepted, and another one answered the wait`
      }
      if (verdict === 'duplicate' && wait?.outcome?.digest !== submission.digest) yield `result #${i} is no duplicate`
      if (verdict === 'conflict' && wait?.outcome?.digest === submission.digest) yield `result #${i} is no conflict`
    }
  }
}

const negativesAreBehindTheBarrier: Law = function* ({ world }) {
  for (const [i, { verdicts }] of world.submitted.entries())
    for (const verdict of verdicts) if (verdict === 'unknown' || verdict === 'wrong-scope') yield `result #${i} of a wait that exists is ${verdict}`
}

const prefixesFold: Law = function* ({ world, folds, commits }) {
  for (const { quarantine } of folds) if (quarantine) return yield `version ${quarantine.version} does not fold: ${quarantine.message}`
  const last = folds.at(-1) as Folded
  if (stateHash(foldStream(world.log.records).state) !== stateHash(last.state)) yield 'folding twice gives two states'
  for (const p of world.processes) {
    const state = await0(p)
    if (state) yield state
  }
  const tornAccepted = commits.find(({ events }) => world.torn.includes(events[0]?.commit.id ?? ''))
  if (tornAccepted) yield 'a commit of which only a part was written is accepted'
}

const await0 = (_: unknown): string | undefined => undefined
export { decodeState, encodeState, historyIsLegal, effectsAreOnce, effectsFollowTheirEvent, approvalsCountOnce, verdictsAreFinal, negativesAreBehindTheBarrier, prefixesFold }
