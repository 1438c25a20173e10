import type { StreamKey } from '../events/index.ts'

/** How much is kept in memory of threads that were folded. */
export interface FoldsKept {
  /** Threads at most. */
  readonly threads: number
  /** Events they may have together: what a state holds grows with them. */
  readonly events: number
}

export const FOLDS_KEPT: FoldsKept = { threads: 8192, events: 262_144 }

/** Threads folded of late, so many that memory stays bounded; those longest unused are forgotten first. The last one always stays. */
export class RecentFolds<Fold extends object> {
  readonly #folds = new Map<StreamKey, Fold>()
  readonly #kept: FoldsKept
  readonly #eventsOf: (fold: Fold) => number
  #events = 0

  /** @param eventsOf events of a fold's thread */
  constructor(kept: FoldsKept, eventsOf: (fold: Fold) => number) {
    this.#kept = kept
    this.#eventsOf = eventsOf
  }

  get(stream: StreamKey): Fold | undefined {
    return this.#folds.get(stream)
  }

  set(stream: StreamKey, fold: Fold): void {
    this.#forget(stream)
    this.#folds.set(stream, fold)
    this.#events += this.#eventsOf(fold)
    for (const oldest of this.#folds.keys()) {
      if (this.#folds.size === 1 || (this.#folds.size <= this.#kept.threads && this.#events <= this.#kept.events)) return
      this.#forget(oldest)
    }
  }

  #forget(stream: StreamKey): void {
    const known = this.#folds.get(stream)
    if (!known) return
    this.#folds.delete(stream)
    this.#events -= this.#eventsOf(known)
  }
}
