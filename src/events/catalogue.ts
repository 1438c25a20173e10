import { z } from 'zod'
import type { Actor, Causation } from './actor.ts'
import { choice, count, flag, hash, instant, json, optional, record, text } from './fields.ts'

// Everything that can happen to a thread (design §5). A change of meaning is a new type with the next number, never an edit; the type
// before it moves to `upcast.ts`.

const parent = record('Parent', { stream: hash, version: count, hash })
const origin = record('Origin', {
  kind: choice('OriginKind', ['new', 'imported', 'forked']),
  /** The imported or copied HarnessState. */
  state: optional(json),
  parent: optional(parent),
})

export const owner = record('Owner', { id: text, kind: choice('OwnerKind', ['library', 'engine']) })
const agentRef = record('AgentRef', { name: text, revision: text })
export const toolRecovery = choice('ToolRecovery', ['never', 'declared', 'always'])
const trigger = record('Trigger', {
  kind: choice('TriggerKind', ['input', 'batch', 'recovery']),
  /** The resolved waits this run incorporates. */
  continuation_ids: z.array(text),
})

/** Where a result came from: a record of a topic, or a call of the API. */
export const source = record('Source', {
  /** Cluster id, or the file's log id. Null for API callers. */
  cluster: optional(text),
  topic: optional(text),
  partition: optional(count),
  offset: optional(count),
  record_time: optional(instant),
  api: optional(text),
  command_id: optional(text),
})

export const failure = record('Failure', { code: text, retryable: flag })

export const batchItem = record('BatchItem', {
  model_call_id: text,
  target_call_id: text,
  tool_name: text,
  /** Stable tool identity, `tool/local/<name>` or `tool/client/<name>`. */
  tool: text,
  /** The target call's arguments. */
  arguments: json,
  kind: choice('WaitKind', ['external', 'approval', 'question']),
  continuation_id: text,
  /** SHA-256 of the canonical `{tool, arguments, definition}`: what an approver was shown. */
  proposal_digest: hash,
  metadata: json,
  deadline: optional(instant),
})

const invocationStatus = choice('InvocationStatus', ['running', 'waiting', 'completed', 'failed', 'cancelled'])
/** What a waiting invocation of a foreign host waits for. */
const pendingAction = record('PendingAction', {
  type: choice('PendingActionType', ['external_continuation', 'human_approval', 'client_tool']),
  action_id: text,
  capability: text,
})

const reservationKind = choice('ReservationKind', ['external_id', 'run_id', 'continuation_id'])
/** For whom something is reserved: a run id or continuation id in a thread. */
const holder = record('Holder', { application_id: text, user_id: text, thread_id: text, id: text })

const outcome = { continuation_id: text, revision: count, result_id: text, digest: hash, source }
const ended = { continuation_id: text, revision: count, failure: optional(failure) }

const shapes = {
  'thread.opened/1': {
    application_id: text,
    user_id: text,
    thread_id: text,
    kind: choice('ThreadKind', ['harness', 'foreign']),
    origin,
  },
  'thread.repaired/1': { version: count, reason: text },

  'run.requested/1': {
    run_id: text,
    agent: text,
    /** User-prompt content: a string or a list of content items. */
    input: optional(json),
    /** `{continuation_id: {result} | {failure}}` given by the caller. */
    answers: optional(json),
    options: json,
    command_id: optional(text),
  },
  'run.started/1': {
    run_id: text,
    /** Run id of the first run of the chain. */
    invocation_id: text,
    attempt: count,
    owner,
    agent: agentRef,
    tool_recovery: toolRecovery,
    trigger,
  },
  'run.recovered/1': { run_id: text, attempt: count, owner, why: text },
  'run.suspended/1': { run_id: text, batch: z.array(batchItem) },
  'run.cancel-requested/1': { run_id: text, command_id: optional(text), reason: text },
  'run.completed/1': { run_id: text, output: json },
  'run.failed/1': { run_id: text, failure: record('RunFailure', { code: text, message: text, retryable: flag }), details: json },
  'run.cancelled/1': { run_id: text, reason: text },

  'request.composed/1': {
    step: count,
    /** The request message in wire form; a part `{"$settled": call_id}` stands for the settled return of that call. */
    message: json,
    state: choice('RequestState', ['complete', 'interrupted']),
  },
  /** Input for a run that is going on; the next request carries it. */
  'input.accepted/1': { run_id: text, input_id: text, content: json },
  'model.requested/1': { step: count, model: text, settings_digest: hash },
  'model.responded/1': { step: count, message: json, usage: json, replaces_previous: flag },
  'model.failed/2': {
    step: count,
    code: text,
    retryable: flag,
    /** Class or type name of what failed; never a provider's words. */
    error_type: text,
    /** HTTP status, if there was an answer. */
    status: optional(count),
    /** What the provider asked to be left alone for, in milliseconds. */
    retry_after_ms: optional(count),
  },
  'history.revised/1': {
    why: choice('RevisionWhy', ['system_prompt', 'interrupted_tail', 'filter', 'compaction']),
    /** `{replace: {index: message}}` over the history before this event. */
    patch: json,
  },

  'tool.dispatched/1': {
    call_id: text,
    tool: text,
    arguments_digest: hash,
    /** 1 for the first dispatch of the call, +1 for each replay. */
    number: count,
    idempotency_key: text,
    /** The effect must start within this many milliseconds of the append being sent (R20). */
    start_by_ms: count,
    /** Of a call whose tool was defined anew since it was approved: digest of the proposal as it runs. */
    changed_proposal: optional(hash),
  },
  'tool.settled/1': {
    call_id: text,
    settlement: choice('Settlement', ['returned', 'failed', 'denied', 'retried', 'unknown']),
    /** The tool-return part in wire form, or `{"$completed": continuation_id}`. */
    part: json,
    /** The dispatch this settles; 0 when the call was never dispatched. */
    number: count,
    /** Why it is unknown: `interrupted`, `not-started`, `unmarked`, … */
    reason: optional(text),
  },
  /** What became of the latest call of that id that was settled as unknown; the model reads this from then on. */
  'tool.reconciled/1': {
    call_id: text,
    settlement: choice('ReconciledSettlement', ['returned', 'failed']),
    /** The tool-return part in wire form. */
    part: json,
    /** Who says so, and why. */
    reason: text,
  },

  'continuation.suspended/1': {
    continuation_id: text,
    provider: text,
    capability: text,
    schema_id: text,
    external_id: text,
    /** SHA-256 hex of provider and external id (continuation spec §7.2). */
    external_id_key: hash,
    resume: optional(json),
    grants: optional(json),
    generation: count,
    /** When a wait of a foreign host may expire; that of an own run stands in its batch item. */
    deadline: optional(instant),
  },
  'continuation.armed/1': { continuation_id: text, revision: count },
  /** A heartbeat of its job moved the deadline. The wait is what it was, so its revision stays. */
  'continuation.extended/1': { continuation_id: text, deadline: instant },
  'continuation.completed/1': { ...outcome, value: json },
  'continuation.failed/1': { ...outcome, failure },
  'continuation.claimed/1': { continuation_id: text, revision: count },
  /** Until when the latest claim has the outcome to itself; null: acknowledged, nobody else will be given it. */
  'continuation.leased/1': { continuation_id: text, until: optional(instant) },
  'continuation.cancelled/1': ended,
  'continuation.expired/1': ended,
  'continuation.abandoned/1': ended,

  'capability.written/1': { capability_id: text, version: text, data: json },
  'capability.deleted/1': { capability_id: text },

  // Foreign hosts (design §6a): runs of a framework that keeps its own loop.
  'invocation.begun/1': { run_id: text, framework: text },
  'invocation.transitioned/1': {
    run_id: text,
    revision: count,
    from: invocationStatus,
    to: invocationStatus,
    pending_action: optional(pendingAction),
  },
  'invocation.checkpoint-written/1': { run_id: text, namespace: text, checkpoint_id: text, revision: count, payload: json },
  /** The run, its checkpoints and its waits are gone. */
  'invocation.deleted/1': { run_id: text },

  // Streams of their own: what is unique beyond one thread.
  'reservation.taken/1': { kind: reservationKind, generation: count, holder },
  'reservation.released/1': { generation: count },
  /** A result that came before its wait: kept until that is there, or until `expires_at`. Its record in the JSON form of topic `results`. */
  'reservation.held/1': {
    application_id: text,
    provider: text,
    external_id_key: hash,
    record: json,
    source,
    expires_at: instant,
  },
  /** What became of it for good: the digest of its outcome, and its receipt. `held` is the version of the event that kept it. */
  'reservation.settled/1': { held: count, digest: hash, receipt: json },
  /** In the stream of a holder that never confirmed: what it still writes for this generation is void. */
  'reservation.withdrawn/1': { reservation: hash, generation: count },
} as const

type Shapes = typeof shapes

/** `run.started/1`, … */
export type EventType = keyof Shapes

/** The zod object of each event type: the one declaration from which types and Avro records follow. */
export const catalogue = Object.fromEntries(Object.entries(shapes).map(([type, shape]) => [type, z.strictObject(shape)])) as {
  [T in EventType]: z.ZodObject<Shapes[T], z.core.$strict>
}

export const eventTypes = Object.keys(catalogue) as EventType[]

/** The zod objects of event types by name: the catalogue, or that of another build. */
export type Declarations = Readonly<Record<string, z.ZodObject>>

/** The fields of an event of type `T`. */
export type EventData<T extends EventType> = z.infer<(typeof catalogue)[T]>

/** An outsider whose act is committed together with a run's: such an event names neither run nor attempt. */
export interface Outsider {
  readonly actor: Actor
  readonly causation: Causation | null
}

/** What a decider proposes: a type and its fields. Absent values are null. `by` is set when another than the deciding one acted. */
export type EventDraft<T extends EventType = EventType> = {
  [K in T]: { readonly type: K; readonly data: EventData<K>; readonly by?: Outsider }
}[T]

export type Owner = z.infer<typeof owner>
export type Source = z.infer<typeof source>
export type WaitFailure = z.infer<typeof failure>
export type BatchItem = z.infer<typeof batchItem>
export type ToolRecovery = Exclude<z.infer<typeof toolRecovery>, 'unrecognised'>
