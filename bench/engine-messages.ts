/** What the producer tells an engine process. Those with an `id` are answered. */
export type ToEngine =
  | { start: number[] }
  | { id: number; ask: 'marks' }
  | { id: number; ask: 'idle' }
  | { id: number; ask: 'stop-serving' }
  | { id: number; ask: 'publish'; results: string[] }
  | { id: number; ask: 'profile' }
  | { id: number; ask: 'profile-end'; file: string }

/** What an engine process tells: order numbers with times of the host's monotonic clock, or with the id of their wait. */
export interface FromEngine {
  /** Serving; where to send results. */
  ready?: { url: string; token: string; at: number }
  /** Waits that want a result. */
  requests?: [order: number, continuationId: string][]
  /** Resumed: the model was asked. */
  asked?: [order: number, at: number][]
  /** Ended, as its `RunHandle` says. */
  ended?: [order: number, at: number][]
  reply?: { id: number; value: unknown }
  problem?: string
}

/** Counters of an engine process at one moment. */
export interface Marks {
  /** Rows of each table of the log, and bytes of their values, keys and headers. */
  tables: Record<string, { rows: number; bytes: number }>
  /** Rows inserted, changed or deleted by this connection so far, the index tables included. */
  changes: number
  /** Microseconds of CPU, user and system. */
  cpu: number
}
