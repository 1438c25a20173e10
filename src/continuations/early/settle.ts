import { setImmediate } from 'node:timers/promises'
import { isThreadlogError, type JsonValue, Payload } from '../../base/index.ts'
import type { StreamKey } from '../../events/index.ts'
import { expiredHeld, findWait, heldPage, Proposal, type ThreadState } from '../../projections/index.ts'
import type { Receipt } from '../receipt.ts'
import { contextOf, reservationStream } from '../store/reservations.ts'
import { type SubmitDeps, settleResult } from '../submit.ts'
import { parsed } from './hold.ts'

/**
 * Decides what is held for one external id, in the order in which it came, and records the final receipt of each. What has no wait yet stays, unless
 * its time is over. Safe to repeat: outcomes are known by their coordinates.
 * @returns how many got a final verdict
 */
export async function settleHeld(deps: SubmitDeps, stream: StreamKey): Promise<number> {
  const { store } = deps
  const { early } = await store.load(stream)
  let settled = 0
  for (const held of early?.held ?? []) {
    const { submission } = parsed(held.record)
    const context = { actor: held.actor, source: held.source, authority: { allows: () => true } }
    const { receipt, verdict } = await settleResult({ ...deps, early: undefined }, submission, context)
    const isOver = held.expiresAt <= store.clock.now()
    if (verdict === 'unknown' && !isOver) continue
    const last: Receipt = { ...receipt, sequence: 2, ...(verdict === 'unknown' ? HOLD_EXPIRED : {}) }
    const { commit } = await store.commit(
      stream,
      (state) => {
        if (!state.early?.held.some(({ version }) => version === held.version)) return undefined
        const data = { held: held.version, digest: submission.digest, receipt: Payload.of(last as unknown as JsonValue) }
        return Proposal.on(state, contextOf(store, stream, ENGINE)).add({ type: 'reservation.settled/1', data })
      },
      Number.POSITIVE_INFINITY,
    )
    if (commit) settled++
  }
  return settled
}

const HOLD_EXPIRED = { code: 'hold_expired', expected: 'a wait for it, within the time that early results are held' }
const ENGINE = { kind: 'engine', id: '', source: 'early-results' } as const

/** Decides what is held for the waits of a thread that rest on reserved ids: called when it has suspended. */
export async function settleHeldOf(deps: SubmitDeps, state: ThreadState): Promise<void> {
  const { application = '' } = state.identity ?? {}
  for (const { generation, status, provider, externalIdKey: key } of state.waits.values())
    if (generation > 0 && status === 'pending')
      await settleHeld(deps, reservationStream({ kind: 'external_id', application, provider, key }))
}

/** {@link settleHeldOf} for one wait of a thread. */
export async function settleHeldFor(deps: SubmitDeps, thread: StreamKey, continuationId: string): Promise<void> {
  const state = await deps.store.load(thread)
  const wait = findWait(state, continuationId)
  if (wait) await settleHeldOf(deps, { ...state, waits: new Map([[wait.id, wait]]) })
}

/** Results decided at once: what else is appended meanwhile stands behind no more than these. */
const SLICE = 64
/** Held results looked at in one sweep. */
const LOOKED_AT = 1_000

export interface HeldSweep {
  /** Behind which row the last sweep ended. */
  after: number
}

/**
 * Decides held results whose wait has come without anybody noticing, a bounded number a sweep, each behind the last one; and ends all whose time is
 * over, slice by slice.
 */
export async function sweepHeld(
  deps: SubmitDeps,
  sweep: HeldSweep,
  o: { owns?(stream: StreamKey): boolean; signal?: AbortSignal; onError?(error: unknown, stream: StreamKey): void } = {},
): Promise<number> {
  const { tables } = deps.store.backend
  const page = heldPage(tables, { after: sweep.after, limit: LOOKED_AT })
  sweep.after = page.length < LOOKED_AT ? 0 : (page.at(-1)?.id ?? 0)
  const ready = page.filter(({ answers }) => answers === 1).map(({ stream }) => stream)
  let settled = await settleAll(deps, ready, o)
  while (!o.signal?.aborted) {
    const now = deps.store.clock.now()
    const due = expiredHeld(tables, { application: deps.application, now, limit: SLICE })
    const ended = await settleAll(
      deps,
      due.map(({ stream }) => stream),
      o,
    )
    settled += ended
    if (due.length < SLICE || ended === 0) break
    // On an embedded log nothing here leaves the event loop by itself.
    await setImmediate()
  }
  return settled
}

async function settleAll(
  deps: SubmitDeps,
  streams: readonly StreamKey[],
  o: Parameters<typeof sweepHeld>[2] = {},
): Promise<number> {
  let settled = 0
  for (const stream of new Set(streams)) {
    if (o.signal?.aborted) break
    if (o.owns && !o.owns(stream)) continue
    try {
      settled += await settleHeld(deps, stream)
    } catch (error) {
      if (!isThreadlogError(error, 'thread_quarantined')) o.onError?.(error, stream)
    }
  }
  return settled
}
