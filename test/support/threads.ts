import { type Clock, countingIds, type Ids, type JsonObject, jsonDigest, Payload, systemClock } from '../../src/base/index.ts'
import {
  ANSWER_SCHEMA,
  APPROVAL_SCHEMA,
  externalIdKey,
  HUMAN_PROVIDER,
  TOOL_APPROVAL,
  TOOL_CALL,
  USER_QUESTION,
  type WaitLookup,
} from '../../src/continuations/index.ts'
import { type BatchItem, type EventDraft, type StreamKey, type ThreadKey, threadStream } from '../../src/events/index.ts'
import { type LogBackend, openMemoryLog } from '../../src/log/index.ts'
import { requestMessage, responseMessage, toolCallPart, userPromptPart } from '../../src/messages/index.ts'
import { type DecisionContext, type ThreadState, ThreadStore } from '../../src/projections/index.ts'

/** One deferred call of the thread to build. Everything has a default. */
export interface WaitSpec {
  kind?: 'external' | 'approval' | 'question'
  id?: string
  provider?: string
  externalId?: string
  schemaId?: string
  arguments?: JsonObject
  deadline?: number
}

export interface BuiltWait {
  id: string
  callId: string
  kind: 'external' | 'approval' | 'question'
  provider: string
  externalId: string
  schemaId: string
  digest: string
}

export interface BuiltThread {
  key: ThreadKey
  stream: StreamKey
  runId: string
  waits: BuiltWait[]
  state: ThreadState
}

export const QUESTIONS = {
  questions: [
    {
      question: 'Which warehouse?',
      header: 'Warehouse',
      options: [
        { label: 'North', description: 'The northern one' },
        { label: 'South', description: 'The southern one' },
      ],
      multiSelect: false,
    },
  ],
}

const STARTED = '2026-01-01T00:00:00Z'

/** A store on a memory log of its own. */
export async function memoryStore(o: { clock?: Clock; ids?: Ids; backend?: LogBackend } = {}): Promise<ThreadStore> {
  const clock = o.clock ?? systemClock
  const backend = o.backend ?? (await openMemoryLog({ clock }))
  return ThreadStore.open({ backend, clock, ids: o.ids ?? countingIds() })
}

const actor = { kind: 'library', id: 'test', source: 'test' }

/** What a decision of a test is made with. */
export const contextFor = (store: ThreadStore, stream: StreamKey, o: Partial<DecisionContext> = {}): DecisionContext => ({
  stream,
  now: store.clock.now(),
  actor,
  runId: null,
  attempt: null,
  ...o,
})

/** Appends events as they are. */
export const append = async (
  store: ThreadStore,
  stream: StreamKey,
  drafts: readonly EventDraft[],
  o: Partial<DecisionContext> = {},
): Promise<ThreadState> => (await store.commit(stream, () => ({ drafts, context: contextFor(store, stream, o) }))).state

/** A thread whose one run is suspended on `waits`: opened, asked, answered by the model with one call per wait, suspended, armed. */
export async function suspendedThread(
  store: ThreadStore,
  specs: readonly WaitSpec[] = [{}],
  o: { application?: string; user?: string; thread?: string } = {},
): Promise<BuiltThread> {
  const key = { application: o.application ?? 'shop', user: o.user ?? 'u-1', thread: o.thread ?? store.ids.thread() }
  const stream = threadStream(key)
  const runId = store.ids.run()
  const waits = specs.map((spec, i) => builtWait(store, spec, i))
  const items = specs.map((spec, i) => batchItem(spec, waits[i] as BuiltWait))
  await append(store, stream, opening(key, runId), { runId, attempt: 1 })
  const state = await append(store, stream, [...step(items), ...suspension(runId, items, waits)], { runId, attempt: 1 })
  return { key, stream, runId, waits, state }
}

const opening = (key: ThreadKey, runId: string): EventDraft[] => [
  {
    type: 'thread.opened/1',
    data: {
      application_id: key.application,
      user_id: key.user,
      thread_id: key.thread,
      kind: 'harness',
      origin: { kind: 'new', state: null, parent: null },
    },
  },
  {
    type: 'run.requested/1',
    data: { run_id: runId, agent: 'support', input: Payload.of('hi'), answers: null, options: Payload.of({}), command_id: null },
  },
  {
    type: 'run.started/1',
    data: {
      run_id: runId,
      invocation_id: runId,
      attempt: 1,
      owner: { id: 'owner-1', kind: 'engine' },
      agent: { name: 'support', revision: '1' },
      tool_recovery: 'declared',
      trigger: { kind: 'input', continuation_ids: [] },
    },
  },
]

/** The request and the response that makes the calls. */
function step(items: readonly BatchItem[]): EventDraft[] {
  const request = requestMessage({ parts: [userPromptPart({ content: 'hi', timestamp: STARTED })], timestamp: STARTED })
  const calls = items.map((item) =>
    toolCallPart({ tool_name: item.tool_name, tool_call_id: item.model_call_id, args: item.arguments.value as JsonObject }),
  )
  const response = responseMessage({ parts: calls, timestamp: STARTED })
  return [
    {
      type: 'request.composed/1',
      data: { step: 1, message: Payload.of(request as unknown as JsonObject), state: 'complete' },
    },
    {
      type: 'model.responded/1',
      data: { step: 1, message: Payload.of(response as unknown as JsonObject), usage: Payload.of({}), replaces_previous: false },
    },
  ]
}

const suspension = (runId: string, batch: BatchItem[], waits: readonly BuiltWait[]): EventDraft[] => [
  { type: 'run.suspended/1', data: { run_id: runId, batch } },
  ...waits.flatMap((wait): EventDraft[] => [
    {
      type: 'continuation.suspended/1',
      data: {
        continuation_id: wait.id,
        provider: wait.provider,
        capability: { external: TOOL_CALL, approval: TOOL_APPROVAL, question: USER_QUESTION }[wait.kind],
        schema_id: wait.schemaId,
        external_id: wait.externalId,
        external_id_key: externalIdKey(wait.provider, wait.externalId),
        resume: null,
        grants: null,
        generation: 0,
        deadline: null,
      },
    },
    { type: 'continuation.armed/1', data: { continuation_id: wait.id, revision: 1 } },
  ]),
]

const SCHEMAS = { external: 'payout-result/1', approval: APPROVAL_SCHEMA, question: ANSWER_SCHEMA }

function builtWait(store: ThreadStore, spec: WaitSpec, i: number): BuiltWait {
  const kind = spec.kind ?? 'external'
  const id = spec.id ?? store.ids.continuation()
  return {
    id,
    callId: `call-${i + 1}`,
    kind,
    provider: spec.provider ?? (kind === 'external' ? 'payouts' : HUMAN_PROVIDER),
    externalId: spec.externalId ?? id,
    schemaId: spec.schemaId ?? SCHEMAS[kind],
    digest: jsonDigest([kind, argumentsOf(spec, kind)]),
  }
}

const argumentsOf = (spec: WaitSpec, kind: BuiltWait['kind']): JsonObject =>
  spec.arguments ?? (kind === 'question' ? QUESTIONS : { cents: 4200 })

const batchItem = (spec: WaitSpec, wait: BuiltWait): BatchItem => ({
  model_call_id: wait.callId,
  target_call_id: wait.callId,
  tool_name: `${wait.kind}_tool`,
  tool: wait.kind === 'external' ? `tool/client/${wait.kind}_tool` : `tool/local/${wait.kind}_tool`,
  arguments: Payload.of(argumentsOf(spec, wait.kind)),
  kind: wait.kind,
  continuation_id: wait.id,
  proposal_digest: wait.digest,
  metadata: Payload.of({}),
  deadline: spec.deadline ?? null,
})

/** A look-up over the threads a test has built, instead of the waits table. */
export class TestLookup implements WaitLookup {
  readonly #threads: BuiltThread[] = []

  add(thread: BuiltThread): BuiltThread {
    this.#threads.push(thread)
    return thread
  }

  byContinuationId(id: string) {
    return this.#find((wait) => wait.id === id)
  }

  byExternalId(application: string, provider: string, externalId: string) {
    return this.#find(
      (wait, thread) => thread.key.application === application && wait.provider === provider && wait.externalId === externalId,
    )
  }

  #find(matches: (wait: BuiltWait, thread: BuiltThread) => boolean) {
    for (const thread of this.#threads)
      for (const wait of thread.waits) if (matches(wait, thread)) return { stream: thread.stream, continuationId: wait.id }
    return undefined
  }
}
