import { setImmediate } from 'node:timers/promises'
import { isThreadlogError } from '../base/index.ts'
import type { Actor, StreamKey, WaitFailure } from '../events/index.ts'
import { type Due, dueWaits, Proposal, type ThreadState, type ThreadStore, type Wait } from '../projections/index.ts'
import { contextOf } from './store/reservations.ts'

/** What an expired wait ends with, and what the model reads of its call. */
export const EXPIRED: WaitFailure = Object.freeze({ code: 'expired', retryable: false })

const isOverdue = ({ status, deadline }: Wait, now: number): boolean =>
  status === 'pending' && deadline !== null && deadline <= now

/** True if a wait of the thread may be recorded as expired. */
export const isAnyOverdue = (state: ThreadState, now: number): boolean =>
  [...state.waits.values()].some((wait) => isOverdue(wait, now))

/**
 * Ends what is overdue, at the time the proposal is made for. Pure: a deadline by itself ends nothing, the event does, in the order of the log; a wait
 * that was answered before it stands as answered.
 */
export function expire(proposal: Proposal): Proposal {
  const { state, context } = proposal
  for (const wait of state.waits.values())
    if (isOverdue(wait, context.now))
      proposal = proposal.add({
        type: 'continuation.expired/1',
        data: { continuation_id: wait.id, revision: wait.revision + 1, failure: { ...EXPIRED } },
      })
  return proposal
}

/** Who watches deadlines. */
const ENGINE: Actor = { kind: 'engine', id: '', source: 'deadline' }

/** Records what is overdue on one thread; whoever comes second finds nothing left. */
export async function expireThread(store: ThreadStore, stream: StreamKey, actor: Actor = ENGINE): Promise<number> {
  let expired = 0
  await store.commit(
    stream,
    (state) => {
      const proposal = expire(Proposal.on(state, contextOf(store, stream, actor)))
      expired = proposal.drafts.length
      return expired > 0 ? proposal : undefined
    },
    Number.POSITIVE_INFINITY,
  )
  return expired
}

/** Waits looked up and recorded at once: what else is appended meanwhile stands behind no more than these. */
const SLICE = 64

export interface ExpiryOptions {
  application: string
  /** Who watches; default an engine. */
  actor?: Actor
  /** Of a log that is shared out, which threads are this process's to look after. Default: all. */
  owns?(stream: StreamKey): boolean
  /** Ends the sweep behind the slice under way. */
  signal?: AbortSignal
  /** Hears why a thread's waits could not be ended; the next sweep tries again. */
  onError?(error: unknown, stream: StreamKey): void
}

/**
 * Ends all waits of an application that are overdue now: slice by slice from the index, longest overdue first, each slice behind the last one. What
 * cannot be ended, as in a quarantined thread, is passed over.
 * @returns how many waits ended
 */
export async function expireDue(store: ThreadStore, o: ExpiryOptions): Promise<number> {
  const now = store.clock.now()
  let expired = 0
  let after: Due | undefined
  while (!o.signal?.aborted) {
    const rows = dueWaits(store.backend.tables, { application: o.application, now, limit: SLICE, after })
    const streams = new Set(rows.map(({ stream }) => stream))
    const ended = [...streams].map(async (stream) => {
      if (o.owns && !o.owns(stream)) return 0
      try {
        return await expireThread(store, stream, o.actor)
      } catch (error) {
        if (!isThreadlogError(error, 'thread_quarantined')) o.onError?.(error, stream)
        return 0
      }
    })
    for (const count of await Promise.all(ended)) expired += count
    const last = rows.at(-1)
    if (rows.length < SLICE || !last) break
    after = { deadline: last.deadline ?? 0, id: last.id }
    // On an embedded log nothing here leaves the event loop by itself.
    await setImmediate()
  }
  return expired
}
