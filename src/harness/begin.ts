import { type JsonObject, type JsonValue, Payload, reject } from '../base/index.ts'
import type { EventData, EventDraft, Owner, StreamKey, ThreadKey, ToolRecovery } from '../events/index.ts'
import { checkThreadId, type HarnessState } from '../messages/index.ts'
import {
  findWait,
  latestUsage,
  type Proposal,
  type RequestedRun,
  type RunState,
  type ThreadState,
  threadStatus,
  type Wait,
} from '../projections/index.ts'
import { type Agent, proposalDigest, toolIdentity } from './agent.ts'
import { callerAnswers, callerMismatch } from './caller-answers.ts'
import type { DeferredToolResume } from './deferred/index.ts'
import { isUserContent, PAYLOAD_LIMIT } from './drafts.ts'
import { abandonWaits, CARRIED, pendingInput } from './plan.ts'
import { prepareHistory, reconcileSystemPrompt } from './prepare.ts'
import { usageMissing } from './run-errors.ts'
import { childRefs } from './state-store.ts'
import type { UsageLimits } from './usage-limits.ts'

/** Options of a run that are recorded: a recovery in another process must know them. */
export interface RunRecordOptions {
  toolRecovery: ToolRecovery
  /** `'throw'`: a tool's exception ends the run. `'return'`: the model is told the error's class name. */
  toolErrors: 'throw' | 'return'
  usageLimits?: UsageLimits
  /** Goes on counting from what the run before it, or the imported state, tells. */
  resumeUsage?: boolean
  /** Gives up what a suspended thread waits for, where its agent wants to hear that. */
  abandon?: boolean
}

export interface RunRequest {
  runId: string
  agent: string
  /** User-prompt content, or null to go on from the history alone. */
  input: JsonValue | null
  options: RunRecordOptions
  commandId: string | null
  /** What the caller answers to calls that no wait of this log stands for. */
  answers?: DeferredToolResume | undefined
}

/**
 * Opens the thread if it is new.
 * @param imported a state from elsewhere that the thread begins with
 * @throws ThreadlogError `thread_id_invalid`, `stream_kind_mismatch`, `state_too_large`
 */
export function open(proposal: Proposal, key: ThreadKey, imported?: HarnessState): Proposal {
  const identity = proposal.state.identity
  if (identity) {
    if (identity.kind === 'harness') return proposal
    throw reject('stream_kind_mismatch', 'The thread belongs to a foreign host.', { hint: 'Use another thread id.' })
  }
  const kind = imported ? 'imported' : 'new'
  return proposal.add(opened(key, { kind, state: imported ? importable(imported) : null, parent: null }))
}

/** Where a fork comes from: a position of another thread. */
export interface Parent {
  stream: StreamKey
  version: number
  hash: string
}

/**
 * Opens a thread as a copy of another one as it was; waits that were open there stay there.
 * @throws ThreadlogError `thread_exists`, `thread_id_invalid`, `state_too_large`
 */
export function fork(proposal: Proposal, key: ThreadKey, copied: HarnessState, parent: Parent): Proposal {
  if (proposal.state.identity)
    throw reject('thread_exists', 'There is a thread of that id.', { path: 'thread', expected: 'an id that is not taken' })
  return proposal.add(opened(key, { kind: 'forked', state: importable(copied), parent }))
}

function opened({ application, user, thread }: ThreadKey, origin: EventData<'thread.opened/1'>['origin']): EventDraft {
  checkThreadId(thread)
  return {
    type: 'thread.opened/1',
    data: { application_id: application, user_id: user, thread_id: thread, kind: 'harness', origin },
  }
}

/** Environments are left behind: they are what somebody else observed (state spec §1.3). References are made anew by each export. */
function importable(state: HarnessState): Payload {
  const payload = Payload.of({
    ...state.toJSON(),
    refs: childRefs(state.toJSON()) as unknown as JsonValue,
    environment_states: {},
  })
  const bytes = payload.bytes.byteLength
  if (bytes <= PAYLOAD_LIMIT) return payload
  throw reject('state_too_large', 'The state is too large to be imported.', {
    path: 'previousState',
    expected: `at most ${PAYLOAD_LIMIT} bytes of JSON`,
    details: { bytes, limit: PAYLOAD_LIMIT },
    hint: 'Export it with a store for its content.',
  })
}

/** Records that a run is wanted. The same command id asks once. @throws ThreadlogError `input_too_large` */
export function request(proposal: Proposal, r: RunRequest): Proposal {
  if (r.commandId !== null && proposal.state.commands.has(r.commandId)) return proposal
  checkRequest(r)
  const input = r.input === null ? null : Payload.of(r.input)
  if (input && input.bytes.byteLength > PAYLOAD_LIMIT - 4096)
    throw reject('input_too_large', 'The input is too large to be recorded.', {
      path: 'input',
      expected: `at most ${PAYLOAD_LIMIT - 4096} bytes of JSON`,
      details: { bytes: input.bytes.byteLength, limit: PAYLOAD_LIMIT - 4096 },
    })
  const { toolRecovery: tool_recovery, toolErrors: tool_errors, usageLimits, resumeUsage, abandon } = r.options
  if (resumeUsage && latestUsage(proposal.state) === undefined) throw usageMissing()
  const options = Payload.of({
    ...{ tool_recovery, tool_errors },
    ...(usageLimits === undefined ? {} : { usage_limits: { ...usageLimits } }),
    ...(resumeUsage ? { resume_usage: true } : {}),
    ...(abandon ? { abandon: true } : {}),
  })
  const answers = r.answers === undefined ? null : Payload.of(r.answers.toJSON())
  return proposal.add({
    type: 'run.requested/1',
    data: { run_id: r.runId, agent: r.agent, input, answers, options, command_id: r.commandId },
  })
}

function supersede(proposal: Proposal): Proposal {
  const suspended = proposal.state.run
  if (!suspended) return proposal
  const reason = 'superseded by new input'
  return abandonWaits(proposal).add({ type: 'run.cancelled/1', data: { run_id: suspended.runId, reason } })
}

/** What would keep the run from ever beginning is refused before it is recorded. */
function checkRequest({ agent, input, options }: RunRequest): void {
  if (typeof agent !== 'string' || agent.trim() === '' || !agent.isWellFormed())
    throw reject('agent_invalid', 'The run names no agent.', { path: 'agent', expected: 'the name of an agent' })
  checkToolRecovery(options.toolRecovery)
  if (!['throw', 'return'].includes(options.toolErrors))
    throw reject('option_invalid', 'There is no such handling of tool errors.', {
      path: 'toolErrors',
      expected: 'throw or return',
    })
  if (input !== null && !isUserContent(input))
    throw reject('input_invalid', 'The input is not the content of a user message.', {
      path: 'input',
      expected: 'text, or a list of text and content items (image-url, binary, …)',
    })
}

/** @throws ThreadlogError `option_invalid` */
export function checkToolRecovery(given: ToolRecovery): void {
  if (!['never', 'declared', 'always'].includes(given))
    throw reject('option_invalid', 'There is no such recovery of tools.', {
      path: 'toolRecovery',
      expected: 'never, declared or always',
    })
}

/** The options as recorded, or the engine's defaults. */
export function recordedOptions(payload: Payload | undefined): RunRecordOptions {
  const value = (payload?.value ?? {}) as JsonObject
  return {
    toolRecovery: (value['tool_recovery'] as ToolRecovery | undefined) ?? 'declared',
    toolErrors: value['tool_errors'] === 'throw' ? 'throw' : 'return',
    abandon: value['abandon'] === true,
  }
}

/** True if the thread waits, or has answers that no run has taken, and the agent wants to be told before they are given up. */
const isKept = ({ run }: ThreadState, agent: Agent, o: { abandon?: boolean | undefined; answers: unknown }): boolean =>
  run?.status === 'suspended' && agent.onNewInput === 'require-abandon' && !o.abandon && !o.answers

/** @throws ThreadlogError `suspension_open` */
export function checkSuspension(state: ThreadState, agent: Agent, o: { abandon?: boolean | undefined; answers: unknown }): void {
  if (!isKept(state, agent, o)) return
  const { code, message } = SUSPENSION_OPEN
  throw reject(code, message, {
    path: 'abandon',
    expected: 'true, to give up what the thread waits for',
    details: { waits: state.waits.size, run_id: state.run?.runId ?? '' },
    hint: 'Answer its waits, or pass `abandon: true`: then later answers get the verdict `abandoned`.',
  })
}

const SUSPENSION_OPEN = {
  code: 'suspension_open',
  message: 'The thread is suspended, and the new input does not say that it gives that up.',
}

/** Begins a requested run on an idle or suspended thread; a suspension is given up first: its waits, then its invocation. */
export function start(proposal: Proposal, requested: RequestedRun, agent: Agent, owner: Owner): Proposal {
  const { abandon } = recordedOptions(requested.options)
  if (isKept(proposal.state, agent, { abandon, answers: requested.answers })) {
    const data = { run_id: requested.runId, failure: { ...SUSPENSION_OPEN, retryable: false }, details: Payload.of({}) }
    return proposal.for(requested.runId, 1).add({ type: 'run.failed/1', data })
  }
  let begun = supersede(proposal.for(requested.runId, 1)).add(
    startedEvent({
      runId: requested.runId,
      invocationId: requested.runId,
      agent,
      owner,
      toolRecovery: recordedOptions(requested.options).toolRecovery,
      trigger: { kind: requested.answers ? 'recovery' : 'input', continuation_ids: [] },
    }),
  )
  for (const [i, content] of pendingInput(proposal.state.run).entries()) {
    const input_id = `${CARRIED}${proposal.state.run?.runId} ${i}`
    begun = begun.add({ type: 'input.accepted/1', data: { run_id: requested.runId, input_id, content } })
  }
  const answers = callerAnswers(begun.state.run)
  const details = answers && callerMismatch(answers, agent)
  if (!details) return prepareHistory(begun, agent)
  const failure = { ...SURFACE_MISMATCH, retryable: false }
  return begun.add({ type: 'run.failed/1', data: { run_id: requested.runId, failure, details: Payload.of(details) } })
}

function startedEvent(s: {
  runId: string
  invocationId: string
  agent: Agent
  owner: Owner
  toolRecovery: ToolRecovery
  trigger: { kind: 'input' | 'batch' | 'recovery'; continuation_ids: string[] }
}): EventDraft {
  return {
    type: 'run.started/1',
    data: {
      run_id: s.runId,
      invocation_id: s.invocationId,
      attempt: 1,
      owner: s.owner,
      agent: { name: s.agent.name, revision: s.agent.revision },
      tool_recovery: s.toolRecovery,
      trigger: s.trigger,
    },
  }
}

/**
 * Resumes a suspended run whose waits are all resolved (R11). The surface is checked first; when it no longer fits, nothing is
 * claimed, the attempt is recorded as failed, and the suspension stands until the agent changes.
 */
export function resume(proposal: Proposal, runId: string, agent: Agent, owner: Owner): Proposal {
  const run = proposal.state.run
  if (run?.status !== 'suspended' || threadStatus(proposal.state) !== 'resolved') return proposal
  const waits = run.waitIds.map((id) => findWait(proposal.state, id) as Wait)
  const mismatch = surfaceMismatch(waits, agent)
  if (mismatch !== undefined)
    return refuseResume(proposal, runId, agent, owner, { ...SURFACE_MISMATCH, details: { tool: mismatch } })
  // What has expired is closed, and nobody's to claim.
  const claims = waits
    .filter(({ status }) => status !== 'expired')
    .map((wait): EventDraft => {
      return { type: 'continuation.claimed/1', data: { continuation_id: wait.id, revision: wait.revision + 1 } }
    })
  return reconcileSystemPrompt(proposal.for(runId, 1).add(...claims, resumedEvent(run, runId, agent, owner)), agent)
}

const resumedEvent = (run: RunState, runId: string, agent: Agent, owner: Owner): EventDraft =>
  startedEvent({
    runId,
    invocationId: run.invocationId,
    agent,
    owner,
    toolRecovery: run.toolRecovery,
    trigger: { kind: 'batch', continuation_ids: [...run.waitIds] },
  })

export const SURFACE_MISMATCH = {
  code: 'deferred_surface_mismatch',
  message: 'The agent no longer offers a tool that the suspended run waits for, or no longer as it was approved.',
}

/** Records that a suspended run cannot be resumed by this revision of its agent; nothing is claimed and the suspension stands (R11). */
export function refuseResume(
  proposal: Proposal,
  runId: string,
  agent: Agent,
  owner: Owner,
  why: { code: string; message: string; details: JsonObject },
): Proposal {
  const { code, message } = why
  const data = { run_id: runId, failure: { code, message, retryable: false }, details: Payload.of(why.details) }
  const started = resumedEvent(proposal.state.run as RunState, runId, agent, owner)
  return proposal.for(runId, 1).add(started, { type: 'run.failed/1', data })
}

/** The identity of a waiting tool that this agent lacks. A failed external call may be closed without its tool (state
 * spec §3.4), and so may any that has expired. */
function surfaceMismatch(waits: readonly Wait[], agent: Agent): string | undefined {
  for (const { item, outcome, status } of waits) {
    if (status === 'expired') continue
    const tool = agent.tools.get(item.tool_name)
    if (!tool && item.kind === 'external' && outcome?.failure) continue
    if (!tool || toolIdentity(tool) !== item.tool) return item.tool
    // An approval is of a tool, arguments and a definition: of another definition nobody was asked.
    if (agent.onChangedProposal === 'report') continue
    if (item.kind === 'approval' && proposalDigest(tool, item.arguments.value as JsonObject) !== item.proposal_digest)
      return item.tool
  }
  return undefined
}

/** Takes over a run whose owner is gone. */
export function recover(proposal: Proposal, owner: Owner, why: string): Proposal {
  const run = proposal.state.run as RunState
  const attempt = run.attempt + 1
  return proposal.for(run.runId, attempt).add({ type: 'run.recovered/1', data: { run_id: run.runId, attempt, owner, why } })
}
