import { type JsonValue, Payload } from '../base/index.ts'
import type { EventDraft, WaitFailure } from '../events/index.ts'
import { isoTimestamp, type RequestMessage, type ResponseMessage, retryFeedbackPart, toolCalls } from '../messages/index.ts'
import { messageOf, type Proposal, type RunState, STALE_BRANCH, type ThreadState } from '../projections/index.ts'
import { hasUncomposedAnswers } from './caller-answers.ts'
import {
  compose,
  MAX_OUTPUT_RETRIES,
  MAX_TOOL_RETRIES,
  settle,
  settleByWait,
  settleUnknown,
  systemParts,
  userPart,
} from './drafts.ts'
import type { Start } from './executed.ts'
import { outputOf } from './output.ts'
import { acceptedAnswer, type Deferred, expiredCall, openBatchCalls, type PlanEnvironment, planCalls } from './plan-calls.ts'
import { isReserved } from './reserve.ts'
import { suspend } from './suspend.ts'
import { requestLimit, toolLimit, usageLimit } from './usage-limits.ts'

/** Digest of the settings of a request; there are none yet. */
export const NO_SETTINGS = Payload.of({}).digest

export interface Plan {
  readonly proposal: Proposal
  readonly starts: readonly Start[]
  /** What the run waits for once this is committed. */
  readonly next: 'model' | 'calls' | 'reserve' | 'pause' | 'ended'
  /** Of a pause, when it ends: epoch milliseconds. */
  readonly until?: number
}

/**
 * Everything that follows from the state without waiting for anybody: settles, dispatches, the next request, the suspension, the end.
 * The same function drives a live run, a resumed and a recovered one.
 */
export function advance(before: Proposal, env: PlanEnvironment): Plan {
  if (isPaused(before.state)) return goOn(before, env)
  const limit = usageLimit(before.state)
  if (limit) return ended(fail(before, limit))
  const { proposal, starts, deferred, later } = planCalls(before, env)
  const overrun = toolLimit(proposal.state)
  if (overrun) return ended(fail(before, overrun))
  if (starts.length > 0 || env.inFlight.size > 0) return { proposal, starts, next: 'calls' }
  if (later !== undefined) return { proposal, starts, next: 'pause', until: later }
  if (deferred.some((item) => lacksReservation(proposal.state, item, env))) return { proposal, starts, next: 'reserve' }
  const composed = composeRequest(proposal, env, deferred.length === 0)
  const exhausted = exhaustion(composed.state)
  if (exhausted) return ended(fail(composed, exhausted))
  if (deferred.length > 0) return ended(suspend(composed, deferred, env))
  const last = composed.state.history.at(-1)
  if (!last)
    return ended(fail(composed, { code: 'agent_run_failed', message: 'There is neither input nor history to go on from.' }))
  if (last.role === 'request') return ask(composed, env)
  return finish(composed, messageOf(last) as ResponseMessage, env)
}

/** True for a job that was submitted and whose id is not, or no longer, reserved. */
const lacksReservation = (state: ThreadState, { externalId, call }: Deferred, env: PlanEnvironment): boolean =>
  externalId !== undefined && !isReserved(state, env.reserved?.get(call.tool_call_id))

/** True while the provider has paused its response: it goes on before anything else does. */
export const isPaused = (state: ThreadState): boolean => {
  const last = state.history.at(-1)
  return last?.role === 'response' && (messageOf(last) as ResponseMessage).state === 'suspended'
}

/** The request again, as long as the run may make requests. */
function goOn(proposal: Proposal, env: PlanEnvironment): Plan {
  const limit = exhaustion(proposal.state)
  return limit ? ended(fail(proposal, limit)) : ask(proposal, env)
}

/** The next model request; one that no request of this run was composed for says so. A request that was cut is whole once it is sent again. */
function ask(proposal: Proposal, env: PlanEnvironment): Plan {
  const { state } = proposal
  const last = state.history.at(-1)
  const next = state.run?.step === 0 || isPaused(state) ? proposal.add(requested(state, env)) : proposal
  const message = last?.role === 'request' ? (messageOf(last) as RequestMessage) : undefined
  const isCut = message && (message.state === 'interrupted' || message.timestamp === null)
  return { proposal: isCut ? next.add(madeWhole(proposal, message)) : next, starts: [], next: 'model' }
}

const requested = (state: ThreadState, env: PlanEnvironment): EventDraft => ({
  type: 'model.requested/1',
  data: { step: nextStep(state), model: env.agent.model.modelId, settings_digest: NO_SETTINGS },
})

const madeWhole = ({ state, context }: Proposal, message: RequestMessage): EventDraft => ({
  type: 'history.revised/1',
  data: {
    why: 'interrupted_tail',
    patch: Payload.of({
      replace: { [String(state.history.length - 1)]: whole(message, context.now) },
    }),
  },
})

const whole = (message: RequestMessage, now: number) =>
  ({ ...message, state: 'complete', timestamp: message.timestamp ?? isoTimestamp(now) }) as unknown as JsonValue

const ended = (proposal: Proposal): Plan => ({ proposal, starts: [], next: 'ended' })

/** Calls that are settled and not yet in the history, in the order of the response. */
function uncomposed(state: ThreadState): string[] {
  const batch = state.batch
  if (!batch || batch.calls.size === 0) return []
  const settled = new Set([...batch.calls].filter(([, call]) => call.settled && !call.composed).map(([id]) => id))
  return toolCalls(messageOf(batch.response) as ResponseMessage)
    .map((call) => call.tool_call_id)
    .filter((id) => settled.delete(id))
}

/** The request that carries what has been settled and, once every call has an answer, the input: no model takes it between answers. */
function composeRequest(proposal: Proposal, env: PlanEnvironment, isWhole: boolean): Proposal {
  const { state, context } = proposal
  const callIds = uncomposed(state)
  const input = isWhole ? inputParts(proposal) : []
  if (callIds.length === 0 && input.length === 0) return proposal
  const system = state.history.length === 0 ? systemParts(env.agent.system, context.now) : []
  const parts = [...system, ...input]
  return proposal.add(compose(context, { step: nextStep(state), callIds, parts, threadId: threadId(state) }))
}

/** What people said that the model has not been told, in the order in which they did. */
export function pendingInput(run: RunState | undefined): Payload[] {
  const accepted = run?.accepted ?? []
  const carried = accepted.filter(({ id }) => id.startsWith(CARRIED))
  const own = accepted.filter((input) => !carried.includes(input))
  return [...carried.map(({ content }) => content), run?.input ?? [], ...own.map(({ content }) => content)].flat()
}

const inputParts = ({ state, context }: Proposal): JsonValue[] =>
  pendingInput(state.run).map((content) => userPart(content.value, context.now))

/** Before the id of input that a run takes over from the suspension it supersedes. */
export const CARRIED = 'superseded '

const nextStep = (state: ThreadState): number => (state.run?.step ?? 0) + 1
const threadId = (state: ThreadState): string => state.identity?.thread ?? ''

function exhaustion(state: ThreadState): Failing | undefined {
  const run = state.run
  if (!run) return undefined
  const limit = requestLimit(run)
  if (limit) return limit
  const spent = [...run.retries.values()].some((count) => count > MAX_TOOL_RETRIES)
  return spent
    ? { code: 'agent_run_failed', message: `The model did not mend a call in ${MAX_TOOL_RETRIES} retries.` }
    : undefined
}

/** A response without open calls: the output, or something to mend. */
function finish(proposal: Proposal, response: ResponseMessage, { agent }: PlanEnvironment): Plan {
  const { state, context } = proposal
  const said = outputOf(response, agent.output)
  if (said.is === 'output' && state.run) {
    const output = Payload.of(said.value)
    return ended(proposal.add({ type: 'run.completed/1', data: { run_id: state.run.runId, output } }))
  }
  const attempt = feedbackCount(state) + 1
  if (attempt > MAX_OUTPUT_RETRIES || said.is === 'output')
    return ended(
      fail(proposal, { code: 'agent_run_failed', message: `The model gave no output in ${MAX_OUTPUT_RETRIES} retries.` }),
    )
  const { cause, content } = said
  const retry = { cause, attempt, max_retries: MAX_OUTPUT_RETRIES }
  const feedback = retryFeedbackPart({ content, retry, timestamp: isoTimestamp(context.now) })
  const parts = [feedback as unknown as JsonValue]
  const asked = proposal.add(compose(context, { step: nextStep(state), callIds: [], parts, threadId: threadId(state) }))
  return { proposal: asked, starts: [], next: 'model' }
}

/** Feedback requests at the end of the history, each followed by another empty response. */
function feedbackCount(state: ThreadState): number {
  let count = 0
  for (let i = state.history.length - 2; i >= 0; i -= 2) {
    const entry = state.history.at(i)
    if (entry?.role !== 'request') break
    const message = messageOf(entry)
    if (!message.parts.some((part) => part.part_kind === 'retry-feedback')) break
    count++
  }
  return count
}

export interface Failing {
  code: string
  message: string
  retryable?: boolean
  details?: JsonValue
}

/** Ends the run as failed, closing what is open. */
export function fail(proposal: Proposal, failing: Failing): Proposal {
  const runId = proposal.state.run?.runId ?? proposal.context.runId ?? ''
  const { code, message, retryable = false, details = {} } = failing
  return closeCalls(proposal, true).add({
    type: 'run.failed/1',
    data: { run_id: runId, failure: { code, message, retryable }, details: Payload.of(details) },
  })
}

/** Ends the run as cancelled, closing what is open. `failure` is what a provider gave with it. */
export function cancel(proposal: Proposal, reason: string, failure: WaitFailure | null = null): Proposal {
  const runId = proposal.state.run?.runId ?? ''
  return endWaits(closeCalls(proposal, hasActed(proposal.state)), failure).add({
    type: 'run.cancelled/1',
    data: { run_id: runId, reason },
  })
}

/**
 * Closes every open call in an interrupted request, so that the history stays legal for a model: by the answer that was accepted for it,
 * else as unknown.
 * @param keepsInput what people said that no request carries yet is in it too
 */
export function closeCalls(proposal: Proposal, keepsInput: boolean): Proposal {
  if (isUntouched(proposal.state)) return proposal
  if (hasUncomposedAnswers(proposal.state)) return composeInterrupted(proposal)
  for (const call of openBatchCalls(proposal.state)) {
    const id = call.tool_call_id
    const known = proposal.state.batch?.calls.get(id)
    const answer = acceptedAnswer(proposal.state, id)
    const expired = expiredCall(proposal.state, call)
    const reason = known?.dispatch ? 'interrupted' : 'not-started'
    proposal = proposal.add(
      answer
        ? settleByWait(id, answer.wait.id, answer.settlement)
        : expired
          ? settle(proposal.context, expired)
          : settleUnknown(proposal.context, id, call.tool_name, known, reason),
    )
  }
  const parts = keepsInput ? inputParts(proposal) : []
  return uncomposed(proposal.state).length + parts.length === 0 ? proposal : composeInterrupted(proposal, parts)
}

/** What has been settled, in a request that was cut; behind a response that was cut itself the request is whole. Calls with accepted answers that are not in the history stay open (state spec §3.6). */
function composeInterrupted(proposal: Proposal, parts: JsonValue[] = []): Proposal {
  const { state, context } = proposal
  const callIds = uncomposed(state)
  const last = state.history.at(-1)
  const cutResponse = last?.role === 'response' && (messageOf(last) as ResponseMessage).state === 'interrupted'
  const how = cutResponse ? ({ state: 'complete', timestamp: null } as const) : ({ state: 'interrupted' } as const)
  return proposal.add(compose(context, { step: state.run?.step ?? 0, callIds, parts, ...how, threadId: threadId(state) }))
}

/** True once a run has asked its model, or begun a call, or goes on from answers: then it was more than asked for. */
const hasActed = ({ run }: ThreadState): boolean =>
  run !== undefined && (run.step > 0 || run.toolCalls > 0 || run.trigger.kind === 'batch' || run.status === 'suspended')

/** True for a run that was ended before it did anything: it leaves a history from elsewhere as it was prepared (settled list A7). */
function isUntouched(state: ThreadState): boolean {
  const { run, batch } = state
  const isImported = batch === undefined || batch.origin.startsWith('m')
  return isImported && run !== undefined && !hasActed(state) && !touchedBy(batch, run.runId)
}

const touchedBy = (batch: ThreadState['batch'], runId: string): boolean =>
  batch?.runId === runId ||
  [...(batch?.calls.values() ?? [])].some((call) => call.dispatch?.runId === runId || (call.settled && !call.composed))

/** Ends the waits of a suspended run: pending ones are cancelled, answered ones abandoned. */
function endWaits(proposal: Proposal, failure: WaitFailure | null): Proposal {
  for (const wait of proposal.state.waits.values()) {
    const data = { continuation_id: wait.id, revision: wait.revision + 1, failure }
    proposal = proposal.add({ type: wait.status === 'pending' ? 'continuation.cancelled/1' : 'continuation.abandoned/1', data })
  }
  return proposal
}

/**
 * Ends a suspended run because its thread goes on as another one, from an earlier point or this: its waits belong to the branch that was left,
 * and so do their results.
 */
export function leaveBranch(proposal: Proposal, thread: string): Proposal {
  const { run } = proposal.state
  if (run?.status !== 'suspended') return proposal
  const left = abandonWaits(closeCalls(proposal, true), { code: STALE_BRANCH, retryable: false })
  return left.add({ type: 'run.cancelled/1', data: { run_id: run.runId, reason: `goes on as ${thread}` } })
}

/** Gives up the waits of a suspended run for new input; their calls follow `tool_recovery` in the run that begins. */
export function abandonWaits(proposal: Proposal, failure: WaitFailure | null = null): Proposal {
  for (const wait of proposal.state.waits.values())
    proposal = proposal.add({
      type: 'continuation.abandoned/1',
      data: { continuation_id: wait.id, revision: wait.revision + 1, failure },
    })
  return proposal
}
