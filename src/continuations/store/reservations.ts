import { canonicalJson, sha256Hex } from '../../base/index.ts'
import { type Actor, type StreamKey, type ThreadKey, threadStream } from '../../events/index.ts'
import { findWait, Proposal, type Reservation, type ThreadState, type ThreadStore } from '../../projections/index.ts'
import { openSession, type Reserved } from '../foreign/runs.ts'
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
}

/** How long a holder may take from its reservation to its commit before others doubt it, in milliseconds. */
const GRACE_MS = 2_000
const LOOK_MS = 10

/**
 * Reservations: first in the order of their stream wins. One whose holder never confirmed it, because its process died in between, is
 * withdrawn from the holder's thread, which voids whatever that still writes for it, and taken over (design §6).
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
    const { reservation } = await this.#store.load(reservationStream(what))
    return reservation?.status === 'taken' ? reservation : undefined
  }

  /** Takes it for `holder`; undefined when another one holds it. */
  async take(what: Unique, holder: Holder): Promise<Taking | undefined> {
    const stream = reservationStream(what)
    for (;;) {
      const held = (await this.#store.load(stream)).reservation
      if (held?.status === 'taken') {
        if (isSame(held.holder, holder)) return { stream, generation: held.generation, fresh: false }
        if (await this.#stands(held)) return undefined
        await this.#withdraw(stream, held)
      }
      const generation = await this.#append(stream, what.kind, holder, held?.generation ?? 0)
      if (generation !== undefined) return { stream, generation, fresh: true }
    }
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
        ? { drafts: [{ type: 'reservation.taken/1', data }], context: this.#context(stream) }
        : undefined,
    )
    return commit && seen + 1
  }

  /** True if the holder's thread rests on it. A young reservation is given the time to be confirmed. */
  async #stands(held: Reservation): Promise<boolean> {
    const store = this.#store
    for (;;) {
      if (isConfirmed(await store.load(threadStream(held.holder)), held)) return true
      if (store.clock.now() - held.takenAt > GRACE_MS) return false
      await store.clock.sleep(LOOK_MS)
    }
  }

  async #withdraw(reservation: StreamKey, { holder, generation }: Reservation): Promise<void> {
    const stream = threadStream(holder)
    const scope = new RunScope({
      applicationId: holder.application,
      userId: holder.user,
      sessionId: holder.thread,
      runId: holder.id,
    })
    await this.#store.commit(stream, (state) => {
      if ((state.foreign?.withdrawn.get(reservation) ?? 0) >= generation) return undefined
      const data = { reservation, generation }
      const open = openSession(Proposal.on(state, this.#context(stream)), scope)
      const { drafts, context } = open.add({ type: 'reservation.withdrawn/1', data })
      return { drafts, context }
    })
  }

  /** Gives back whatever generation is taken, if no thread rests on it. */
  async free(what: Unique): Promise<void> {
    const held = await this.holder(what)
    if (held) await this.release({ stream: reservationStream(what), generation: held.generation })
  }

  /** Gives one back that its thread does not rest on. */
  async release({ stream, generation }: Reserved): Promise<void> {
    const held = (await this.#store.load(stream)).reservation
    if (!held || isConfirmed(await this.#store.load(threadStream(held.holder)), held)) return
    await this.#store.commit(stream, ({ reservation }) =>
      reservation?.status === 'taken' && reservation.generation === generation
        ? { drafts: [{ type: 'reservation.released/1', data: { generation } }], context: this.#context(stream) }
        : undefined,
    )
  }

  #context(stream: StreamKey) {
    return { stream, now: this.#store.clock.now(), actor: this.#actor, runId: null, attempt: null }
  }
}

const isSame = (a: Holder, b: Holder): boolean =>
  a.application === b.application && a.user === b.user && a.thread === b.thread && a.id === b.id

/** True if the thread has what the reservation is for. */
function isConfirmed(thread: ThreadState, { kind, holder, generation }: Reservation): boolean {
  if (kind === 'run_id') return thread.foreign?.runs.has(holder.id) === true
  const wait = findWait(thread, holder.id)
  return wait !== undefined && (kind === 'continuation_id' || wait.generation === generation)
}
