import { externalIdKey, type Holder, isWithdrawn, Reservations, reservationStream, type Unique } from '../continuations/index.ts'
import type { Actor, StreamKey } from '../events/index.ts'
import { findWait, type ThreadState, type ThreadStore } from '../projections/index.ts'

/** The claim of a call's wait on the external id that its `submit` answered with. */
export interface ReservedId {
  /** The reservation's stream and generation: the wait quotes it. */
  readonly stream: StreamKey
  readonly generation: number
  readonly externalId: string
  /** The id the wait will have. */
  readonly continuationId: string
}

/** A call whose job was submitted. */
export interface SubmittedCall {
  readonly callId: string
  readonly provider: string
  readonly externalId: string
}

/** True while a suspension may rest on it. */
export const isReserved = (state: ThreadState, reserved: ReservedId | undefined): boolean =>
  reserved !== undefined && !isWithdrawn(state, reserved)

/** The external ids of one run's batch, reserved before it suspends (design §6). One writer: the current attempt. */
export class BatchReservations {
  readonly #store: ThreadStore
  readonly #reservations: Reservations
  readonly #held = new Map<string, ReservedId>()

  constructor(store: ThreadStore, actor: Actor) {
    this.#store = store
    this.#reservations = new Reservations(store, actor)
  }

  /** By call id. */
  get held(): ReadonlyMap<string, ReservedId> {
    return this.#held
  }

  /**
   * Reserves the external id of each call, in an order that is the same for everybody, so that no two batches wait for each other. If another
   * thread has one of them, the others are given back: the batch is another one without that call.
   * @returns the calls whose external ids belong to somebody else
   */
  async take(state: ThreadState, calls: readonly SubmittedCall[]): Promise<SubmittedCall[]> {
    const { lost, wanted } = this.#wanted(state, calls)
    for (const [stream, { what, call }] of [...wanted].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const taken = await this.#take(state, what)
      if (!taken) lost.push(call)
      else this.#held.set(call.callId, { stream, ...taken, externalId: call.externalId })
    }
    if (lost.length > 0) await this.release(state)
    return lost
  }

  /** Two calls of one batch that were given the same id are two jobs in one: the first has it. */
  #wanted(state: ThreadState, calls: readonly SubmittedCall[]) {
    const application = state.identity?.application ?? ''
    const wanted = new Map<StreamKey, { what: Unique; call: SubmittedCall }>()
    const lost: SubmittedCall[] = []
    for (const call of calls) {
      const key = externalIdKey(call.provider, call.externalId)
      const what = { kind: 'external_id', application, provider: call.provider, key } as const
      const stream = reservationStream(what)
      if (wanted.has(stream)) lost.push(call)
      else wanted.set(stream, { what, call })
    }
    return { wanted, lost }
  }

  async #take(state: ThreadState, what: Unique): Promise<{ generation: number; continuationId: string } | undefined> {
    const { application = '', user = '', thread = '' } = state.identity ?? {}
    const holder: Holder = { application, user, thread, id: this.#store.ids.continuation() }
    const take = () => this.#reservations.take(what, holder, { adopt: true })
    const afterBarrier = async () => {
      const { events } = this.#store.backend
      await events.barrier(events.partitionOf(reservationStream(what)))
      return take()
    }
    // A refusal stands only behind a barrier (R15).
    const taken = (await take()) ?? (await afterBarrier())
    return taken && { generation: taken.generation, continuationId: taken.id }
  }

  /** Gives back what no wait rests on. */
  async release(state: ThreadState | undefined): Promise<void> {
    for (const [callId, reserved] of this.#held) {
      this.#held.delete(callId)
      if (!state || !findWait(state, reserved.continuationId)) await this.#reservations.release(reserved)
    }
  }
}
