import { AppendList, AppendMap, type Payload } from '../base/index.ts'
import type {
  Actor,
  BatchItem,
  EventHash,
  Owner,
  Source,
  StreamKey,
  ThreadKey,
  ToolRecovery,
  WaitFailure,
} from '../events/index.ts'
import { ZERO_HASH } from '../events/index.ts'

/**
 * Raised with every change of `evolve` (R3). A snapshot of another fold version is ignored and the thread folded again.
 */
export const FOLD_VERSION = 3

/** What the fold of a thread's events gives. Immutable; every version of a thread shares what did not change. */
export interface ThreadState {
  /** Number of accepted events folded. */
  readonly version: number
  /** Hash of the last one; the next commit's `previous`. */
  readonly hash: EventHash
  readonly identity: ThreadIdentity | undefined
  /** The message history: requests and responses, oldest first. */
  readonly history: AppendList<HistoryEntry>
  /** The calls of the latest response and what has become of each; not yet all in the history. */
  readonly batch: CallBatch | undefined
  /** The run that is running or suspended. */
  readonly run: RunState | undefined
  /** Runs asked for and not begun, oldest first. */
  readonly requested: readonly RequestedRun[]
  /** How each ended run ended, by run id. A suspension is the end of a run. */
  readonly runs: AppendMap<RunEnd>
  /** How each ended invocation ended, by invocation id. */
  readonly invocations: AppendMap<RunEnd>
  /** Run ids by the command that asked for them. */
  readonly commands: AppendMap<string>
  /** Waits that can still change. */
  readonly waits: ReadonlyMap<string, Wait>
  /** Waits that ended: claimed, cancelled, expired, abandoned. */
  readonly closedWaits: AppendMap<Wait>
  readonly capabilities: ReadonlyMap<string, { version: string; data: Payload }>
  /** What an imported state brought beside messages and capabilities: `{environment_states, refs, …unknown fields}`. */
  readonly imported: Payload | undefined
  /** Runs of a foreign host. Its waits stand in `waits`, whatever their status, until their run is deleted. */
  readonly foreign: ForeignSession | undefined
  /** Of a stream that is no thread: who holds what it reserves. */
  readonly reservation: Reservation | undefined
  /** Of such a stream: results that came before their wait, and what became of the latest of them. */
  readonly early: EarlyState | undefined
  /** Generations of reservations that were taken from this thread before it confirmed them. */
  readonly withdrawn: ReadonlyMap<StreamKey, number> | undefined
}

export interface EarlyState {
  /** In the order in which they came. */
  readonly held: readonly HeldResult[]
  /** Those that got their final verdict, the last 32. */
  readonly settled: readonly { readonly digest: string; readonly receipt: Payload }[]
}

/** A result that came before its wait. */
export interface HeldResult {
  /** Version of the event that holds it. */
  readonly version: number
  readonly application: string
  readonly provider: string
  readonly externalIdKey: string
  /** The submission, as a record of topic `results` in JSON. */
  readonly record: Payload
  readonly source: Source
  readonly actor: Actor
  /** Epoch milliseconds. */
  readonly expiresAt: number
}

/** A session of a foreign host: one that runs its own loop and keeps its waits here (design §6a). */
export interface ForeignSession {
  readonly runs: ReadonlyMap<string, ForeignRun>
}

export type InvocationStatus = 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled'

export interface ForeignRun {
  readonly runId: string
  readonly framework: string
  readonly status: InvocationStatus
  /** 0 when it begins, then one more with every change. */
  readonly revision: number
  readonly pendingAction: { readonly type: string; readonly actionId: string; readonly capability: string } | null
  /** By namespace, a zero byte, and checkpoint id. */
  readonly checkpoints: ReadonlyMap<string, { readonly revision: number; readonly payload: Payload }>
  /** Under which claim it runs, if that was for a time; until it waits again or ends. */
  readonly lease?: ClaimLease | undefined
  readonly createdAt: number
  readonly updatedAt: number
}

/** A claim for a time: who holds it goes on with the run, and says so. */
export interface ClaimLease {
  readonly continuationId: string
  /** The revision of the claimed wait: raised by who takes the claim over, so that an older holder's writes are told apart. */
  readonly fence: number
  /** Epoch milliseconds from which on others may take it over; null: acknowledged. */
  readonly until: number | null
}

/** Something unique beyond one thread: an external id, a run id, a continuation id. */
export interface Reservation {
  readonly kind: 'external_id' | 'run_id' | 'continuation_id'
  readonly status: 'taken' | 'released'
  /** Raised with each taking. A wait or run quotes the generation it was reserved under. */
  readonly generation: number
  readonly holder: ThreadKey & { readonly id: string }
  /** Epoch milliseconds of the taking. */
  readonly takenAt: number
}

export interface ThreadIdentity extends ThreadKey {
  readonly kind: 'harness' | 'foreign'
  readonly stream: StreamKey
  readonly origin: 'new' | 'imported' | 'forked'
  /** Epoch milliseconds. */
  readonly openedAt: number
}

/** One message of the history. Its wire form is made by `messageOf`, only when somebody looks. */
export interface HistoryEntry {
  readonly role: 'request' | 'response'
  /** The message, perhaps with `{"$settled": call_id}` in place of parts. */
  readonly template: Payload
  /** What those references stand for. */
  readonly settled: ReadonlyMap<string, SettledCall> | undefined
  /** Version of the event that wrote it; 0 for messages of an imported state. */
  readonly version: number
  readonly runId: string | null
}

/** The calls of one response. Call ids repeat over a thread's life, so a call is (version of its response, call id): R13. */
export interface CallBatch {
  readonly response: HistoryEntry
  /** `v<version>/<run id>` of the `model.responded`, or `m<index>` of an imported message. */
  readonly origin: string
  readonly runId: string | null
  /** Attempt that received the response; null if imported. */
  readonly attempt: number | null
  /** Only calls something has happened to. */
  readonly calls: ReadonlyMap<string, CallState>
}

export interface CallState {
  readonly dispatch: Dispatch | undefined
  readonly settled: SettledCall | undefined
  /** Named by a `request.composed`, so in the history. */
  readonly composed: boolean
  /** The wait that answers it. */
  readonly waitId: string | undefined
  /** How many further jobs were submitted for it, each because the one before had failed for the time being; undefined: none. */
  readonly resubmissions?: number | undefined
}

export interface Dispatch {
  readonly number: number
  readonly runId: string | null
  readonly attempt: number | null
  readonly idempotencyKey: string
  /** Epoch milliseconds of the event, and how long after it the effect may still start (R20). */
  readonly time: number
  readonly startByMs: number
}

export type Settlement = 'returned' | 'failed' | 'denied' | 'retried' | 'unknown'

export interface SettledCall {
  readonly settlement: Settlement
  /** The tool-return part, or a reference to `wait`. */
  readonly part: Payload
  /** The wait whose outcome is the part's content. */
  readonly wait: Wait | undefined
  readonly number: number
  readonly reason: string | null
  readonly time: number
}

export interface RunState {
  readonly runId: string
  readonly invocationId: string
  readonly attempt: number
  readonly owner: Owner
  readonly agent: { readonly name: string; readonly revision: string }
  readonly toolRecovery: ToolRecovery
  readonly trigger: { readonly kind: 'input' | 'batch' | 'recovery'; readonly continuationIds: readonly string[] }
  readonly status: 'running' | 'suspended'
  /** Number of the latest model request of this run; 0 before the first. */
  readonly step: number
  /** Failed model requests of the current step. */
  readonly modelFailures: number
  /** Retried returns of each tool since its last other outcome, by tool name. */
  readonly retries: ReadonlyMap<string, number>
  readonly cancel: { readonly reason: string; readonly time: number } | undefined
  /** Items of the suspension, and their waits. */
  readonly items: readonly BatchItem[]
  readonly waitIds: readonly string[]
  /** Set while a resume is tried: what to return to if it is refused before anything was claimed (R11). */
  readonly suspended: RunState | undefined
  /** Why the last resume was refused, and the agent revision that refused. */
  readonly blocked: { readonly code: string; readonly revision: string } | undefined
  /** User-prompt content that no request has carried yet. */
  readonly input: Payload | null
  /** Further input, accepted while it runs and not carried yet. */
  readonly accepted: readonly { readonly id: string; readonly content: Payload }[]
  /** Answers its caller gave to calls that no wait of this log stands for: a deferred resume in wire form. */
  readonly answers: Payload | null
  /** Calls it has dispatched. */
  readonly toolCalls: number
  /** What it was asked to count on from; undefined: nothing. */
  readonly resumed: RunUsage | undefined
  /** That, and what responses of its own used that left the history; undefined: nothing. */
  readonly spent: RunUsage | undefined
  readonly options: Payload | undefined
  readonly startedAt: number
  readonly updatedAt: number
}

/** Tokens and requests of a run. */
export interface RunUsage {
  readonly requests: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
}

export interface RequestedRun {
  readonly runId: string
  readonly agent: string
  readonly input: Payload | null
  readonly answers: Payload | null
  readonly options: Payload
  readonly commandId: string | null
  readonly time: number
}

export interface RunEnd {
  readonly runId: string
  readonly invocationId: string
  readonly status: 'suspended' | 'completed' | 'failed' | 'cancelled'
  readonly output: Payload | null
  readonly failure: { code: string; message: string; retryable: boolean } | null
  /** What outsiders may know of a failure beside its code. */
  readonly details: Payload | null
  /** As in {@link RunState}. */
  readonly spent: RunUsage | undefined
  readonly reason: string | null
  /** Version of the event that ended it. */
  readonly version: number
  readonly time: number
}

/** Why a wait was abandoned whose thread goes on as another one. */
export const STALE_BRANCH = 'stale_branch'

export type WaitStatus = 'pending' | 'completed' | 'failed' | 'claimed' | 'cancelled' | 'expired' | 'abandoned'

/** A continuation: the durable, addressable record of one deferred item. */
export interface Wait {
  readonly id: string
  readonly provider: string
  readonly capability: string
  readonly schemaId: string
  readonly externalId: string
  readonly externalIdKey: string
  readonly runId: string
  readonly invocationId: string
  readonly item: BatchItem
  readonly resume: Payload | null
  readonly grants: Payload | null
  readonly generation: number
  readonly status: WaitStatus
  readonly ready: boolean
  readonly revision: number
  readonly outcome: WaitOutcome | undefined
  /** Why it ended without a result: what a host gave with its cancellation, or that its time was over. */
  readonly endedWith?: WaitFailure | undefined
  /** Epoch milliseconds from which on it may be recorded as expired; null: never. */
  readonly deadline: number | null
  /** Run and attempt that claimed it. An approval counts for that attempt only (R18). */
  readonly claimedBy: { readonly runId: string | null; readonly attempt: number | null } | undefined
  readonly createdAt: number
  readonly updatedAt: number
}

/** What answered a wait. Exactly one of `value` and `failure` is set. */
export interface WaitOutcome {
  readonly resultId: string
  /** SHA-256 of the canonical JSON as submitted. */
  readonly digest: string
  readonly source: Source
  readonly value: Payload | null
  readonly failure: WaitFailure | null
}

/** True of a stream that is no thread: what is reserved there, or came early for it. */
export const isReservation = ({ reservation, early }: ThreadState): boolean => reservation !== undefined || early !== undefined

/** The state of a stream without events. */
export const initial: ThreadState = {
  version: 0,
  hash: ZERO_HASH,
  identity: undefined,
  history: AppendList.of(),
  batch: undefined,
  run: undefined,
  requested: [],
  runs: AppendMap.of(),
  invocations: AppendMap.of(),
  commands: AppendMap.of(),
  waits: new Map(),
  closedWaits: AppendMap.of(),
  capabilities: new Map(),
  imported: undefined,
  foreign: undefined,
  reservation: undefined,
  early: undefined,
  withdrawn: undefined,
}

/** A wait of any status. */
export const findWait = (state: ThreadState, id: string): Wait | undefined => state.waits.get(id) ?? state.closedWaits.get(id)

/** One word for lists: what the thread is doing. */
export function threadStatus(state: ThreadState): 'idle' | 'requested' | 'running' | 'waiting' | 'resolved' {
  const run = state.run
  if (run?.status === 'running') return 'running'
  if (run?.status === 'suspended')
    return run.waitIds.every((id) => findWait(state, id)?.status !== 'pending') ? 'resolved' : 'waiting'
  return state.requested.length > 0 ? 'requested' : 'idle'
}
