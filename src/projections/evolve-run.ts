import { isJsonObject, type Payload } from '../base/index.ts'
import type { EventType, LogEvent } from '../events/index.ts'
import { findWait, type RunEnd, type RunState, type ThreadState } from './state.ts'
import { known, unfoldable } from './unfoldable.ts'
import { latestUsage } from './usage.ts'

type Of<T extends EventType> = LogEvent<T>

/** The events of runs: asked for, started, recovered, suspended, ended. */
export function evolveRun(state: ThreadState, event: LogEvent): ThreadState {
  switch (event.type) {
    case 'run.requested/1':
      return requested(state, event)
    case 'run.started/1':
      return started(state, event)
    case 'run.recovered/1':
      return {
        ...state,
        run: {
          ...active(state, event),
          attempt: event.data.attempt,
          owner: event.data.owner,
          modelFailures: 0,
          updatedAt: event.time,
        },
      }
    case 'run.suspended/1':
      return suspended(state, event)
    case 'run.cancel-requested/1':
      return cancelRequested(state, event)
    case 'run.completed/1':
      return ended(state, event, { status: 'completed', output: event.data.output })
    case 'run.failed/1':
      return failed(state, event)
    case 'run.cancelled/1':
      return ended(state, event, { status: 'cancelled', reason: event.data.reason })
    default:
      throw unfoldable(event, 'this version has no rule for it.')
  }
}

function active(state: ThreadState, event: LogEvent): RunState {
  if (!state.run) throw unfoldable(event, 'no run is active.')
  return state.run
}

function requested(state: ThreadState, event: Of<'run.requested/1'>): ThreadState {
  const { run_id, agent, input, answers, options, command_id } = event.data
  const request = { runId: run_id, agent, input, answers, options, commandId: command_id, time: event.time }
  const commands = command_id === null ? state.commands : state.commands.set(command_id, run_id)
  return { ...state, requested: [...state.requested, request], commands }
}

function started(state: ThreadState, event: Of<'run.started/1'>): ThreadState {
  const { run_id, invocation_id, attempt, owner, agent, tool_recovery, trigger } = event.data
  if (state.run?.status === 'running') throw unfoldable(event, 'another run is running.')
  const request = state.requested.find((r) => r.runId === run_id)
  const unclaimed = trigger.continuation_ids.some((id) => state.waits.has(id))
  const resumed = countsOn(request?.options ?? state.run?.options) ? latestUsage(state) : undefined
  const run: RunState = {
    runId: run_id,
    invocationId: invocation_id,
    attempt,
    owner,
    agent,
    toolRecovery: known(event, tool_recovery),
    trigger: { kind: known(event, trigger.kind), continuationIds: trigger.continuation_ids },
    status: 'running',
    step: 0,
    modelFailures: 0,
    retries: new Map(),
    cancel: undefined,
    items: [],
    waitIds: [],
    suspended: unclaimed ? state.run : undefined,
    blocked: undefined,
    input: request ? request.input : (state.run?.input ?? null),
    options: request?.options ?? state.run?.options,
    accepted: request ? [] : (state.run?.accepted ?? []),
    answers: request?.answers ?? null,
    toolCalls: 0,
    resumed,
    spent: resumed,
    startedAt: event.time,
    updatedAt: event.time,
  }
  return { ...state, run, requested: request ? state.requested.filter((r) => r !== request) : state.requested }
}

const COUNTS_ON = Buffer.from('"resume_usage":true')

/** True if the run was asked to count on from what the one before it used. */
function countsOn(options: Payload | undefined): boolean {
  if (options === undefined) return false
  const { buffer, byteOffset, byteLength } = options.bytes
  if (!Buffer.from(buffer, byteOffset, byteLength).includes(COUNTS_ON)) return false
  return isJsonObject(options.value) && options.value['resume_usage'] === true
}

function suspended(state: ThreadState, event: Of<'run.suspended/1'>): ThreadState {
  const run = active(state, event)
  if (!state.batch) throw unfoldable(event, 'no response is open.')
  const calls = new Map(state.batch.calls)
  for (const item of event.data.batch) {
    known(event, item.kind)
    const call = calls.get(item.model_call_id)
    calls.set(item.model_call_id, {
      dispatch: call?.dispatch,
      settled: undefined,
      composed: false,
      waitId: item.continuation_id,
      ...(call?.resubmissions === undefined ? {} : { resubmissions: call.resubmissions }),
    })
  }
  const end = endOf(run, event, { status: 'suspended' })
  return {
    ...state,
    batch: { ...state.batch, calls },
    runs: state.runs.set(run.runId, end),
    run: {
      ...run,
      status: 'suspended',
      waitIds: event.data.batch.map((item) => item.continuation_id),
      items: event.data.batch,
      updatedAt: event.time,
    },
  }
}

function cancelRequested(state: ThreadState, event: Of<'run.cancel-requested/1'>): ThreadState {
  const run = state.run
  if (!run || run.runId !== event.data.run_id) return state
  return { ...state, run: { ...run, cancel: { reason: event.data.reason, time: event.time }, updatedAt: event.time } }
}

function failed(state: ThreadState, event: Of<'run.failed/1'>): ThreadState {
  const back = state.run?.suspended
  if (state.run && back && state.run.runId === event.data.run_id) {
    // Refused before anything was claimed: the suspension stands, and waits for another revision of the agent (R11).
    const blocked = { code: event.data.failure.code, revision: state.run.agent.revision }
    const end = endOf(state.run, event, { status: 'failed', failure: event.data.failure, details: event.data.details })
    return { ...state, runs: state.runs.set(end.runId, end), run: { ...back, blocked, updatedAt: event.time } }
  }
  return ended(state, event, { status: 'failed', failure: event.data.failure, details: event.data.details })
}

type Ending = Pick<RunEnd, 'status'> & Partial<RunEnd>

const endOf = (
  run: Pick<RunState, 'runId' | 'invocationId'> & Partial<Pick<RunState, 'spent'>>,
  event: LogEvent,
  ending: Ending,
): RunEnd => ({
  runId: run.runId,
  invocationId: run.invocationId,
  output: null,
  failure: null,
  details: null,
  reason: null,
  version: event.version,
  time: event.time,
  spent: run.spent,
  ...ending,
})

/** Ends the named run: the active one, or one that was asked for and never began. */
function ended(
  state: ThreadState,
  event: Of<'run.completed/1' | 'run.failed/1' | 'run.cancelled/1'>,
  ending: Ending,
): ThreadState {
  const { run_id } = event.data
  if (state.run?.runId === run_id) {
    const run = state.run
    for (const id of run.waitIds)
      if (findWait(state, id)?.status === 'pending') throw unfoldable(event, 'a wait of the run is still open.')
    const end = endOf(run, event, ending)
    return {
      ...state,
      run: undefined,
      runs: state.runs.set(run_id, end),
      invocations: state.invocations.set(run.invocationId, end),
    }
  }
  const request = state.requested.find((r) => r.runId === run_id)
  if (!request) throw unfoldable(event, 'it ends a run that is not there.')
  const end = endOf({ runId: run_id, invocationId: run_id }, event, ending)
  return {
    ...state,
    requested: state.requested.filter((r) => r !== request),
    runs: state.runs.set(run_id, end),
    invocations: state.invocations.set(run_id, end),
  }
}
