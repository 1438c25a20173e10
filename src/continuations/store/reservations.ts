import { canonicalJson, isThreadlogError, sha256Hex } from '../../base/index.ts'
import { type Actor, type StreamKey, type ThreadKey, threadStream } from '../../events/index.ts'
import {
  type DecisionContext,
  findWait,
  Proposal,
  type Reservation,
  type ThreadState,
  type ThreadStore,
} from '../../projections/index.ts'
import { isWithdrawn, openSession, type Reserved } from '../foreign/runs.ts'
import { RunScope } from '../model/scope.ts'

/** What is unique beyond one thread. External ids are within application and provider; the others everywhere. */
export type Unique =
  | { kind: 'external_id'; application: string; provider: string; key: string }
  | { kind: 'run_id'; id: string }
  | { kind: 'continuation_id'; id: string }

/** The stream in whose order a reservation is decided (design §4). */
export function reservationStream(what: Unique): StreamKey {
  const parts = what.kind === 'external_id' ? [what.application, what.provider, what.key] : ['', what.id]
  return sha256Hex(canonicalJson(['threadlog/reservation/1', what.kind, ...parts]))
}

/** The run or wait something is reserved for. */
export type Holder = ThreadKey & { readonly id: string }

export interface Taking extends Reserved {
  /** False if this holder had it before. */
  readonly fresh: boolean
  /** The run or wait it is reserved for. */
  readonly id: string
}

/** What is decided for a host belongs to no run and no attempt. */
export const contextOf = (store: ThreadStore, stream: StreamKey, actor: Actor): DecisionContext => ({
  stream,
  now: store.clock.now(),
  actor,
  runId: null,
  attempt: null,
})

/** How long a holder may take from its reservation to its commit before others doubt it, in milliseconds. */
const GRACE_MS = 2_000
const LOOK_MS = 10

/**
 * Reservations: first in the order of their stream wins. One that its holder's thread does not rest on, because its process died in between or was
 * refused, is withdrawn in that thread, which voids whatever is still written for it, and only then released or taken over (design §6).
 */
export class Reservations {
  readonly #store: ThreadStore
  readonly #actor: Actor

  constructor(store: ThreadStore, actor: Actor) {
    this.#store = store
    this.#actor = actor
  }

  /** Who holds it now, confirmed or not. */
  async holder(what: Unique): Promise<Reservation | undefined> {
    return this.#held(reservationStream(what))
  }

  async #held(stream: StreamKey): Promise<Reservation | undefined> {
    const { reservation } = await this.#store.load(stream)
    return reservation?.status === 'taken' ? reservation : undefined
  }

  /**
   * Takes it for `holder`; undefined when another one holds it.
   * @param o.adopt what the holder's thread has taken for another id and does not rest on is taken up under that id: its only writer asks, after a crash
   */
  async take(what: Unique, holder: Holder, { adopt = false }: { adopt?: boolean } = {}): Promise<Taking | undefined> {
    const stream = reservationStream(what)
    for (;;) {
      const last = (await this.#store.load(stream)).reservation
      if (last?.status === 'taken') {
        const { generation } = last
        const isOwn = isSame(last.holder, holder) || (adopt && (await this.#isLeft(stream, last, holder)))
        if (isOwn && !(await this.isWithdrawn(holder, { stream, generation })))
          return { stream, generation, fresh: false, id: last.holder.id }
        if (!isOwn && (await this.#stands(stream, last))) return undefined
      }
      const generation = await this.#append(stream, what.kind, holder, last?.generation ?? 0)
      if (generation !== undefined) return { stream, generation, fresh: true, id: holder.id }
    }
  }

  /** True if an earlier attempt of the same thread took it and got no further. */
  async #isLeft(stream: StreamKey, held: Reservation, by: Holder): Promise<boolean> {
    return isSame({ ...held.holder, id: by.id }, by) && !isConfirmed(await this.#store.load(threadStream(by)), stream, held)
  }

  /** Takes a generation of a reservation; undefined when somebody else was first. */
  async #append(stream: StreamKey, kind: Unique['kind'], holder: Holder, seen: number): Promise<number | undefined> {
    const data = {
      kind,
      generation: seen + 1,
      holder: { application_id: holder.application, user_id: holder.user, thread_id: holder.thread, id: holder.id },
    }
    const { commit } = await this.#store.commit(stream, (state) =>
      (state.reservation?.generation ?? 0) === seen
        ? this.#on(stream, state).add({ type: 'reservation.taken/1', data })
        : undefined,
    )
    return commit && seen + 1
  }

  /** True if the holder's thread rests on it; if false, it never will. A young one is given the time to be confirmed or released. */
  async #stands(stream: StreamKey, held: Reservation): Promise<boolean> {
    try {
      return await this.#isConfirmedInTime(stream, held)
    } catch (error) {
      // What a thread in quarantine rests on, nobody knows.
      if (isThreadlogError(error, 'thread_quarantined')) return true
      throw error
    }
  }

  async #isConfirmedInTime(stream: StreamKey, held: Reservation): Promise<boolean> {
    const { clock } = this.#store
    const isOpen = async () => {
      if ((await this.#held(stream))?.generation !== held.generation) return false
      const thread = await this.#store.load(threadStream(held.holder))
      return !isConfirmed(thread, stream, held) && !isWithdrawn(thread, { stream, generation: held.generation })
    }
    while (clock.now() - held.takenAt <= GRACE_MS && (await isOpen())) await clock.sleep(LOOK_MS)
    return !(await this.#withdraw(stream, held))
  }

  /** Whether a thread has lost a reservation of its own. */
  async isWithdrawn(thread: ThreadKey, reserved: Reserved): Promise<boolean> {
    return isWithdrawn(await this.#store.load(threadStream(thread)), reserved)
  }

  /** Takes it back in its holder's thread, in whose order it is decided. @returns false when the thread rests on it */
  async #withdraw(reservation: StreamKey, held: Reservation): Promise<boolean> {
    const { holder, generation } = held
    const stream = threadStream(holder)
    const { state } = await this.#store.commit(stream, (thread) => {
      if (isConfirmed(thread, reservation, held) || isWithdrawn(thread, { stream: reservation, generation })) return undefined
      const on = this.#on(stream, thread)
      const open = thread.identity ? on : openSession(on, scopeOf(holder))
      return open.add({ type: 'reservation.withdrawn/1', data: { reservation, generation } })
    })
    return !isConfirmed(state, reservation, held)
  }

  /** Gives back what a thread had, if it does not rest on it any more. */
  async free(what: Unique, thread: ThreadKey): Promise<void> {
    const held = await this.holder(what)
    if (held && isSame({ ...held.holder, id: '' }, { ...thread, id: '' }))
      await this.release({ stream: reservationStream(what), generation: held.generation })
  }

  /** Gives one back that its thread does not rest on. */
  async release({ stream, generation }: Reserved): Promise<void> {
    const held = await this.#held(stream)
    if (held?.generation !== generation || !(await this.#withdraw(stream, held))) return
    await this.#store.commit(stream, (state) =>
      state.reservation?.status === 'taken' && state.reservation.generation === generation
        ? this.#on(stream, state).add({ type: 'reservation.released/1', data: { generation } })
        : undefined,
    )
  }

  #on(stream: StreamKey, state: ThreadState): Proposal {
    return Proposal.on(state, contextOf(this.#store, stream, this.#actor))
  }
}

const scopeOf = ({ application, user, thread, id }: Holder): RunScope =>
  new RunScope({ applicationId: application, userId: user, sessionId: thread, runId: id })

const isSame = (a: Holder, b: Holder): boolean =>
  a.application === b.application && a.user === b.user && a.thread === b.thread && a.id === b.id

/** True if the thread has what this very reservation is for. */
function isConfirmed(thread: ThreadState, stream: StreamKey, { kind, holder, generation }: Reservation): boolean {
  if (kind === 'run_id') return thread.foreign?.runs.has(holder.id) === true
  const wait = findWait(thread, holder.id)
  if (!wait || kind === 'continuation_id') return wait !== undefined
  const { application } = holder
  const { provider, externalIdKey: key } = wait
  return wait.generation === generation && reservationStream({ kind: 'external_id', application, provider, key }) === stream
}
