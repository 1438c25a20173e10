import { isJsonObject, type JsonObject, type JsonValue, type Payload, toJson } from '../base/index.ts'
import { DEFERRED_FUNCTION_ID } from '../messages/index.ts'
import { DEFAULT_DENIAL, type RunState, type ThreadState } from '../projections/index.ts'
import { type Agent, toolIdentity } from './agent.ts'
import type { Approval } from './classify.ts'
import { type DeferredRequest, DeferredToolResume, outcomeOf } from './deferred/index.ts'

// Answers that the caller of a run brought for calls no wait of this log stands for (state spec §3.5, §3.6). They stand in `run.requested`, so
// whoever recovers the run has them too.

const parsed = new WeakMap<Payload, DeferredToolResume>()

/** What the caller of a run answered. */
export function callerAnswers(run: RunState | undefined): DeferredToolResume | undefined {
  const payload = run?.answers
  if (!payload) return undefined
  let resume = parsed.get(payload)
  if (!resume) {
    resume = DeferredToolResume.parse(payload.value)
    parsed.set(payload, resume)
  }
  return resume
}

/** What an answer makes of its call: an answer to settle it with, or a permission to run. */
export type CallerAnswer =
  | { is: 'settled'; settlement: 'returned' | 'failed' | 'denied'; content: JsonValue; metadata?: JsonValue }
  | { is: 'approved'; approval: Approval }

/**
 * The answer for one call of the model. A permission counts for the attempt it was given to: neither a run that goes on after an interruption nor a
 * later attempt has it.
 */
export function answerFor(run: RunState, callId: string): CallerAnswer | undefined {
  const resume = callerAnswers(run)
  if (!resume) return undefined
  const { requests, results, recovery } = resume
  const isCall = ({ modelCall }: DeferredRequest) => modelCall.toolCallId === callId
  const call = requests.calls.find(isCall)
  if (call) return settledBy(results.calls[call.targetCall.toolCallId])
  const request = requests.approvals.find(isCall)
  if (!request) return undefined
  const decision = results.approvals[request.targetCall.toolCallId]
  const outcome = outcomeOf(decision)
  if (decision === false || outcome?.is === 'denied') {
    const message = outcome?.is === 'denied' ? outcome.message : undefined
    return { is: 'settled', settlement: 'denied', content: message ?? DEFAULT_DENIAL }
  }
  if (recovery || run.attempt !== 1) return undefined
  const overrideArgs = outcome?.is === 'approved' && isJsonObject(outcome.overrideArgs) ? outcome.overrideArgs : undefined
  const metadata = results.metadata[request.targetCall.toolCallId]
  return { is: 'approved', approval: { overrideArgs, ...(isJsonObject(metadata) && { metadata }) } }
}

function settledBy(value: unknown): CallerAnswer {
  const outcome = outcomeOf(value)
  if (outcome?.is === 'tool-failed') return { is: 'settled', settlement: 'failed', content: outcome.message }
  if (outcome?.is !== 'tool-return') return { is: 'settled', settlement: 'returned', content: toJson(value ?? null) }
  const content = toJson(outcome.returnValue ?? null)
  const metadata = outcome.metadata === undefined ? undefined : toJson(outcome.metadata)
  return { is: 'settled', settlement: 'returned', content, ...(metadata === undefined ? {} : { metadata }) }
}

/** True while accepted facts of the caller are not in the history yet: then nothing may close their calls. */
export function hasUncomposedAnswers(state: ThreadState): boolean {
  const resume = callerAnswers(state.run)
  if (!resume || !state.batch || state.batch.runId === state.run?.runId) return false
  const { calls } = state.batch
  return [...resume.requests.calls, ...resume.requests.approvals].some(
    ({ modelCall }) => calls.get(modelCall.toolCallId)?.composed !== true,
  )
}

/** True if something was accepted that is more than permission to run. */
export function hasFacts(resume: DeferredToolResume): boolean {
  const { requests, results, recovery } = resume
  if (!recovery || requests.calls.length > 0) return true
  return Object.values(results.approvals).some((decision) => decision === false || outcomeOf(decision)?.is === 'denied')
}

/**
 * The first answered call that this agent could not have asked for (state spec §3.4), and what outsiders may know of it.
 * @returns details of the mismatch; undefined if the agent still offers everything
 */
export function callerMismatch(resume: DeferredToolResume, agent: Agent): JsonObject | undefined {
  const { requests, results } = resume
  for (const { targetCall, identity } of requests.calls) {
    const tool = agent.tools.get(targetCall.toolName)
    const functionId = functionIdOf(requests.metadata[targetCall.toolCallId])
    const closed = outcomeOf(results.calls[targetCall.toolCallId])?.is === 'tool-failed'
    if (!tool && closed && functionId === undefined) continue
    if (!tool) return { tool_name: targetCall.toolName }
    if (functionId === undefined ? tool.kind !== 'external' : tool.kind !== 'local') return { tool_name: targetCall.toolName }
    if (differs(agent, targetCall.toolName, identity)) return {}
  }
  for (const { targetCall, identity } of requests.approvals) {
    const tool = agent.tools.get(targetCall.toolName)
    if (tool?.kind !== 'local') return { tool_name: targetCall.toolName }
    if (differs(agent, targetCall.toolName, identity)) return {}
  }
  return undefined
}

const functionIdOf = (metadata: unknown): JsonValue | undefined =>
  isJsonObject(metadata) ? metadata[DEFERRED_FUNCTION_ID] : undefined

const differs = (agent: Agent, name: string, identity: string): boolean => {
  const tool = agent.tools.get(name)
  return tool !== undefined && toolIdentity(tool) !== identity
}
