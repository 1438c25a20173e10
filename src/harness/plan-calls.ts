import type { JsonObject, JsonValue, Payload } from '../base/index.ts'
import { jsonDigest } from '../base/index.ts'
import { EXPIRED } from '../continuations/index.ts'
import type { EventDraft } from '../events/index.ts'
import { DEFERRED_FUNCTION_ID, parseArgs, type ToolCallPart, type ToolRetry, toolCalls } from '../messages/index.ts'
import {
  findWait,
  idempotencyKey,
  messageOf,
  type Proposal,
  type RunState,
  type ThreadState,
  type Wait,
} from '../projections/index.ts'
import { type Agent, proposalDigest, toolIdentity } from './agent.ts'
import { answerFor, type CallerAnswer } from './caller-answers.ts'
import { APPROVAL_WAIT, type Approval, approvalIn, type Classified, classify, resultSchemaId } from './classify.ts'
import { MAX_TOOL_RETRIES, type Settling, settle, settleByWait, settleUnknown } from './drafts.ts'
import type { Executed, Start } from './executed.ts'
import type { ReservedId } from './reserve.ts'
import type { Tool } from './tool.ts'

/** What the planner must know beside the state. */
export interface PlanEnvironment {
  readonly agent: Agent
  /** Calls this process is executing for the current attempt. */
  readonly inFlight: ReadonlySet<string>
  /** Calls dispatched by this attempt whose start came too late (R20): they never began. */
  readonly missed: ReadonlySet<string>
  /** Id of the wait of the n-th open call: fresh, and the same whenever this command is decided again (R2). */
  readonly continuationId: (index: number) => string
  /** Calls of this attempt whose bodies asked for an answer from outside, or for a permission. */
  readonly deferrals?: ReadonlyMap<string, Extract<Executed, { is: 'deferred' }>>
  /** The external ids that are reserved for calls of this attempt, by call id. */
  readonly reserved?: ReadonlyMap<string, ReservedId>
  /** How long after its event an effect may start, in milliseconds. */
  readonly startByMs: number
  /** What the run may do, to be kept with its waits. */
  readonly grants?: Payload | null
}

/** A call to wait for; `externalId`: of the job that was submitted for it. */
export type Deferred = Extract<Classified, { do: 'defer' }> & { call: ToolCallPart; index: number; externalId?: string }

export interface CallsPlan {
  /** Epoch milliseconds at which the next job may be submitted; undefined: none is waited for. */
  readonly later: number | undefined
  readonly proposal: Proposal
  readonly starts: readonly Start[]
  readonly deferred: readonly Deferred[]
}

/** The calls of the latest response that have no answer yet, in order. */
export function openBatchCalls(state: ThreadState): ToolCallPart[] {
  const batch = state.batch
  if (!batch) return []
  const response = messageOf(batch.response)
  if (response.kind !== 'response') return []
  // Of calls under one id, which only an imported response has, the first stands for all: an answer names its call by the id.
  const seen = new Set<string>()
  return toolCalls(response).filter(({ tool_call_id: id }) => !batch.calls.get(id)?.settled && !seen.has(id) && seen.add(id))
}

/** What an answered wait says of its call. */
interface Answer {
  readonly is: 'answered'
  readonly wait: Wait
  readonly settlement: 'returned' | 'failed' | 'denied'
}

/** What is to become of one open call. */
type Verdict =
  | { is: 'left' }
  | { is: 'unknown'; reason: string }
  | Answer
  | Extract<CallerAnswer, { is: 'settled' }>
  | { is: 'expired'; settling: Settling }
  | { is: 'deferred'; how: Extract<Executed, { is: 'deferred' }> }
  | { is: 'ready'; approval?: Approval; resubmission?: number }
  | { is: 'later'; at: number }

function waitOf(state: ThreadState, callId: string): Wait | undefined {
  const id = state.batch?.calls.get(callId)?.waitId
  return id === undefined ? undefined : findWait(state, id)
}

function grantedBy({ outcome, item }: Wait): Approval | undefined {
  const approval = approvalIn(outcome?.value?.value ?? null)
  const proposal = { digest: item.proposal_digest, args: item.arguments.value as JsonObject }
  return approval && { ...approval, proposal }
}

/**
 * The answer that was accepted for a call, claimed or, when new input or a cancel came first, not; a granted approval is none: the call is
 * still to run.
 */
export function acceptedAnswer(state: ThreadState, callId: string): Answer | undefined {
  const wait = waitOf(state, callId)
  if (!wait?.outcome || isFollowed(state, callId, wait)) return undefined
  if (wait.outcome.failure) return { is: 'answered', wait, settlement: 'failed' }
  if (wait.item.kind !== 'approval') return { is: 'answered', wait, settlement: 'returned' }
  return grantedBy(wait) ? undefined : { is: 'answered', wait, settlement: 'denied' }
}

/** True once another job was submitted for the call: the failure of the one before is not its answer. */
const isFollowed = (state: ThreadState, callId: string, { claimedBy }: Wait): boolean =>
  claimedBy !== undefined && state.batch?.calls.get(callId)?.dispatch?.runId === claimedBy.runId

/** Whether a job that has failed for the time being is followed by another one, and when: counted from where a run took the failure. */
function resubmission(
  state: ThreadState,
  run: RunState,
  call: ToolCallPart,
  env: PlanEnvironment,
  now: number,
): Verdict | undefined {
  const wait = waitOf(state, call.tool_call_id)
  const { resubmit } = env.agent.tools.get(call.tool_name) ?? {}
  if (!resubmit || wait?.item.kind !== 'external' || !wait.outcome?.failure?.retryable) return undefined
  if (isFollowed(state, call.tool_call_id, wait)) return undefined
  const attempt = (state.batch?.calls.get(call.tool_call_id)?.resubmissions ?? 0) + 1
  if (attempt > resubmit.attempts) return undefined
  const at = run.startedAt + resubmit.delayMs(attempt)
  return now < at ? { is: 'later', at } : { is: 'ready', resubmission: attempt }
}

/** What becomes of a call whose wait has expired: the model reads it as any failure of a provider (design §6). */
export function expiredCall(state: ThreadState, call: ToolCallPart): Settling | undefined {
  const wait = waitOf(state, call.tool_call_id)
  if (wait?.status !== 'expired') return undefined
  const { code, retryable } = wait.endedWith ?? EXPIRED
  const content = { error: { code, retryable } }
  return { callId: call.tool_call_id, toolName: call.tool_name, settlement: 'failed', content }
}

function judge(state: ThreadState, run: RunState, call: ToolCallPart, env: PlanEnvironment, now: number): Verdict {
  const again = resubmission(state, run, call, env, now)
  if (again) return again
  const answer = acceptedAnswer(state, call.tool_call_id)
  if (answer) return answer
  const settling = expiredCall(state, call)
  if (settling) return { is: 'expired', settling }
  const batch = state.batch as NonNullable<ThreadState['batch']>
  const given = batch.runId === run.runId ? undefined : answerFor(run, call.tool_call_id)
  if (given?.is === 'settled') return given
  const wait = waitOf(state, call.tool_call_id)
  const current = (by: { runId: string | null; attempt: number | null }) => by.runId === run.runId && by.attempt === run.attempt
  // An approval is never permission to replay: it counts for the attempt that claimed it (R18).
  const claimed = wait?.claimedBy && wait.item.kind === 'approval' && current(wait.claimedBy) ? grantedBy(wait) : undefined
  const approval = claimed ?? given?.approval
  const dispatch = batch.calls.get(call.tool_call_id)?.dispatch
  if (dispatch && current(dispatch)) {
    const how = env.deferrals?.get(call.tool_call_id)
    if (how) return { is: 'deferred', how }
    return env.missed.has(call.tool_call_id) ? { is: 'ready', approval } : { is: 'left' }
  }
  // Claimed by this attempt, so given after any dispatch of an earlier one.
  if (approval) return { is: 'ready', approval }
  const isAsked = wait?.item.kind === 'external' && !isFollowed(state, call.tool_call_id, wait)
  if (dispatch) return recovered(run, call, env, isAsked ? 'unanswered' : 'interrupted')
  if (batch.origin.startsWith('m') || wait?.status === 'abandoned') return recovered(run, call, env, 'unanswered')
  if (current(batch)) return { is: 'ready' }
  return run.toolRecovery === 'never' ? { is: 'unknown', reason: 'not-started' } : { is: 'ready' }
}

/** The matrix of state spec §4.2 for a call that was, or may have been, dispatched before. */
function recovered(run: RunState, call: ToolCallPart, env: PlanEnvironment, reason: 'interrupted' | 'unanswered'): Verdict {
  const tool = env.agent.tools.get(call.tool_name)
  if (run.toolRecovery === 'never') return { is: 'unknown', reason }
  if (!tool) return { is: 'unknown', reason: 'tool-gone' }
  // A submission is made to be repeated: under its key it is the same job.
  const isSafe = tool.retryable || (tool.submit !== undefined && reason === 'interrupted')
  if (run.toolRecovery === 'declared' && !isSafe) return { is: 'unknown', reason }
  return { is: 'ready' }
}

/**
 * Settles what needs no running, dispatches what may run now, and lists what only the outside can answer. Answers keep the order
 * of the calls; a sequential tool runs alone.
 */
export function planCalls(proposal: Proposal, env: PlanEnvironment): CallsPlan {
  const starts: Start[] = []
  const deferred: Deferred[] = []
  const run = proposal.state.run
  let later: number | undefined
  if (!run) return { proposal, starts, deferred, later }
  let barrier = [...env.inFlight].some((id) => isSequential(proposal.state, id, env.agent))
  let running = env.inFlight.size
  for (const [index, call] of openBatchCalls(proposal.state).entries()) {
    const id = call.tool_call_id
    const verdict = judge(proposal.state, run, call, env, proposal.context.now)
    if (verdict.is === 'left') continue
    if (verdict.is === 'later') {
      later = Math.min(later ?? verdict.at, verdict.at)
      continue
    }
    const known = proposal.state.batch?.calls.get(id)
    const context = proposal.context
    if (verdict.is === 'unknown') proposal = proposal.add(settleUnknown(context, id, call.tool_name, known, verdict.reason))
    else if (verdict.is === 'expired') proposal = proposal.add(settle(context, verdict.settling))
    else if (verdict.is === 'settled') {
      const { settlement, content, metadata } = verdict
      const settling = { callId: id, toolName: call.tool_name, settlement, content }
      proposal = proposal.add(settle(context, metadata === undefined ? settling : { ...settling, metadata }))
    } else if (verdict.is === 'deferred') {
      const item = runtimeDeferral(env.agent, call, verdict.how)
      const { externalId } = verdict.how
      if (item) deferred.push({ ...item, call, index, ...(externalId === undefined ? {} : { externalId }) })
    } else if (verdict.is === 'answered') proposal = proposal.add(settleByWait(id, verdict.wait.id, verdict.settlement))
    else {
      const what = classify(env.agent, call, verdict.approval)
      if (what.do === 'defer') deferred.push({ ...what, call, index })
      else if (what.do === 'dispatch') {
        if (barrier || (what.tool.sequential && running > 0)) {
          barrier = true
          continue
        }
        const start: Start = {
          ...what,
          callId: id,
          number: (known?.dispatch?.number ?? 0) + 1,
          key: keyOf(proposal.state, id, verdict.resubmission),
        }
        proposal = proposal.add(dispatch(start, env.startByMs, changedSince(verdict.approval, what.tool)))
        starts.push(start)
        running++
        barrier = what.tool.sequential
      } else proposal = proposal.add(refuse(proposal, run, call, what))
    }
  }
  return { proposal, starts, deferred, later }
}

/** A wait for a tool whose body asked for it. */
function runtimeDeferral(
  agent: Agent,
  call: ToolCallPart,
  { kind, metadata, externalId }: Extract<Executed, { is: 'deferred' }>,
): Extract<Classified, { do: 'defer' }> | undefined {
  const tool = agent.tools.get(call.tool_name)
  const parsed = parseArgs(call)
  if (!tool || !parsed.ok) return undefined
  if (kind === 'approval') return { do: 'defer', tool, args: parsed.value, metadata, ...APPROVAL_WAIT }
  const own = externalId === undefined ? { [DEFERRED_FUNCTION_ID]: toolIdentity(tool), ...metadata } : metadata
  const wait = { kind: 'external', provider: tool.provider ?? 'client', schemaId: resultSchemaId(tool) } as const
  return { do: 'defer', tool, args: parsed.value, metadata: own, ...wait }
}

function isSequential(state: ThreadState, callId: string, agent: Agent): boolean {
  const call = openBatchCalls(state).find((candidate) => candidate.tool_call_id === callId)
  return call !== undefined && agent.tools.get(call.tool_name)?.sequential === true
}

/** Each further job of a call is another effect, with a key of its own; a dispatch of the same one has the same key. */
function keyOf(state: ThreadState, callId: string, resubmission = state.batch?.calls.get(callId)?.resubmissions): string {
  const key = idempotencyKey(state.identity?.stream ?? '', state.batch?.origin ?? '', callId)
  return resubmission === undefined ? key : jsonDigest([key, 'resubmission', resubmission])
}

/** What is proposed now, if the tool was defined anew since its call was approved. */
function changedSince(approval: Approval | undefined, tool: Tool): string | null {
  if (!approval?.proposal) return null
  const now = proposalDigest(tool, approval.proposal.args)
  return now === approval.proposal.digest ? null : now
}

const dispatch = (start: Start, startByMs: number, changed: string | null): EventDraft => ({
  type: 'tool.dispatched/1',
  data: {
    call_id: start.callId,
    tool: toolIdentity(start.tool),
    arguments_digest: jsonDigest(start.args as JsonValue),
    number: start.number,
    idempotency_key: start.key,
    start_by_ms: startByMs,
    changed_proposal: changed,
  },
})

/** A call that is answered without running: the model is told what to mend. */
function refuse(
  proposal: Proposal,
  run: RunState,
  call: ToolCallPart,
  what: Extract<Classified, { do: 'retry' | 'fail' }>,
): EventDraft {
  const common = { callId: call.tool_call_id, toolName: call.tool_name, content: what.content }
  if (what.do === 'fail') return settle(proposal.context, { ...common, settlement: 'failed' })
  return settle(proposal.context, { ...common, settlement: 'retried', retry: retryOf(run, call.tool_name, what.cause) })
}

/** Which retry of a tool this is. */
export const retryOf = (run: RunState | undefined, toolName: string, cause: ToolRetry['cause']): ToolRetry => ({
  cause,
  attempt: (run?.retries.get(toolName) ?? 0) + 1,
  max_retries: MAX_TOOL_RETRIES,
})
