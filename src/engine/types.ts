import type { Clock, Ids, JsonValue } from '../base/index.ts'
import type { SchemaSource, ThreadKey, ToolRecovery } from '../events/index.ts'
import type { Agent } from '../harness/index.ts'
import type { ContentStore, LogBackend } from '../log/index.ts'
import type { Delta } from '../models/index.ts'

export interface ThreadlogOptions {
  /** `'memory'` (default), `sqlite:<file>`, or an open log. */
  log?: 'memory' | `sqlite:${string}` | LogBackend
  /** Application id of every thread opened here. Default `default`. */
  application?: string
  /** Agents this process can run. */
  agents?: readonly Agent[]
  /**
   * Schemas of results in Avro, by the ids their producers write: `fetchResultSchemas` of `threadlog/kafka` reads them from a registry.
   * Default: those of this package, with the ids of its `schemas/ids.json`.
   */
  resultSchemas?: SchemaSource | undefined
  /** Where values above 64 KiB are kept for good; the log has a copy to read from. Default: the log keeps them itself. */
  content?: ContentStore | undefined
  clock?: Clock
  ids?: Ids
}

export interface RunOptions {
  /** Default `default`. */
  user?: string
  /** Thread id, or none for a new thread. */
  thread?: string
  /** The user's message: text, or content items of the message format. Absent: go on from what the thread holds. */
  input?: JsonValue
  /** What happens to calls whose outcome is unknown. Default `declared`: those marked retryable run again. */
  toolRecovery?: ToolRecovery
  /** Default `throw`: a tool's exception ends the run and is thrown. `return`: the model is told the error's class name. */
  toolErrors?: 'throw' | 'return'
  /** Aborting cancels the run. */
  signal?: AbortSignal
  /** Live things of this run; they never enter the log. */
  bindings?: { deps?: unknown }
}

export interface RunFailure {
  code: string
  message: string
  retryable: boolean
}

/** Something only the outside can answer. */
export interface Wait {
  id: string
  thread: ThreadKey
  kind: 'external' | 'approval' | 'question'
  provider: string
  tool: string
  arguments: JsonValue
  status: string
  schemaId: string
  externalId: string
  /** Digest of the proposal: quote it when approving. */
  digest: string
  /** Epoch milliseconds, or null. */
  deadline: number | null
  createdAt: number
}

/** How a run ended. `output` is set when completed, `failure` when failed, `waits` when suspended. */
export interface RunResult {
  status: 'completed' | 'suspended' | 'failed' | 'cancelled'
  thread: ThreadKey
  runId: string
  invocationId: string
  /** Version of the event that ended it. */
  version: number
  output: JsonValue
  failure: RunFailure | null
  waits: Wait[]
}

export interface RunHandle {
  runId: string
  invocationId: string
  /** The thread id. */
  thread: string
  key: ThreadKey
  /** Resolves at the end of the invocation; a suspension is none. */
  result(o?: { signal?: AbortSignal }): Promise<RunResult>
}

export type RunStreamEvent =
  | Delta
  | { type: 'event'; version: number; event: string; time: number }
  | { type: 'result'; result: RunResult }

/** A live run: iterate it, or await `result`. */
export interface RunStream extends AsyncIterable<RunStreamEvent> {
  readonly result: Promise<RunResult>
}
