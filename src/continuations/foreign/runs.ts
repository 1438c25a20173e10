import { type JsonValue, Payload, reject } from '../../base/index.ts'
import type { EventDraft, StreamKey } from '../../events/index.ts'
import {
  activeRun,
  checkpointKey,
  type ForeignRun,
  type InvocationStatus,
  type Proposal,
  type ThreadState,
} from '../../projections/index.ts'
import { invalidArgument, nonBlank } from '../model/arguments.ts'
import { CheckpointConflictError } from '../model/errors.ts'
import type { PendingAction } from '../model/record.ts'
import type { RunScope } from '../model/scope.ts'
import { checkHolder, type Lease } from './holder.ts'

// What may happen to the runs of a foreign host (continuation spec §1.7). Pure: state in, events or a refusal out.

const TARGETS: Record<InvocationStatus, readonly InvocationStatus[]> = {
  running: ['waiting', 'completed', 'failed', 'cancelled'],
  waiting: ['running', 'failed', 'cancelled'],
  completed: [],
  failed: [],
  cancelled: [],
}

/** What a host may wait for by its own doing; waiting for a continuation begins with its suspension. */
const ACTIONS = ['human_approval', 'client_tool'] as const

/** Opens the session for a foreign host. @throws ThreadlogError `stream_kind_mismatch` */
export function openSession(proposal: Proposal, scope: RunScope): Proposal {
  const { identity } = proposal.state
  if (identity?.kind === 'foreign') return proposal
  if (identity)
    throw reject('stream_kind_mismatch', 'The session is a thread of threadlog itself.', { hint: 'Use another session id.' })
  return proposal.add({
    type: 'thread.opened/1',
    data: {
      application_id: scope.applicationId,
      user_id: scope.userId,
      thread_id: scope.sessionId,
      kind: 'foreign',
      origin: { kind: 'new', state: null, parent: null },
    },
  })
}

/** Begins a run; the same run once more begins nothing. @throws CheckpointConflictError */
export function beginRun(before: Proposal, scope: RunScope, framework: string, held: readonly Reserved[]): Proposal {
  const proposal = openSession(before, scope)
  const foreign = proposal.state.foreign
  const known = foreign?.runs.get(scope.runId)
  if (known?.framework === framework) return proposal
  if (known) throw new CheckpointConflictError('The run was begun by another framework.')
  if (foreign && activeRun(foreign)) throw new CheckpointConflictError('A run of this session is not over.')
  if (held.some((reserved) => isWithdrawn(proposal.state, reserved)))
    throw new CheckpointConflictError('The run id was given to another session.')
  return proposal.add({ type: 'invocation.begun/1', data: { run_id: scope.runId, framework } })
}

/** A reservation that something rests on. */
export interface Reserved {
  readonly stream: StreamKey
  readonly generation: number
}

/** True when others have taken it back before this session confirmed it (design §6). */
export const isWithdrawn = (state: ThreadState, { stream, generation }: Reserved): boolean =>
  (state.withdrawn?.get(stream) ?? 0) >= generation

/** The run of a scope. @throws ThreadlogError `not_found`, the same for an unknown and a foreign one */
export function ownRun(state: ThreadState, runId: string): ForeignRun {
  const run = state.foreign?.runs.get(runId)
  if (run) return run
  throw reject('not_found', 'There is no such run.', { path: 'runId', hint: 'Check application, user, session and run.' })
}

export interface Transition {
  expectedStatus: InvocationStatus
  status: InvocationStatus
  pendingAction?: PendingAction | null
  /** Under which the run goes on, if its last wait was claimed for a time. */
  lease?: Lease
}

/** The pair, then the action: judged before the run is looked at. @throws CheckpointConflictError, ThreadlogError `invalid_argument` */
export function checkTransition({ expectedStatus, status, pendingAction = null }: Transition): void {
  const targets = Object.hasOwn(TARGETS, expectedStatus) ? TARGETS[expectedStatus] : []
  if (!targets.includes(status))
    throw new CheckpointConflictError('A run does not go from that status to the other.', {
      hint: 'running → waiting, completed, failed, cancelled; waiting → running, failed, cancelled.',
    })
  if ((pendingAction !== null) !== (status === 'waiting'))
    throw invalidArgument('pendingAction', 'an action exactly when the run is to wait')
  if (pendingAction === null) return
  if (!ACTIONS.some((type) => type === pendingAction.type)) throw invalidArgument('pendingAction.type', ACTIONS.join(' or '))
  if (typeof pendingAction.actionId !== 'string') throw invalidArgument('pendingAction.actionId', 'a string')
  if (typeof pendingAction.capability !== 'string') throw invalidArgument('pendingAction.capability', 'a string')
}

export function transition(proposal: Proposal, runId: string, t: Transition): Proposal {
  const run = ownRun(proposal.state, runId)
  if (run.status !== t.expectedStatus) throw new CheckpointConflictError(`The run is ${run.status}.`)
  checkHolder(run, t.lease)
  return proposal.add(moved(run, t.status, t.pendingAction ?? null))
}

/** The event that moves a run on. */
export const moved = (run: ForeignRun, to: InvocationStatus, action: PendingAction | null = null): EventDraft => ({
  type: 'invocation.transitioned/1',
  data: {
    run_id: run.runId,
    revision: run.revision + 1,
    from: run.status,
    to,
    pending_action: action && { type: action.type, action_id: action.actionId, capability: action.capability },
  },
})

export interface CheckpointWrite {
  checkpointId: string
  /** Default: none. */
  namespace?: string
  /** The latest revision of this checkpoint, or null: it must not exist. */
  expectedRevision?: number | null
  payload: JsonValue
  /** Under which the run goes on, if its last wait was claimed for a time. */
  lease?: Lease
}

/** @throws CheckpointConflictError, ThreadlogError `not_found`, `invalid_argument` */
export function writeCheckpoint(proposal: Proposal, runId: string, c: CheckpointWrite): Proposal {
  const { namespace = '', expectedRevision = null } = c
  const checkpointId = nonBlank(c.checkpointId, 'checkpointId')
  const run = ownRun(proposal.state, runId)
  if (run.status !== 'running' && run.status !== 'waiting') throw new CheckpointConflictError(`The run is ${run.status}.`)
  checkHolder(run, c.lease)
  const stored = run.checkpoints.get(checkpointKey(namespace, checkpointId))?.revision ?? null
  if (stored !== expectedRevision)
    throw new CheckpointConflictError('The checkpoint has another revision.', { details: { revision: stored ?? 'none' } })
  const revision = nextRevision(run, namespace)
  const data = { run_id: runId, namespace, checkpoint_id: checkpointId, revision, payload: Payload.of(c.payload) }
  return proposal.add({ type: 'invocation.checkpoint-written/1', data })
}

/** Revisions count within a run and a namespace, from 0. */
function nextRevision(run: ForeignRun, namespace: string): number {
  let next = 0
  for (const [key, { revision }] of run.checkpoints)
    if (key.startsWith(checkpointKey(namespace, ''))) next = Math.max(next, revision + 1)
  return next
}

/** Removes a run, its checkpoints and its waits; one that is not there is gone already. */
export const deleteRun = (proposal: Proposal, runId: string): Proposal =>
  proposal.state.foreign?.runs.has(runId) ? proposal.add({ type: 'invocation.deleted/1', data: { run_id: runId } }) : proposal
