import { isJsonObject, type JsonObject, reject } from '../../base/index.ts'
import { type Outcome, outcomeOf, toolApproved, toolDenied, toolFailed, toolReturn } from './outcomes.ts'

// The value a host resumes with (state spec §3.2): what was asked, what came of it. Built from live values, checked by `preflight`.

/** A call as the model made it. `args` as in the message: text, an object, or nothing. */
export interface DeferredCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly args: unknown
}

/**
 * A call waiting for an answer. For an ordinary call both calls are equal; a proxy tool may forward to another one, and then results are keyed by
 * the id of the target. `identity` is the stable identity of the target tool.
 */
export interface DeferredRequest {
  readonly modelCall: DeferredCall
  readonly targetCall: DeferredCall
  readonly identity: string
}

/** A plain value, a {@link toolReturn} or a {@link toolFailed}. */
export type CallValue = unknown
/** A boolean, a {@link toolApproved} or a {@link toolDenied}. */
export type ApprovalDecision = unknown

export interface DeferredResultsFields {
  calls?: Readonly<Record<string, CallValue>>
  approvals?: Readonly<Record<string, ApprovalDecision>>
  metadata?: Readonly<Record<string, unknown>>
}

/** What came of each request, by id of its target call. */
export class DeferredToolResults {
  readonly calls: Readonly<Record<string, CallValue>>
  readonly approvals: Readonly<Record<string, ApprovalDecision>>
  readonly metadata: Readonly<Record<string, unknown>>

  /** @throws ThreadlogError `argument_type_invalid` for values that cannot be copied */
  constructor(o: DeferredResultsFields = {}) {
    this.calls = copied(o.calls ?? {}, 'calls')
    this.approvals = copied(o.approvals ?? {}, 'approvals')
    this.metadata = copied(o.metadata ?? {}, 'metadata')
    Object.freeze(this)
  }

  toJSON(): JsonObject {
    return {
      calls: wired(this.calls, callWire),
      approvals: wired(this.approvals, decisionWire),
      metadata: this.metadata as JsonObject,
    }
  }

  /** Reads the wire form: `{"value"}`, `{"tool_return"}`, `{"tool_failed"}`; `true`, `false`, `{"approved"}`, `{"denied"}`. */
  static parse(value: unknown): DeferredToolResults {
    const { calls = {}, approvals = {}, metadata = {} } = objectOf(value, 'results') as Record<string, never>
    return new DeferredToolResults({
      calls: mapped(objectOf(calls, 'calls'), callOfWire),
      approvals: mapped(objectOf(approvals, 'approvals'), decisionOfWire),
      metadata,
    })
  }
}

/** What a suspended run waits for. */
export class DeferredRequests {
  readonly calls: readonly DeferredRequest[]
  readonly approvals: readonly DeferredRequest[]
  /** By id of the target call: what the tool or the harness attached. Never proof of anything. */
  readonly metadata: Readonly<Record<string, unknown>>

  constructor(o: {
    calls?: readonly DeferredRequest[]
    approvals?: readonly DeferredRequest[]
    metadata?: Record<string, unknown>
  }) {
    this.calls = Object.freeze(copy(o.calls ?? [], 'calls'))
    this.approvals = Object.freeze(copy(o.approvals ?? [], 'approvals'))
    this.metadata = copied(o.metadata ?? {}, 'metadata')
    Object.freeze(this)
  }

  /**
   * Results for these requests.
   * @param o.approveAll approves what `approvals` does not decide; it never answers a call, and so no question
   * @throws ThreadlogError `argument_value_invalid` for an id that was not asked for
   */
  buildResults(o: DeferredResultsFields & { approveAll?: boolean } = {}): DeferredToolResults {
    const { approveAll = false, calls = {}, approvals = {}, metadata = {} } = o
    const asked = (requests: readonly DeferredRequest[]) => new Set(requests.map(({ targetCall }) => targetCall.toolCallId))
    checkKnown(Object.keys(calls), asked(this.calls), 'calls')
    checkKnown(Object.keys(approvals), asked(this.approvals), 'approvals')
    const all = approveAll ? Object.fromEntries([...asked(this.approvals)].map((id) => [id, toolApproved()])) : {}
    return new DeferredToolResults({ calls, approvals: { ...all, ...approvals }, metadata })
  }

  toJSON(): JsonObject {
    return {
      calls: this.calls.map(requestWire),
      approvals: this.approvals.map(requestWire),
      metadata: this.metadata as JsonObject,
    }
  }

  static parse(value: unknown): DeferredRequests {
    const { calls = [], approvals = [], metadata = {} } = objectOf(value, 'requests') as Record<string, never>
    return new DeferredRequests({
      calls: (calls as unknown[]).map(requestOfWire),
      approvals: (approvals as unknown[]).map(requestOfWire),
      metadata,
    })
  }
}

/** Answers to a batch, as a host gives them to the next run. `recovery`: what an interrupted run had accepted before. */
export class DeferredToolResume {
  readonly requests: DeferredRequests
  readonly results: DeferredToolResults
  readonly recovery: boolean

  /** @throws ThreadlogError `argument_type_invalid` */
  constructor(o: { requests: DeferredRequests; results: DeferredToolResults; recovery?: boolean }) {
    if (!(o.requests instanceof DeferredRequests)) throw wrongType('requests', 'DeferredRequests')
    if (!(o.results instanceof DeferredToolResults)) throw wrongType('results', 'DeferredToolResults')
    this.requests = o.requests
    this.results = o.results
    this.recovery = o.recovery ?? false
    Object.freeze(this)
  }

  toJSON(): JsonObject {
    return { recovery: this.recovery, requests: this.requests.toJSON(), results: this.results.toJSON() }
  }

  /** Reads the wire form. @throws ThreadlogError `argument_type_invalid` */
  static parse(value: unknown): DeferredToolResume {
    const { requests, results, recovery = false } = objectOf(value, 'deferredResume') as Record<string, unknown>
    return new DeferredToolResume({
      requests: DeferredRequests.parse(requests),
      results: DeferredToolResults.parse(results),
      recovery: recovery === true,
    })
  }
}

const wrongType = (path: string, expected: string) =>
  reject('argument_type_invalid', `The argument ${path} is not usable.`, { path, expected })

function objectOf(value: unknown, path: string): JsonObject {
  if (!isJsonObject(value)) throw wrongType(path, 'an object')
  return value
}

function checkKnown(ids: readonly string[], known: ReadonlySet<string>, path: string): void {
  if (ids.some((id) => !known.has(id)))
    throw reject('argument_value_invalid', 'An id was not asked for.', { path, expected: 'ids of the requests' })
}

function copy<T>(value: T, path: string): T {
  try {
    return structuredClone(value)
  } catch {
    throw wrongType(path, 'values that can be copied')
  }
}

const mapped = <T>(from: JsonObject, map: (value: unknown) => T): Record<string, T> =>
  Object.fromEntries(Object.entries(from).map(([key, value]) => [key, map(value)]))

/** Detached copies; outcomes are kept apart from data. */
const copied = (values: Readonly<Record<string, unknown>>, path: string): Readonly<Record<string, unknown>> =>
  Object.freeze(Object.fromEntries(Object.entries(values).map(([key, value]) => [key, copyOutcome(value, path)])))

function copyOutcome(value: unknown, path: string): unknown {
  const outcome = outcomeOf(value)
  if (!outcome) return copy(value, path)
  const { is: _, ...fields } = outcome
  return rebuilt(outcome, copy(fields, path) as never)
}

function rebuilt(outcome: Outcome, fields: never): unknown {
  switch (outcome.is) {
    case 'tool-return':
      return toolReturn(fields)
    case 'tool-failed':
      return toolFailed(outcome.message)
    case 'approved':
      return toolApproved(fields)
    case 'denied':
      return toolDenied(fields)
    default:
      throw wrongType('results', 'a value, toolReturn or toolFailed; a boolean, toolApproved or toolDenied')
  }
}

const wired = (values: Readonly<Record<string, unknown>>, write: (value: unknown) => unknown): JsonObject =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, write(value)])) as JsonObject

function callWire(value: unknown): unknown {
  const outcome = outcomeOf(value)
  if (outcome?.is === 'tool-failed') return { tool_failed: { message: outcome.message } }
  if (outcome?.is !== 'tool-return') return { value }
  const { returnValue, content, metadata } = outcome
  return {
    tool_return: {
      return_value: returnValue,
      ...(content === undefined ? {} : { content }),
      ...(metadata === undefined ? {} : { metadata }),
    },
  }
}

function callOfWire(value: unknown): unknown {
  const wire = objectOf(value, 'calls')
  if ('value' in wire) return wire['value']
  if ('tool_failed' in wire) return toolFailed((wire['tool_failed'] as { message: string }).message)
  const { return_value: returnValue, content, metadata } = objectOf(wire['tool_return'], 'calls')
  return toolReturn({
    returnValue,
    ...(content === undefined || content === null ? {} : { content }),
    ...(metadata === undefined || metadata === null ? {} : { metadata }),
  })
}

function decisionWire(value: unknown): unknown {
  const outcome = outcomeOf(value)
  if (outcome?.is === 'approved')
    return { approved: outcome.overrideArgs === undefined ? {} : { override_args: outcome.overrideArgs } }
  if (outcome?.is === 'denied') return { denied: outcome.message === undefined ? {} : { message: outcome.message } }
  return value
}

function decisionOfWire(value: unknown): unknown {
  if (!isJsonObject(value)) return value
  if ('approved' in value) {
    const { override_args: overrideArgs } = objectOf(value['approved'], 'approvals')
    return toolApproved(overrideArgs === undefined || overrideArgs === null ? {} : { overrideArgs })
  }
  if ('denied' in value) {
    const { message } = objectOf(value['denied'], 'approvals')
    return toolDenied(typeof message === 'string' ? { message } : {})
  }
  return value
}

function requestWire({ modelCall, targetCall, identity }: DeferredRequest): JsonObject {
  const call = ({ toolCallId: tool_call_id, toolName: tool_name, args }: DeferredCall) => ({ tool_call_id, tool_name, args })
  const forwarded = modelCall.toolCallId !== targetCall.toolCallId || modelCall.toolName !== targetCall.toolName
  return { ...call(modelCall), identity, ...(forwarded ? { target: call(targetCall) } : {}) } as JsonObject
}

function requestOfWire(value: unknown): DeferredRequest {
  const { identity, target, ...own } = objectOf(value, 'requests')
  const call = (wire: JsonObject): DeferredCall => ({
    toolCallId: wire['tool_call_id'] as string,
    toolName: wire['tool_name'] as string,
    args: wire['args'],
  })
  const modelCall = call(own)
  return { modelCall, targetCall: isJsonObject(target) ? call(target) : modelCall, identity: identity as string }
}
