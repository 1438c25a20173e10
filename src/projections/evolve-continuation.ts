import type { EventType, LogEvent, WaitFailure } from '../events/index.ts'
import type { ThreadState, Wait } from './state.ts'
import { unfoldable } from './unfoldable.ts'
import { changedWait, extendedWait, pendingWait, type WaitEvent } from './waits.ts'

type Of<T extends EventType> = LogEvent<T>

/** The events of waits (continuation spec §2.2). Each raises the wait's revision by one. */
export function evolveContinuation(state: ThreadState, event: LogEvent): ThreadState {
  switch (event.type) {
    case 'continuation.suspended/1':
      return suspended(state, event)
    case 'continuation.armed/1':
      return update(state, event, ['pending', 'completed', 'failed'], () => ({ ready: true }))
    case 'continuation.extended/1':
      return extendedWait(state, event)
    case 'continuation.completed/1': {
      const { result_id: resultId, digest, source, value } = event.data
      return update(state, event, ['pending'], () => ({
        status: 'completed',
        outcome: { resultId, digest, source, value, failure: null },
      }))
    }
    case 'continuation.failed/1': {
      const { result_id: resultId, digest, source, failure } = event.data
      return update(state, event, ['pending'], () => ({
        status: 'failed',
        outcome: { resultId, digest, source, value: null, failure },
      }))
    }
    case 'continuation.claimed/1':
      return close(state, event, ['completed', 'failed'], () => ({
        status: 'claimed',
        claimedBy: { runId: event.run_id, attempt: event.attempt },
      }))
    case 'continuation.cancelled/1':
      return close(state, event, ['pending'], () => ({ status: 'cancelled', ...given(event.data.failure) }))
    case 'continuation.expired/1':
      return close(state, event, ['pending'], () => ({ status: 'expired', ...given(event.data.failure) }))
    case 'continuation.abandoned/1':
      return close(state, event, ['pending', 'completed', 'failed'], () => ({
        status: 'abandoned',
        ...given(event.data.failure),
      }))
    default:
      throw unfoldable(event, 'this version has no rule for it.')
  }
}

const given = (failure: WaitFailure | null) => (failure ? { endedWith: failure } : {})

function suspended(state: ThreadState, event: Of<'continuation.suspended/1'>): ThreadState {
  const d = event.data
  const run = state.run
  const item = run?.items.find((candidate) => candidate.continuation_id === d.continuation_id)
  if (!run || !item) throw unfoldable(event, 'no suspended run names this wait.')
  if (state.waits.has(d.continuation_id) || state.closedWaits.has(d.continuation_id)) throw unfoldable(event, 'the wait exists.')
  const wait = pendingWait(event, { runId: run.runId, invocationId: run.invocationId, item })
  return { ...state, waits: new Map(state.waits).set(wait.id, wait) }
}

type Change = (wait: Wait) => Partial<Wait>

function update(state: ThreadState, event: WaitEvent, from: Wait['status'][], change: Change): ThreadState {
  const wait = changedWait(state, event, from, change)
  return { ...state, waits: new Map(state.waits).set(wait.id, wait) }
}

/** As {@link update}, for changes after which the wait never changes again. */
function close(state: ThreadState, event: WaitEvent, from: Wait['status'][], change: Change): ThreadState {
  const wait = changedWait(state, event, from, change)
  const waits = new Map(state.waits)
  waits.delete(wait.id)
  return { ...state, waits, closedWaits: state.closedWaits.set(wait.id, wait) }
}
