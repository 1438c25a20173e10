import { answeredCallIds, type Message, type ResponseMessage, toolCalls } from '../../messages/index.ts'
import { runError } from '../run-errors.ts'
import type { DeferredRequest } from './types.ts'
import { DeferredRequests, DeferredToolResults, DeferredToolResume } from './values.ts'

/** The latest response and the ids answered after it. @throws ThreadlogError `deferred_request_missing` for a history without one */
export function latestResponse(history: readonly Message[]): { response: ResponseMessage; answered: ReadonlySet<string> } {
  const at = history.findLastIndex((message) => message.kind === 'response')
  if (at < 0) throw runError('deferred_request_missing', 'The history holds no response.')
  return { response: history[at] as ResponseMessage, answered: answeredCallIds(history.slice(at + 1)) }
}

/**
 * The part of a batch that is still open: the calls of the latest response that nothing answers yet. Undefined when nothing is left, be it
 * answered or superseded by a later response (state spec §3.6). Only ids are looked at.
 * @throws ThreadlogError `deferred_request_missing`; `deferred_results_incomplete` when an open request has no result
 */
export function remaining(resume: DeferredToolResume, history: readonly Message[]): DeferredToolResume | undefined {
  const { response, answered } = latestResponse(history)
  const open = new Set(
    toolCalls(response)
      .map((call) => call.tool_call_id)
      .filter((id) => !answered.has(id)),
  )
  const { requests, results, recovery } = resume
  // What is no request at all is left out: it is nobody's call.
  const isOpen = (request: DeferredRequest) => open.has(request?.modelCall?.toolCallId)
  const calls = requests.calls.filter(isOpen)
  const approvals = requests.approvals.filter(isOpen)
  if (calls.length + approvals.length === 0) return undefined
  const ids = new Set([...calls, ...approvals].map(({ targetCall }) => targetCall.toolCallId))
  const kept = (from: Readonly<Record<string, unknown>>) => Object.fromEntries(Object.entries(from).filter(([id]) => ids.has(id)))
  return new DeferredToolResume({
    requests: new DeferredRequests({ calls, approvals, metadata: kept(requests.metadata) }),
    results: new DeferredToolResults({
      calls: resultsOf(calls, results.calls),
      approvals: resultsOf(approvals, results.approvals),
      metadata: kept(results.metadata),
    }),
    recovery,
  })
}

function resultsOf(requests: readonly DeferredRequest[], results: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const kept = requests.map(({ targetCall: { toolCallId: id } }) => {
    if (!Object.hasOwn(results, id))
      throw runError('deferred_results_incomplete', 'An open request has no result.', { details: { tool_call_id: id } })
    return [id, results[id]] as const
  })
  return Object.fromEntries(kept)
}
