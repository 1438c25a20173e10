import type { StreamKey } from '../events/index.ts'
import { cancel } from '../harness/index.ts'
import { Proposal, type ThreadState, type ThreadStore } from '../projections/index.ts'

const ACTOR = { kind: 'api', id: '', source: 'cancel' }

/** How long an owner has to cut its run before any node may, in milliseconds (design §7). */
export const CANCEL_GRACE_MS = 30_000

/** Asks for the end of a running run. Recorded even if its owner is gone; does nothing to a run that has ended. */
export async function requestCancel(
  store: ThreadStore,
  stream: StreamKey,
  runId: string,
  reason: string,
  commandId: string | null = null,
): Promise<void> {
  await store.commit(stream, (state) => {
    const active = state.run?.runId === runId && state.run.status === 'running' && !state.run.cancel
    if (!active) return undefined
    const context = { stream, now: store.clock.now(), actor: ACTOR, runId: null, attempt: null, commandId }
    return { context, drafts: [{ type: 'run.cancel-requested/1', data: { run_id: runId, command_id: commandId, reason } }] }
  })
}

/** True if nobody will cut the run any more: it was asked to stop, and its owner is gone or has had its time. */
export async function isUncut(store: ThreadStore, state: ThreadState): Promise<boolean> {
  const run = state.run
  if (run?.status !== 'running' || !run.cancel) return false
  return store.clock.now() - run.cancel.time > CANCEL_GRACE_MS || store.backend.owners.isDead(run.owner.id)
}

/** Cuts a run in its owner's place: open dispatched calls become unknown, the run is cancelled. */
export async function cut(store: ThreadStore, stream: StreamKey): Promise<void> {
  await store.commit(stream, (state) => {
    const run = state.run
    if (run?.status !== 'running' || !run.cancel) return undefined
    const context = { stream, now: store.clock.now(), actor: ACTOR, runId: run.runId, attempt: run.attempt }
    return { context, drafts: cancel(Proposal.on(state, context), run.cancel.reason).drafts }
  })
}

/** Ends a suspended run with its waits, and whatever is queued behind it. */
export async function cancelIdle(store: ThreadStore, stream: StreamKey, reason: string, commandId: string | null): Promise<void> {
  await store.commit(stream, (state) => {
    const context = { stream, now: store.clock.now(), actor: ACTOR, runId: state.run?.runId ?? null, attempt: null, commandId }
    let proposal = Proposal.on(state, context)
    if (state.run?.status === 'suspended') proposal = cancel(proposal, reason)
    for (const queued of state.requested) proposal = proposal.add({ type: 'run.cancelled/1', data: { run_id: queued.runId, reason } })
    return { drafts: proposal.drafts, context }
  })
}
