import { AppendList, isJsonObject, type JsonObject, type JsonValue, Payload } from '../base/index.ts'
import type { EventType, LogEvent } from '../events/index.ts'
import { evolveContinuation } from './evolve-continuation.ts'
import { evolveForeign } from './evolve-foreign.ts'
import { evolveReservation } from './evolve-reservation.ts'
import { evolveRun } from './evolve-run.ts'
import { composedCalls, partsOf } from './messages.ts'
import { reconciled } from './reconcile.ts'
import { type CallState, findWait, type HistoryEntry, type RunState, type Settlement, type ThreadState } from './state.ts'
import { known, unfoldable } from './unfoldable.ts'
import { withSpent } from './usage.ts'

type Mutable = { -readonly [K in keyof ThreadState]: ThreadState[K] }

/**
 * Applies one event: pure, synchronous, the same live and in replay (R2, R3).
 * @throws ThreadlogError `event_unfoldable`
 */
export function evolve(state: ThreadState, event: LogEvent): ThreadState {
  if (event.version !== state.version + 1) throw unfoldable(event, `expected version ${state.version + 1}.`)
  if (state.version === 0 && !BEGINNINGS.has(event.type)) throw unfoldable(event, 'a thread begins with thread.opened.')
  const next = apply(state, event)
  // What `apply` made is new and nobody else's; only an event that changes nothing gives the state back.
  const own: Mutable = next === state ? { ...state } : next
  own.version = event.version
  own.hash = event.hash
  return own
}

/** What the first event of a stream may be. */
const BEGINNINGS: ReadonlySet<EventType> = new Set(['thread.opened/1', 'reservation.taken/1', 'reservation.held/1'])

function apply(state: ThreadState, event: LogEvent): ThreadState {
  switch (event.type) {
    case 'thread.opened/1':
      return opened(state, event)
    case 'thread.repaired/1':
      return state
    case 'request.composed/1':
      return composed(state, event)
    case 'input.accepted/1':
      return inputAccepted(state, event)
    case 'model.requested/1':
      return withRun(state, event, { step: event.data.step })
    case 'model.responded/1':
      return responded(state, event)
    case 'model.failed/2':
      return withRun(state, event, { modelFailures: (state.run?.modelFailures ?? 0) + 1 })
    case 'history.revised/1':
      return revised(state, event)
    case 'tool.dispatched/1':
      return dispatched(state, event)
    case 'tool.settled/1':
      return settled(state, event)
    case 'tool.reconciled/1':
      return reconciled(state, event)
    case 'capability.written/1': {
      const { capability_id, version, data } = event.data
      return { ...state, capabilities: new Map(state.capabilities).set(capability_id, { version, data }) }
    }
    case 'capability.deleted/1': {
      const capabilities = new Map(state.capabilities)
      capabilities.delete(event.data.capability_id)
      return { ...state, capabilities }
    }
    default:
      if (event.type.startsWith('reservation.')) return evolveReservation(state, event)
      if (state.identity?.kind === 'foreign') return evolveForeign(state, event)
      return event.type.startsWith('continuation.') ? evolveContinuation(state, event) : evolveRun(state, event)
  }
}

const NOTHING: readonly never[] = []

type Of<T extends EventType> = LogEvent<T>

function inputAccepted(state: ThreadState, event: Of<'input.accepted/1'>): ThreadState {
  const { run_id, input_id: id, content } = event.data
  if (state.run?.runId !== run_id) throw unfoldable(event, 'that run is not active.')
  return withRun(state, event, { accepted: [...state.run.accepted, { id, content }] })
}

function withRun(state: ThreadState, event: LogEvent, change: Partial<NonNullable<ThreadState['run']>>): ThreadState {
  if (!state.run) throw unfoldable(event, 'no run is active.')
  return { ...state, run: { ...state.run, ...change, updatedAt: event.time } }
}

function opened(state: ThreadState, event: Of<'thread.opened/1'>): ThreadState {
  const { application_id, user_id, thread_id, origin } = event.data
  const identity = {
    application: application_id,
    user: user_id,
    thread: thread_id,
    kind: known(event, event.data.kind),
    stream: event.stream,
    origin: known(event, origin.kind),
    openedAt: event.time,
  }
  if (state.identity) throw unfoldable(event, 'the thread is already open.')
  if (identity.kind === 'foreign') return { ...state, identity, foreign: { runs: new Map() } }
  return origin.state ? imported({ ...state, identity }, origin.state) : { ...state, identity }
}

/** Takes over an imported HarnessState: its messages become history, its last response an open batch. */
function imported(state: ThreadState, payload: Payload): ThreadState {
  const value = payload.value
  if (!isJsonObject(value)) return state
  const { schema_version: _, thread_id: __, message_history, agent_context_state, ...rest } = value
  let history: AppendList<HistoryEntry> = AppendList.of()
  for (const message of Array.isArray(message_history) ? message_history : []) history = history.push(importedEntry(message))
  const entries =
    isJsonObject(agent_context_state) && isJsonObject(agent_context_state['entries']) ? agent_context_state['entries'] : {}
  const capabilities = new Map(
    Object.entries(entries).flatMap(([id, e]) =>
      isJsonObject(e) ? [[id, { version: String(e['version']), data: Payload.of(e['data'] ?? null) }] as const] : [],
    ),
  )
  const lastResponse = history.slice().findLastIndex((entry) => entry.role === 'response')
  const response = history.at(lastResponse)
  const batch =
    lastResponse >= 0 && response
      ? {
          response,
          origin: `m${lastResponse}`,
          runId: null,
          attempt: null,
          calls: importedAnswers(history.slice(lastResponse + 1)),
        }
      : undefined
  return { ...state, history, capabilities, batch, imported: Payload.of(rest) }
}

/** Answers that came with an imported history: settled and in the history, by whom nobody knows. */
function importedAnswers(behind: readonly HistoryEntry[]): Map<string, CallState> {
  const calls = new Map<string, CallState>()
  for (const part of behind.flatMap((entry) => partsOf(entry.template.value))) {
    if (!isJsonObject(part) || part['part_kind'] !== 'tool-return' || typeof part['tool_call_id'] !== 'string') continue
    const settlement = SETTLEMENTS[String(part['outcome'])] ?? 'returned'
    const answer = { settlement, part: Payload.of(part), wait: undefined, number: 0, reason: null, time: 0 }
    if (!calls.has(part['tool_call_id']))
      calls.set(part['tool_call_id'], { dispatch: undefined, settled: answer, composed: true, waitId: undefined })
  }
  return calls
}

const SETTLEMENTS: Readonly<Record<string, Settlement>> = {
  success: 'returned',
  failed: 'failed',
  denied: 'denied',
  retried: 'retried',
  interrupted: 'unknown',
}

function composed(state: ThreadState, event: Of<'request.composed/1'>): ThreadState {
  const template = event.data.message
  const ids = composedCalls(template)
  const parts = new Map<string, NonNullable<CallState['settled']>>()
  let batch = state.batch
  if (ids.length > 0) {
    if (!batch) throw unfoldable(event, 'it names settled calls, but no response is open.')
    const calls = new Map(batch.calls)
    for (const id of ids) {
      const call = calls.get(id)
      if (!call?.settled || call.composed) throw unfoldable(event, 'it names a call that is not settled or already composed.')
      parts.set(id, call.settled)
      calls.set(id, { ...call, composed: true })
    }
    batch = { ...batch, calls }
  }
  const entry: HistoryEntry = {
    role: 'request',
    template,
    settled: parts.size > 0 ? parts : undefined,
    version: event.version,
    runId: event.run_id,
  }
  const run = state.run && {
    ...state.run,
    step: event.data.step,
    modelFailures: 0,
    ...(tookInput(state.run, template) ? { input: null, accepted: NOTHING } : {}),
    updatedAt: event.time,
  }
  return { ...state, history: state.history.push(entry), batch, run }
}

/** True if what people said is in this request. */
function tookInput({ input, accepted }: RunState, template: Payload): boolean {
  if (input === null && accepted.length === 0) return true
  return partsOf(template.value).some((part) => isJsonObject(part) && part['part_kind'] === 'user-prompt')
}

function responded(state: ThreadState, event: Of<'model.responded/1'>): ThreadState {
  const response: HistoryEntry = {
    role: 'response',
    template: event.data.message,
    settled: undefined,
    version: event.version,
    runId: event.run_id,
  }
  const history = event.data.replaces_previous
    ? AppendList.of([...state.history.slice(0, state.history.length - 1), response])
    : state.history.push(response)
  const batch = {
    response,
    origin: `v${event.version}/${event.run_id ?? ''}`,
    runId: event.run_id,
    attempt: event.attempt,
    calls: new Map<string, CallState>(),
  }
  return withRun({ ...state, history, batch }, event, { modelFailures: 0 })
}

function revised(state: ThreadState, event: Of<'history.revised/1'>): ThreadState {
  known(event, event.data.why)
  const patch = event.data.patch.value
  if (isJsonObject(patch) && isJsonObject(patch['tail'])) return tailRevised(state, event, patch['tail'])
  if (isJsonObject(patch) && isJsonObject(patch['splice'])) return spliced(state, event, patch['splice'])
  const replace = isJsonObject(patch) && isJsonObject(patch['replace']) ? patch['replace'] : {}
  const entries = state.history.slice()
  for (const [key, message] of Object.entries(replace)) {
    const entry = entries[Number(key)]
    if (!entry) throw unfoldable(event, 'it replaces a message that does not exist.')
    const role = isJsonObject(message) && message['kind'] === 'response' ? 'response' : 'request'
    entries[Number(key)] = { ...entry, role, template: Payload.of(message) }
  }
  return { ...state, history: AppendList.of(entries) }
}

/**
 * Everything from `from` on is these messages. The latest response keeps its calls, whatever was cut from its parts, and the answers that were
 * known before; answers that are new behind it count too.
 */
function tailRevised(state: ThreadState, event: LogEvent, tail: JsonObject): ThreadState {
  const { from, messages } = tail
  if (typeof from !== 'number' || from > state.history.length || !Array.isArray(messages))
    throw unfoldable(event, 'it replaces messages that do not exist.')
  const entries = state.history.slice(0, from)
  for (const message of messages) entries.push(importedEntry(message))
  const history = AppendList.of(entries)
  const response = entries.findLast((entry) => entry.role === 'response')
  if (response === undefined) return { ...state, history, batch: undefined }
  const at = entries.lastIndexOf(response)
  const batch = state.batch ?? { origin: `m${at}`, runId: null, attempt: null, calls: new Map<string, CallState>() }
  const calls = new Map(batch.calls)
  for (const [id, answer] of importedAnswers(entries.slice(at + 1))) if (!calls.get(id)?.settled) calls.set(id, answer)
  return { ...state, history, batch: { ...batch, response, calls } }
}

/** `count` messages from `from` on are these; a run whose responses go keeps what they used. */
function spliced(state: ThreadState, event: LogEvent, splice: JsonObject): ThreadState {
  const { from, count, messages } = splice
  const entries = state.history.slice()
  const fits = typeof from === 'number' && typeof count === 'number' && from + count <= entries.length
  if (!fits || !Array.isArray(messages)) throw unfoldable(event, 'it replaces messages that do not exist.')
  const gone = entries.splice(from, count, ...messages.map(importedEntry))
  const stays = state.batch !== undefined && entries.includes(state.batch.response)
  return {
    ...state,
    history: AppendList.of(entries),
    batch: stays ? state.batch : undefined,
    run: state.run && withSpent(state.run, gone),
  }
}

const importedEntry = (message: JsonValue): HistoryEntry => ({
  role: isJsonObject(message) && message['kind'] === 'response' ? 'response' : 'request',
  template: Payload.of(message),
  settled: undefined,
  version: 0,
  runId: null,
})

function withCall(state: ThreadState, event: LogEvent, callId: string, change: (call: CallState) => CallState): ThreadState {
  if (!state.batch) throw unfoldable(event, 'no response is open.')
  const calls = new Map(state.batch.calls)
  calls.set(callId, change(calls.get(callId) ?? { dispatch: undefined, settled: undefined, composed: false, waitId: undefined }))
  return { ...state, batch: { ...state.batch, calls } }
}

function dispatched(state: ThreadState, event: Of<'tool.dispatched/1'>): ThreadState {
  const { call_id, number, idempotency_key, start_by_ms } = event.data
  const run = state.run && { ...state.run, toolCalls: state.run.toolCalls + 1 }
  return withCall({ ...state, run }, event, call_id, (call) => {
    if (call.settled) throw unfoldable(event, 'the call is settled.')
    if (number !== (call.dispatch?.number ?? 0) + 1) throw unfoldable(event, 'the dispatch number does not follow.')
    const dispatch = {
      number,
      runId: event.run_id,
      attempt: event.attempt,
      idempotencyKey: idempotency_key,
      time: event.time,
      startByMs: start_by_ms,
    }
    return isResubmitted(state, event, call)
      ? { ...call, dispatch, resubmissions: (call.resubmissions ?? 0) + 1 }
      : { ...call, dispatch }
  })
}

/** True for a dispatch by the run that took the failure of the job before. */
function isResubmitted(state: ThreadState, { run_id }: Of<'tool.dispatched/1'>, { waitId, dispatch }: CallState): boolean {
  const wait = waitId === undefined ? undefined : findWait(state, waitId)
  return wait?.outcome?.failure != null && wait.claimedBy?.runId === run_id && dispatch?.runId !== run_id
}

function settled(state: ThreadState, event: Of<'tool.settled/1'>): ThreadState {
  const { call_id, part, number, reason } = event.data
  const settlement = known(event, event.data.settlement)
  const waitId = waitReference(part)
  const wait = waitId === undefined ? undefined : (state.closedWaits.get(waitId) ?? state.waits.get(waitId))
  if (waitId !== undefined && !wait?.outcome) throw unfoldable(event, 'it refers to a wait without an outcome.')
  const next = withCall(state, event, call_id, (call) => {
    if (call.settled) throw unfoldable(event, 'the call is settled twice.')
    return { ...call, settled: { settlement, part, wait, number, reason, time: event.time } }
  })
  return countRetries(next, settlement, part, waitId !== undefined)
}

function countRetries(state: ThreadState, settlement: string, part: Payload, byReference: boolean): ThreadState {
  if (!state.run || (settlement !== 'retried' && state.run.retries.size === 0) || byReference) return state
  const value = part.value
  const tool = isJsonObject(value) && typeof value['tool_name'] === 'string' ? value['tool_name'] : ''
  const retries = new Map(state.run.retries)
  if (settlement === 'retried') retries.set(tool, (retries.get(tool) ?? 0) + 1)
  else retries.delete(tool)
  return { ...state, run: { ...state.run, retries } }
}

const REFERENCE = new TextEncoder().encode('{"$completed":"')

/** The wait a part `{"$completed": id}` refers to. Looks at the first bytes only: results can be large. */
function waitReference(part: Payload): string | undefined {
  if (part.kept) return undefined
  const bytes = part.bytes
  for (let i = 0; i < REFERENCE.length; i++) if (bytes[i] !== REFERENCE[i]) return undefined
  const simple = SIMPLE_ID.exec(latin1(bytes, REFERENCE.length))
  if (simple) return simple[1]
  const value = part.value
  return isJsonObject(value) && typeof value['$completed'] === 'string' ? value['$completed'] : undefined
}

/** What stands behind the mark of nearly every reference: an id without anything to escape, and the end. */
const SIMPLE_ID = /^([\w.:-]+)"\}$/
const LONGEST_ID = 256

const latin1 = (bytes: Uint8Array, from: number): string =>
  bytes.length > LONGEST_ID ? '' : Buffer.from(bytes.buffer, bytes.byteOffset + from, bytes.length - from).toString('latin1')
