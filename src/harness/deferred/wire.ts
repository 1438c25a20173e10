import { isJsonObject, type JsonObject } from '../../base/index.ts'
import { wrongType } from './detach.ts'
import { outcomeOf, toolApproved, toolDenied, toolFailed, toolReturn } from './outcomes.ts'
import type { DeferredCall, DeferredRequest, DeferredRequestsFields, DeferredResultsFields } from './types.ts'

// The wire form of a batch and of its answers: snake_case JSON. Only the shape is checked here; free values inside are taken as they are.

export function objectOf(value: unknown, path: string): JsonObject {
  if (!isJsonObject(value)) throw wrongType(path, 'an object')
  return value
}

function listOf(value: unknown, path: string): unknown[] {
  if (!Array.isArray(value)) throw wrongType(path, 'a list')
  return value
}

export const requestsWire = ({ calls, approvals, metadata }: Required<DeferredRequestsFields>): JsonObject => ({
  calls: calls.map(requestWire),
  approvals: approvals.map(requestWire),
  metadata: metadata as JsonObject,
})

export function requestsOfWire(value: unknown): DeferredRequestsFields {
  const { calls = [], approvals = [], metadata = {} } = objectOf(value, 'requests')
  return {
    calls: listOf(calls, 'calls').map(requestOfWire),
    approvals: listOf(approvals, 'approvals').map(requestOfWire),
    metadata: objectOf(metadata, 'metadata'),
  }
}

export const resultsWire = ({ calls, approvals, metadata }: Required<DeferredResultsFields>): JsonObject => ({
  calls: mapped(calls, callWire) as JsonObject,
  approvals: mapped(approvals, decisionWire) as JsonObject,
  metadata: metadata as JsonObject,
})

export function resultsOfWire(value: unknown): DeferredResultsFields {
  const { calls = {}, approvals = {}, metadata = {} } = objectOf(value, 'results')
  return {
    calls: mapped(objectOf(calls, 'calls'), callOfWire),
    approvals: mapped(objectOf(approvals, 'approvals'), decisionOfWire),
    metadata: objectOf(metadata, 'metadata'),
  }
}

const mapped = <T>(from: Readonly<Record<string, unknown>>, map: (value: unknown) => T): Record<string, T> =>
  Object.fromEntries(Object.entries(from).map(([key, value]) => [key, map(value)]))

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
  if ('tool_failed' in wire) return toolFailed(objectOf(wire['tool_failed'], 'calls')['message'] as string)
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
