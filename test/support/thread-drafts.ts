import { type JsonValue, Payload, sha256Hex } from '../../src/base/index.ts'
import type { BatchItem, EventDraft, Owner, ThreadKey } from '../../src/events/index.ts'
import {
  requestMessage,
  responseMessage,
  textPart,
  toolCallPart,
  toolReturnPart,
  userPromptPart,
} from '../../src/messages/index.ts'
import type { Settlement } from '../../src/projections/index.ts'

// Events with everything a test does not care about filled in.

const AT = '2026-01-01T00:00:00Z'
const source = { cluster: 'log', topic: 'results', partition: 0, offset: 1, record_time: null, api: null, command_id: null }

export type Call = ReturnType<typeof toolCallPart>

export const json = (value: unknown): Payload => Payload.of(value as JsonValue)

const prompt = (content: string) => requestMessage({ parts: [userPromptPart({ content, timestamp: AT })], timestamp: AT })

export const opened = (key: ThreadKey, kind: 'new' | 'imported' | 'forked', state: unknown): EventDraft => ({
  type: 'thread.opened/1',
  data: {
    application_id: key.application,
    user_id: key.user,
    thread_id: key.thread,
    kind: 'harness',
    origin: {
      kind,
      state: state === null ? null : json(state),
      parent: kind === 'forked' ? { stream: sha256Hex('parent'), version: 3, hash: sha256Hex('head') } : null,
    },
  },
})

export const importedState = (thread_id: string, calls: Call[]) => ({
  schema_version: '1',
  thread_id,
  agent_context_state: { entries: { notes: { version: '1', data: { n: 1 } } } },
  refs: [],
  environment_states: {},
  'x.unknown': [1],
  message_history: [prompt('imported'), responseMessage({ parts: [textPart({ content: 'ok' }), ...calls], timestamp: AT })],
})

export const requested = (run_id: string, agent: string, input: JsonValue, command_id: string | null = null): EventDraft => ({
  type: 'run.requested/1',
  data: { run_id, agent, input: input === null ? null : json(input), answers: null, options: json({}), command_id },
})

export const started = (
  run: { runId: string; invocationId: string; agent: string; revision: string },
  owner: Owner,
  trigger: { kind: 'input' | 'batch' | 'recovery'; continuation_ids: string[] } = { kind: 'input', continuation_ids: [] },
): EventDraft => ({
  type: 'run.started/1',
  data: {
    run_id: run.runId,
    invocation_id: run.invocationId,
    attempt: 1,
    owner,
    agent: { name: run.agent, revision: run.revision },
    tool_recovery: 'declared',
    trigger,
  },
})

export const composed = (
  step: number,
  callIds: readonly string[] = [],
  state: 'complete' | 'interrupted' = 'complete',
): EventDraft => {
  const message = { ...prompt('go on'), state }
  const parts = callIds.length > 0 ? callIds.map(($settled) => ({ $settled })) : message.parts
  return { type: 'request.composed/1', data: { step, message: json({ ...message, parts }), state } }
}

export const revised = (index: number): EventDraft => ({
  type: 'history.revised/1',
  data: { why: 'filter', patch: json({ replace: { [index]: prompt('revised') } }) },
})

export const modelFailed = (step: number): EventDraft => ({
  type: 'model.failed/2',
  data: { step, code: 'overloaded', retryable: true, error_type: 'overloaded_error', status: 529, retry_after_ms: null },
})

export const modelRequested = (step: number): EventDraft => ({
  type: 'model.requested/1',
  data: { step, model: 'm', settings_digest: sha256Hex('settings') },
})

export const call = (id: string): Call => toolCallPart({ tool_name: `tool of ${id}`, tool_call_id: id, args: { id } })

export const responded = (step: number, text: string, calls: Call[] = [], replaces_previous = false): EventDraft => ({
  type: 'model.responded/1',
  data: {
    step,
    message: json(responseMessage({ parts: [textPart({ content: text }), ...calls], timestamp: AT })),
    usage: json({ output_tokens: 1 }),
    replaces_previous,
  },
})

export const dispatched = (call_id: string, number: number): EventDraft => ({
  type: 'tool.dispatched/1',
  data: {
    call_id,
    tool: 'tool/local/t',
    arguments_digest: sha256Hex('{}'),
    number,
    idempotency_key: `key of ${call_id}`,
    start_by_ms: 1000,
    changed_proposal: null,
  },
})

/** By reference to the wait that answered the call, if there is one. */
export function settled(call_id: string, settlement: Settlement, number = 0, waitId?: string): EventDraft {
  const outcome = settlement === 'returned' ? 'success' : settlement === 'unknown' ? 'failed' : settlement
  const retry = settlement === 'retried' ? { cause: 'model_retry' as const, attempt: 1, max_retries: 5 } : null
  const part = toolReturnPart({ tool_name: 'tool', content: { number }, tool_call_id: call_id, timestamp: AT, outcome, retry })
  const value = waitId === undefined ? part : { $completed: waitId }
  return { type: 'tool.settled/1', data: { call_id, settlement, part: json(value), number, reason: null } }
}

export const item = (
  callId: string,
  kind: 'external' | 'approval' | 'question',
  continuation_id: string,
  deadline: number | null = null,
): BatchItem => ({
  model_call_id: callId,
  target_call_id: callId,
  tool_name: 'pay',
  tool: 'tool/client/pay',
  arguments: json({ cents: 1 }),
  kind,
  continuation_id,
  proposal_digest: sha256Hex(callId),
  metadata: json({}),
  deadline,
})

/** The two events of a wait that begins: revisions 0 and 1. */
export const waiting = (continuation_id: string, provider = 'payouts', external_id = continuation_id): EventDraft[] => [
  {
    type: 'continuation.suspended/1',
    data: {
      continuation_id,
      provider,
      capability: 'tool.call',
      schema_id: 'schema/1',
      external_id,
      external_id_key: sha256Hex(external_id),
      resume: null,
      grants: null,
      generation: 0,
      deadline: null,
    },
  },
  { type: 'continuation.armed/1', data: { continuation_id, revision: 1 } },
]

/** A value, or without one a failure. */
export function answered(continuation_id: string, revision: number, result_id: string, value?: JsonValue): EventDraft {
  const common = { continuation_id, revision, result_id, digest: sha256Hex(result_id), source }
  return value === undefined
    ? { type: 'continuation.failed/1', data: { ...common, failure: { code: 'declined', retryable: false } } }
    : { type: 'continuation.completed/1', data: { ...common, value: json(value) } }
}

export const failed = (run_id: string): EventDraft => ({
  type: 'run.failed/1',
  data: { run_id, failure: { code: 'tool_threw', message: 'A tool threw.', retryable: false }, details: json({}) },
})
