import type { BatchItem, LogEvent } from '../events/index.ts'
import type { ThreadState, Wait } from './state.ts'
import { unfoldable } from './unfoldable.ts'

// What the waits of own runs and those of foreign hosts have in common.

export type WaitEvent = LogEvent & { data: { continuation_id: string; revision: number } }

/** A wait that begins: pending, not ready, revision 0. */
export function pendingWait(
  event: LogEvent<'continuation.suspended/1'>,
  owner: { runId: string; invocationId: string; item: BatchItem },
): Wait {
  const d = event.data
  return {
    id: d.continuation_id,
    provider: d.provider,
    capability: d.capability,
    schemaId: d.schema_id,
    externalId: d.external_id,
    externalIdKey: d.external_id_key,
    ...owner,
    resume: d.resume,
    grants: d.grants,
    generation: d.generation,
    status: 'pending',
    ready: false,
    revision: 0,
    outcome: undefined,
    deadline: owner.item.deadline,
    claimedBy: undefined,
    createdAt: event.time,
    updatedAt: event.time,
  }
}

/** The wait after a heartbeat of its job. */
export function extendedWait(state: ThreadState, event: LogEvent<'continuation.extended/1'>): ThreadState {
  const wait = state.waits.get(event.data.continuation_id)
  if (wait?.status !== 'pending' || wait.deadline === null || event.data.deadline < wait.deadline)
    throw unfoldable(event, 'the wait is not pending, or would have less time.')
  const extended = { ...wait, deadline: event.data.deadline, updatedAt: event.time }
  return { ...state, waits: new Map(state.waits).set(wait.id, extended) }
}

/** The wait after an event that moves it on by one revision. */
export function changedWait(
  state: ThreadState,
  event: WaitEvent,
  from: readonly Wait['status'][],
  change: (wait: Wait) => Partial<Wait>,
): Wait {
  const wait = state.waits.get(event.data.continuation_id)
  if (!wait || !from.includes(wait.status)) throw unfoldable(event, 'the wait is not in a state that allows it.')
  if (event.data.revision !== wait.revision + 1) throw unfoldable(event, `the wait is at revision ${wait.revision}.`)
  return { ...wait, ...change(wait), revision: event.data.revision, updatedAt: event.time }
}
