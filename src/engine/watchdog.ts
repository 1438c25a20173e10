import type { StreamKey } from '../events/index.ts'
import type { Sql } from '../log/index.ts'
import { listWaits } from '../projections/index.ts'

/** Waits looked at in one pass; those behind them are told of as these come to an end. */
const OLDEST = 1_000

export interface WatchOptions {
  tables: Sql
  application: string
  /** Milliseconds after which a wait should have been answered. */
  afterMs: number
  owns(stream: StreamKey): boolean
  onUnanswered(wait: { stream: StreamKey; continuationId: string; provider: string; ageMs: number }): void
}

/**
 * Tells of each wait that is open for too long, once: nobody outside may be there to answer it, and its thread does nothing else until then. The log
 * cannot know who is there; age is what shows it.
 */
export class Watchdog {
  readonly #o: WatchOptions
  #told = new Set<string>()

  constructor(options: WatchOptions) {
    this.#o = options
  }

  look(now: number): void {
    const { tables, application, afterMs, owns, onUnanswered } = this.#o
    const told = new Set<string>()
    for (const row of listWaits(tables, { application, createdBefore: now - afterMs, limit: OLDEST })) {
      if (!owns(row.stream)) continue
      const { continuation_id: continuationId, stream, provider } = row
      told.add(continuationId)
      if (!this.#told.has(continuationId)) onUnanswered({ stream, continuationId, provider, ageMs: now - row.created_at })
    }
    this.#told = told
  }
}
