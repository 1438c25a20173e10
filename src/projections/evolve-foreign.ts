import { Payload } from '../base/index.ts'
import { type EventType, type LogEvent, ZERO_HASH } from '../events/index.ts'
import type { ForeignRun, ForeignSession, ThreadState, Wait } from './state.ts'
import { known, unfoldable } from './unfoldable.ts'
import { changedWait, extendedWait, pendingWait, type WaitEvent } from './waits.ts'

type Of<T extends EventType> = LogEvent<T>

/** The events of a foreign host's session: its runs, and its waits one by one (continuation spec §1.7, §2.2). */
export function evolveForeign(state: ThreadState, event: LogEvent): ThreadState {
  switch (event.type) {
    case 'invocation.begun/1':
      return begun(state, event)
    case 'invocation.transitioned/1':
      return transitioned(state, event)
    case 'invocation.checkpoint-written/1':
      return checkpoint(state, event)
    case 'invocation.deleted/1':
      return deleted(state, event)
    case 'continuation.suspended/1':
      return suspended(state, event)
    case 'continuation.armed/1':
      return wait(state, event, ['pending', 'completed', 'failed', 'cancelled', 'expired'], () => ({ ready: true }))
    case 'continuation.extended/1':
      return extendedWait(state, event)
    case 'continuation.completed/1': {
      const { result_id: resultId, digest, source, value } = event.data
      const outcome = { resultId, digest, source, value, failure: null }
      return wait(state, event, ['pending'], () => ({ status: 'completed', outcome }))
    }
    case 'continuation.failed/1': {
      const { result_id: resultId, digest, source, failure } = event.data
      const outcome = { resultId, digest, source, value: null, failure }
      return wait(state, event, ['pending'], () => ({ status: 'failed', outcome }))
    }
    case 'continuation.claimed/1':
      return claimed(state, event)
    case 'continuation.leased/1':
      return leased(state, event)
    case 'continuation.cancelled/1':
      return wait(state, event, ['pending'], () => ({ status: 'cancelled', endedWith: event.data.failure ?? undefined }))
    case 'continuation.expired/1':
      return wait(state, event, ['pending'], () => ({ status: 'expired', endedWith: event.data.failure ?? undefined }))
    default:
      throw unfoldable(event, 'it has no place in the session of a foreign host.')
  }
}

function session(state: ThreadState, event: LogEvent): ForeignSession {
  if (!state.foreign) throw unfoldable(event, 'the session is not open.')
  return state.foreign
}

function withRun(state: ThreadState, event: LogEvent, run: ForeignRun): ThreadState {
  const foreign = session(state, event)
  return { ...state, foreign: { ...foreign, runs: new Map(foreign.runs).set(run.runId, run) } }
}

function run(state: ThreadState, event: LogEvent & { data: { run_id: string } }): ForeignRun {
  const found = session(state, event).runs.get(event.data.run_id)
  if (!found) throw unfoldable(event, 'there is no such run.')
  return found
}

/** The run of a session that is not over; there is at most one. */
export const activeRun = (foreign: ForeignSession): ForeignRun | undefined =>
  [...foreign.runs.values()].find(({ status }) => status === 'running' || status === 'waiting')

/** The claimed continuation whose holder has not said yet that its run goes on. */
export function unacknowledgedWait(state: ThreadState): Wait | undefined {
  const lease = state.foreign && activeRun(state.foreign)?.lease
  return lease && lease.until !== null ? state.waits.get(lease.continuationId) : undefined
}

/** The continuation that the run of a session waits for. */
export function awaitedWait(state: ThreadState): Wait | undefined {
  const action = state.foreign && activeRun(state.foreign)?.pendingAction
  return action?.type === 'external_continuation' ? state.waits.get(action.actionId) : undefined
}

function begun(state: ThreadState, event: Of<'invocation.begun/1'>): ThreadState {
  const { run_id: runId, framework } = event.data
  const foreign = session(state, event)
  if (foreign.runs.has(runId) || activeRun(foreign)) throw unfoldable(event, 'a run of the session is not over.')
  return withRun(state, event, {
    runId,
    framework,
    status: 'running',
    revision: 0,
    pendingAction: null,
    checkpoints: new Map(),
    createdAt: event.time,
    updatedAt: event.time,
  })
}

function transitioned(state: ThreadState, event: Of<'invocation.transitioned/1'>): ThreadState {
  const { revision, from, to, pending_action: action } = event.data
  const before = run(state, event)
  if (before.status !== known(event, from) || revision !== before.revision + 1)
    throw unfoldable(event, `the run is ${before.status} at revision ${before.revision}.`)
  const pendingAction = action && {
    type: known(event, action.type),
    actionId: action.action_id,
    capability: action.capability,
  }
  // A run that waits again, or is over, has taken up what was claimed for it.
  const lease = before.status === 'running' ? undefined : before.lease
  return withRun(state, event, { ...before, status: known(event, to), revision, pendingAction, lease, updatedAt: event.time })
}

/** Under what a run keeps a checkpoint; those of a namespace begin alike. */
export const checkpointKey = (namespace: string, checkpointId: string): string => `${namespace}\0${checkpointId}`

function checkpoint(state: ThreadState, event: Of<'invocation.checkpoint-written/1'>): ThreadState {
  const { namespace, checkpoint_id, revision, payload } = event.data
  const before = run(state, event)
  const checkpoints = new Map(before.checkpoints).set(checkpointKey(namespace, checkpoint_id), { revision, payload })
  return withRun(state, event, { ...before, checkpoints })
}

function deleted(state: ThreadState, event: Of<'invocation.deleted/1'>): ThreadState {
  const { runId } = run(state, event)
  const foreign = session(state, event)
  const runs = new Map(foreign.runs)
  runs.delete(runId)
  const waits = new Map([...state.waits].filter(([, candidate]) => candidate.runId !== runId))
  return { ...state, foreign: { ...foreign, runs }, waits }
}

const NOTHING = Payload.of(null)
const NO_FIELDS = Payload.of({})

function suspended(state: ThreadState, event: Of<'continuation.suspended/1'>): ThreadState {
  const d = event.data
  const owner = event.run_id === null ? undefined : session(state, event).runs.get(event.run_id)
  if (!owner) throw unfoldable(event, 'there is no such run.')
  if (state.waits.has(d.continuation_id)) throw unfoldable(event, 'the wait exists.')
  // A foreign host keeps its calls to itself; this is what lists show of one.
  const item = {
    model_call_id: '',
    target_call_id: '',
    tool_name: d.capability,
    tool: d.capability,
    arguments: NOTHING,
    kind: 'external' as const,
    continuation_id: d.continuation_id,
    proposal_digest: ZERO_HASH,
    metadata: NO_FIELDS,
    deadline: d.deadline,
  }
  const created = pendingWait(event, { runId: owner.runId, invocationId: owner.runId, item })
  return { ...state, waits: new Map(state.waits).set(created.id, created) }
}

/** Takes an outcome, or takes over the claim of one that nobody has acknowledged. */
function claimed(state: ThreadState, event: Of<'continuation.claimed/1'>): ThreadState {
  const isOpen = unacknowledgedWait(state)?.id === event.data.continuation_id
  const after = wait(state, event, isOpen ? ['claimed'] : ['completed', 'failed', 'expired'], ({ runId }) => ({
    status: 'claimed',
    claimedBy: { runId, attempt: null },
  }))
  const runId = after.waits.get(event.data.continuation_id)?.runId ?? ''
  const owner = session(after, event).runs.get(runId)
  return owner?.lease ? withRun(after, event, { ...owner, lease: undefined }) : after
}

/** The latest claim is for a time, for another time, or acknowledged. */
function leased(state: ThreadState, event: Of<'continuation.leased/1'>): ThreadState {
  const { continuation_id: continuationId, until } = event.data
  const held = state.waits.get(continuationId)
  const owner = session(state, event).runs.get(held?.runId ?? '')
  if (held?.status !== 'claimed' || owner?.status !== 'running') throw unfoldable(event, 'nobody has claimed the wait.')
  const { lease } = owner
  if (lease && (lease.continuationId !== continuationId || lease.until === null))
    throw unfoldable(event, 'the run goes on under another claim, or one that is acknowledged.')
  return withRun(state, event, { ...owner, lease: { continuationId, fence: held.revision, until } })
}

function wait(
  state: ThreadState,
  event: WaitEvent,
  from: readonly Wait['status'][],
  change: (wait: Wait) => Partial<Wait>,
): ThreadState {
  const after = changedWait(state, event, from, change)
  return { ...state, waits: new Map(state.waits).set(after.id, after) }
}
