import type { Clock, Ids, JsonObject, JsonValue } from '../base/index.ts'
import type { SchemaSource, ThreadKey, ToolRecovery } from '../events/index.ts'
import type {
  Agent,
  DeferredToolResume,
  RunResult as HarnessResult,
  RunBindings,
  SafeFailure,
  UsageLimits,
} from '../harness/index.ts'
import type { ContentStore, LogBackend } from '../log/index.ts'
import type { HarnessState } from '../messages/index.ts'
import type { Delta } from '../models/index.ts'
import type { EarlyResultsOptions } from './early-results.ts'

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
  /** Results that come before their wait. */
  earlyResults?: EarlyResultsOptions | undefined
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
  /** Makes the input when the run begins; not beside `input`. */
  inputFactory?: () => JsonValue | Promise<JsonValue>
  /**
   * Where to go on from: a state exported here or by the original library. Its thread is imported if this log does not know it; else it must be
   * what the thread is now (`thread_moved`).
   */
  previousState?: HarnessState | JsonObject | string
  /** Answers to what a run waits for. On a thread of this log they complete its waits. */
  deferredResume?: DeferredToolResume
  usageLimits?: UsageLimits
  /**
   * Goes on counting from what the run before used, or what the previous state tells (`threadlog.usage`): limits of requests and tokens count it,
   * and so does the usage of the result; default: from zero. A run that resumes a suspension of this log keeps the options of the suspended one.
   */
  resumeUsage?: boolean
  /** Gives up what a suspended thread waits for; needed only by an agent with `onNewInput: 'require-abandon'`. */
  abandon?: boolean
  /** What happens to calls whose outcome is unknown. Default `declared`: those marked retryable run again. */
  toolRecovery?: ToolRecovery
  /** Default `throw`: a tool's exception ends the run and is thrown. `return`: the model is told the error's class name. */
  toolErrors?: 'throw' | 'return'
  /** Aborting cancels the run. */
  signal?: AbortSignal
  /** Live things of this run; they never enter the log. */
  bindings?: RunBindings
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

export type RunResult = HarnessResult<Wait>
export type RunFailure = SafeFailure

export interface RunHandle {
  runId: string
  invocationId: string
  /** The thread id. */
  thread: string
  key: ThreadKey
  /** Resolves at the end of the invocation; a suspension is none. */
  result(o?: { signal?: AbortSignal }): Promise<RunResult>
}

/** What a stream tells, in order. `sequence` counts from 0 without gaps. */
export type RunStreamEvent = { readonly sequence: number } & (
  | { type: 'lifecycle'; event: 'run_started' }
  | Delta
  | { type: 'event'; version: number; event: string; time: number }
  | { type: 'result'; result: RunResult }
)
