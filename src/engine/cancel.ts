import { reject } from '../base/index.ts'
import type { StreamKey, WaitFailure } from '../events/index.ts'
import { cancel } from '../harness/index.ts'
import { type Decision, Proposal, type RunState, type ThreadState, type ThreadStore } from '../projections/index.ts'
import type { Runner } from './runner.ts'

const ACTOR = { kind: 'api', id: '', source: 'cancel' }

/** Characters of a reason. */
const MAX_REASON = 2048
/** Queued runs that one commit ends. */
const QUEUED_AT_ONCE = 50

/** How long an owner has to cut its run before any node may, in milliseconds (design §7). */
export const CANCEL_GRACE_MS = 30_000

/** Asks for the end of one run, if this process drives it now. */
export async function cancelOwn(store: ThreadStore, stream: StreamKey, runId: string, reason: string): Promise<void> {
  await store.commit(stream, (state) =>
    state.run?.runId === runId && state.run.owner.id === store.backend.owners.self
      ? cancelRequest(store, stream, state.run, reason, null)
      : undefined,
  )
}

/** Recorded even if the owner is gone; nothing to do for a run that has ended or is asked already. */
function cancelRequest(
  store: ThreadStore,
  stream: StreamKey,
  run: RunState,
  reason: string,
  commandId: string | null,
): Decision | undefined {
  if (run.status !== 'running' || run.cancel) return undefined
  const context = { stream, now: store.clock.now(), actor: ACTOR, runId: null, attempt: null, commandId }
  return { context, drafts: [{ type: 'run.cancel-requested/1', data: { run_id: run.runId, command_id: commandId, reason } }] }
}

/** Ends a run in the commit that begins it. */
export const cutAtOnce = (begun: Proposal): Proposal => cancel(begun, 'cancelled before it began')

/** True if nobody will cut the run any more: it was asked to stop, and its owner is gone or has had its time. */
export async function isUncut(store: ThreadStore, runner: Runner, state: ThreadState): Promise<boolean> {
  const run = state.run
  if (run?.status !== 'running' || !run.cancel) return false
  return store.clock.now() - run.cancel.time > CANCEL_GRACE_MS || runner.isUndriven(run)
}

/** Cuts a run in its owner's place: open dispatched calls become unknown, the run is cancelled. */
export async function cut(store: ThreadStore, stream: StreamKey): Promise<void> {
  await store.commit(stream, (state) => {
    const run = state.run
    if (run?.status !== 'running' || !run.cancel) return undefined
    const context = { stream, now: store.clock.now(), actor: ACTOR, runId: run.runId, attempt: run.attempt }
    return cancel(Proposal.on(state, context), run.cancel.reason)
  })
}

/**
 * Ends what a thread does, decided on the very state it is recorded on, so that no step of the thread gets in between: a running run is
 * asked to stop; a suspended one ends at once with its waits, and what is queued never begins.
 * @param failure what a provider gave: recorded with each pending wait
 */
export async function cancelThread(
  store: ThreadStore,
  stream: StreamKey,
  reason: string,
  commandId: string | null,
  failure: WaitFailure | null = null,
): Promise<void> {
  if (reason.length > MAX_REASON)
    throw reject('reason_too_long', 'The reason is too long.', { path: 'reason', expected: `at most ${MAX_REASON} characters` })
  let left = 0
  const decide = (state: ThreadState): Decision | undefined => {
    const { run } = state
    left = 0
    if (run?.status === 'running') return cancelRequest(store, stream, run, reason, commandId)
    const context = { stream, now: store.clock.now(), actor: ACTOR, runId: run?.runId ?? null, attempt: null, commandId }
    let proposal = Proposal.on(state, context)
    if (run) proposal = cancel(proposal, reason, failure)
    left = Math.max(0, state.requested.length - QUEUED_AT_ONCE)
    for (const queued of state.requested.slice(0, QUEUED_AT_ONCE))
      proposal = proposal.add({ type: 'run.cancelled/1', data: { run_id: queued.runId, reason } })
    return proposal
  }
  do await store.commit(stream, decide)
  while (left > 0)
}
