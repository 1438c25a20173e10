import {
  type Clock,
  isJsonObject,
  isThreadlogError,
  type JsonObject,
  MAX_TIMER_MS,
  Payload,
  toJson,
  whenAborted,
} from '../base/index.ts'
import { externalIdSchema } from '../continuations/index.ts'
import { INLINE_PAYLOAD } from '../events/index.ts'
import { type Agent, type Policy, type PolicyDecision, toolIdentity } from './agent.ts'
import { lowered, type Outcome, outcomeOf } from './deferred/index.ts'
import { PAYLOAD_LIMIT } from './drafts.ts'
import { errorName } from './error-name.ts'
import type { Executed, Start } from './executed.ts'
import { isHookFailure } from './hook-failure.ts'
import type { CapabilityStore } from './tool.ts'

export interface Execution {
  start: Start
  agent: Agent
  clock: Clock
  /** Monotonic milliseconds before the dispatch was sent, and how long after it the effect may start. */
  sentAt: number
  startByMs: number
  signal: AbortSignal
  deps: unknown
  principal: unknown
  policy: Policy | undefined
  /** False: what would wait is denied. */
  deferral: boolean
  capabilities: CapabilityStore
  /** What capabilities do before the call begins. It throws HookFailure. */
  before: (() => Promise<void>) | undefined
}

/** What the model reads of a call that a policy refuses, and a person of one that it makes them decide. */
export const POLICY_DENIED = 'A policy refuses the call. It was not run.'
export const POLICY_REASON = 'A policy asks for a decision about this call.'
/** What the model reads of a call that would have to wait in a run that cannot. */
export const DEFERRAL_UNAVAILABLE = 'The call needs an answer from outside, and this run cannot wait for one.'
/** Metadata of a request for approval: what the policy said. */
export const INVOCATION_POLICY = 'a13n.harness.invocation-policy'

/** Asks the policy and the capabilities, then runs one tool body. Never rejects: whatever they do becomes an outcome. */
export async function execute(e: Execution): Promise<Executed> {
  const { tool, args, key: idempotencyKey, callId, approved } = e.start
  const timeout = new AbortController()
  const timer =
    tool.timeoutMs === undefined ? undefined : setTimeout(() => timeout.abort(), Math.min(tool.timeoutMs, MAX_TIMER_MS))
  const signal = AbortSignal.any([e.signal, timeout.signal])
  try {
    const asked = askedFirst(e)
    if (asked.length > 0) {
      const refused = await Promise.race([policyRefusal(e, asked), aborted(signal)])
      if (refused === TIMED_OUT) return timeout.signal.aborted ? failed('tool_timeout', false) : { is: 'missed' }
      if (refused) return refused
    }
    if (
      e.before &&
      !e.signal.aborted &&
      (await Promise.race([e.before(), aborted(signal)])) === TIMED_OUT &&
      timeout.signal.aborted
    )
      return failed('tool_timeout', false)
    if (e.signal.aborted) return { is: 'missed' }
    if (e.clock.monotonic() - e.sentAt > e.startByMs) return { is: 'missed' }
    const common = { idempotencyKey, callId, signal, deps: e.deps }
    if (tool.submit) return e.deferral ? submitted(await tool.submit(args, common), e) : DENIED
    const metadata = structuredClone(e.start.metadata ?? {})
    const body = tool.execute?.(args, { ...common, approved, metadata, capabilities: e.capabilities })
    const value = await (timer === undefined ? body : Promise.race([body, aborted(timeout.signal)]))
    if (value === TIMED_OUT) return failed('tool_timeout', false)
    return settled(value, e)
  } catch (error) {
    if (timeout.signal.aborted) return failed('tool_timeout', false)
    if (isHookFailure(error)) return { is: 'prevented', failure: error }
    const outcome = outcomeOf(error)
    return outcome ? ofOutcome(outcome, e) : { is: 'threw', error, errorName: errorName(error) }
  } finally {
    clearTimeout(timer)
  }
}

/** Policy and reviewer, as far as this call has them. */
function askedFirst({ policy, agent, start }: Execution): Policy[] {
  const reviewed = agent.permissions.get(start.tool.name) === 'review'
  return [policy ?? [], reviewed ? (agent.reviewer ?? (() => 'approval_required' as const)) : []].flat()
}

/** Asks each once for this dispatch; undefined when the call may run. */
async function policyRefusal(e: Execution, asked: readonly Policy[]): Promise<Executed | undefined> {
  const { tool, args, callId, approved } = e.start
  const call = { tool: tool.name, identity: toolIdentity(tool), args, callId, approved, principal: e.principal }
  for (const ask of asked) {
    const decision = await ask(call)
    const refusal = decision === undefined ? undefined : ruled(decision, e)
    if (refusal) return refusal
  }
  return undefined
}

function ruled(given: PolicyDecision, e: Execution): Executed | undefined {
  const { decision, metadata = {} } = typeof given === 'object' && given !== null ? given : { decision: given }
  // What is no decision is no permission.
  if (decision !== 'allow' && decision !== 'approval_required') return { is: 'failed', content: POLICY_DENIED }
  if (decision !== 'approval_required' || e.start.approved) return undefined
  return deferred(e, 'approval', { [INVOCATION_POLICY]: { decision, metadata } })
}

const DENIED: Executed = { is: 'denied', content: DEFERRAL_UNAVAILABLE }

const deferred = (e: Execution, kind: 'external' | 'approval', metadata: JsonObject): Executed =>
  e.deferral ? { is: 'deferred', kind, metadata } : DENIED

/** What `submit` answered with: the id of a job, or an outcome of its own. */
function submitted(value: unknown, e: Execution): Executed {
  const outcome = outcomeOf(value)
  if (outcome) return ofOutcome(outcome, e)
  const { externalId } = (value ?? {}) as { externalId?: unknown }
  const checked = externalIdSchema.safeParse(externalId)
  if (!checked.success) return failed('external_id_invalid', false)
  return { is: 'deferred', kind: 'external', metadata: {}, externalId: checked.data }
}

const TIMED_OUT = Symbol('timed out')
const aborted = (signal: AbortSignal): Promise<typeof TIMED_OUT> => whenAborted(signal).then(() => TIMED_OUT)

const failed = (code: string, retryable: boolean): Executed => ({ is: 'failed', content: { error: { code, retryable } } })

function settled(value: unknown, e: Execution): Executed {
  const outcome = outcomeOf(value)
  return outcome ? ofOutcome(outcome, e) : returned(value)
}

function ofOutcome(outcome: Outcome, e: Execution): Executed {
  switch (outcome.is) {
    case 'tool-return': {
      const { returnValue, metadata } = lowered(outcome, () => new TypeError('extra content is no JSON'))
      return returned(returnValue, metadata)
    }
    case 'tool-failed':
      return { is: 'failed', content: outcome.message }
    case 'model-retry':
      return { is: 'retried', content: outcome.message }
    case 'call-deferred':
      return deferred(e, 'external', jsonOf(outcome.metadata))
    case 'approval-required':
      return deferred(e, 'approval', jsonOf(outcome.metadata))
    default:
      return returned(null)
  }
}

function jsonOf(metadata: unknown): JsonObject {
  try {
    const json = toJson(metadata ?? {})
    return isJsonObject(json) ? json : {}
  } catch {
    return {}
  }
}

/** An effect that happened must always be able to settle: what cannot be stored becomes a failed return that says so (R17). */
function returned(value: unknown, metadata?: unknown): Executed {
  try {
    const content = toJson(value ?? null)
    const notes = metadata === undefined ? undefined : toJson(metadata)
    const bytes = Payload.of(notes === undefined ? content : [content, notes]).bytes.byteLength
    if (bytes > PAYLOAD_LIMIT) return failed('result_too_large', false)
    return {
      is: 'returned',
      content,
      bytes: Math.min(bytes, INLINE_PAYLOAD),
      ...(notes === undefined ? {} : { metadata: notes }),
    }
  } catch (error) {
    if (isThreadlogError(error, 'json_invalid')) return failed('result_not_json', false)
    throw error
  }
}
