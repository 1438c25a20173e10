import { orderName } from './agent.ts'
import type { Fleet } from './fleet.ts'
import type { Watcher } from './watcher.ts'

/** One order given to a thread. */
export interface Turn {
  readonly order: string
  readonly thread: number
  /** Known once `start` has answered. */
  runId: string | undefined
  /** Somebody may have ended it early. */
  disturbed: boolean
  ended: boolean
}

export const threadName = (thread: number): string => `storm_${thread}`
export const threadOf = (order: string): number => Number(order.split('-')[1])

/** The orders of a storm: given through any API caller, and known to the end. */
export class Orders {
  readonly turns: Turn[] = []
  readonly #open = new Map<number, Set<Turn>>()
  /** Threads with cancels under way, and how many. */
  readonly #cancelling = new Map<number, number>()
  readonly #fleet: Fleet
  readonly #watcher: Watcher

  constructor(fleet: Fleet, watcher: Watcher) {
    this.#fleet = fleet
    this.#watcher = watcher
  }

  /** Asks for a run. Resolves when that is acknowledged; `ended` of the turn follows. */
  async give(thread: number, name: string, path: number): Promise<void> {
    const order = orderName(thread, name, path)
    const open = this.#open.get(thread) ?? new Set()
    // Of two orders on one thread the later one may take the place of the other, and nobody here knows which is the later.
    if (open.size > 0) this.disturb(thread)
    const disturbed = open.size > 0 || this.#cancelling.has(thread)
    const turn: Turn = { order, thread, runId: undefined, disturbed, ended: false }
    this.turns.push(turn)
    this.#open.set(thread, open.add(turn))
    const runId = await this.#fleet.ask<string>('start', { thread: threadName(thread), input: order, commandId: order })
    turn.runId = runId
    void this.#watcher.ends.when(runId).then(() => {
      turn.ended = true
      open.delete(turn)
    })
  }

  /** Resolves when every order of the thread has ended, also those that others gave meanwhile. */
  async quiet(thread: number): Promise<void> {
    for (;;) {
      const [turn] = this.#open.get(thread) ?? []
      if (!turn) return
      while (turn.runId === undefined) await new Promise((resolve) => setTimeout(resolve, 10))
      await this.#watcher.ends.when(turn.runId)
    }
  }

  /** What is going on on the thread may end early from now on. */
  disturb(thread: number): void {
    for (const turn of this.#open.get(thread) ?? []) turn.disturbed = true
  }

  async cancel(thread: number, commandId: string): Promise<void> {
    this.disturb(thread)
    this.#cancelling.set(thread, (this.#cancelling.get(thread) ?? 0) + 1)
    await this.#fleet.ask<null>('cancel', { thread: threadName(thread), commandId })
    const left = (this.#cancelling.get(thread) ?? 1) - 1
    if (left > 0) this.#cancelling.set(thread, left)
    else this.#cancelling.delete(thread)
  }
}
