import {
  canonicalJson,
  isJsonObject,
  isThreadlogError,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  toJson,
} from '../../base/index.ts'
import { answerJson, validateAnswer, validateQuestionRequest } from '../../continuations/index.ts'
import { type HarnessState, parseArgs, toolCalls } from '../../messages/index.ts'
import { QUESTION_TOOL } from '../agent.ts'
import { runError } from '../run-errors.ts'
import { lowered } from './lower.ts'
import { outcomeOf, toolReturn } from './outcomes.ts'
import { latestResponse, remaining } from './remaining.ts'
import type { DeferredCall, DeferredRequest } from './types.ts'
import { DeferredToolResults, DeferredToolResume } from './values.ts'

const MAX_REQUESTS = 128
const MAX_METADATA_BYTES = 65_536
const MAX_IDENTITY = 1024

/**
 * Checks what a host resumes with, before anything runs: the first fault in the order of state spec §3.3 is thrown.
 * @returns the batch with its values in their final form; undefined when nothing of it is left to do
 * @throws ThreadlogError of kind `RunError`, codes `deferred_*`
 */
export function preflight(state: HarnessState | undefined, resume: unknown): DeferredToolResume | undefined {
  if (!(resume instanceof DeferredToolResume))
    throw runError('deferred_resume_invalid', 'This is nothing to resume with.', { expected: 'a DeferredToolResume' })
  if (!state) throw runError('deferred_state_required', 'Answers need the state they are for.', { path: 'previousState' })
  const history = state.messageHistory
  const batch = resume.recovery ? remaining(resume, history) : resume
  if (!batch) return undefined
  checkIds(batch)
  checkCalls(batch)
  checkMetadata(batch, batch.requests.metadata)
  checkCoverage(batch)
  for (const decision of Object.values(batch.results.approvals)) checkDecision(decision)
  const results = finalResults(batch)
  checkMetadata(batch, batch.results.metadata)
  checkHistory(batch, history)
  return new DeferredToolResume({ requests: batch.requests, results, recovery: batch.recovery })
}

const invalid = (message: string) => runError('deferred_results_invalid', message)
const targetId = ({ targetCall }: DeferredRequest): string => targetCall.toolCallId

/** Rows 4 to 7: ids unique within and across categories; some, and not too many. */
function checkIds({ requests }: DeferredToolResume): void {
  for (const category of ['calls', 'approvals'] as const) {
    const ids = new Set<string>()
    for (const request of requests[category]) {
      const id = request?.targetCall?.toolCallId
      if (typeof id !== 'string' || id === '' || ids.has(id))
        throw runError('deferred_request_duplicate', 'A request has no id of its own.', { details: { category } })
      ids.add(id)
    }
  }
  const calls = new Set(requests.calls.map(targetId))
  if (requests.approvals.some((request) => calls.has(targetId(request))))
    throw runError('deferred_request_category_overlap', 'One id is asked for in both categories.')
  const count = requests.calls.length + requests.approvals.length
  if (count === 0) throw runError('deferred_requests_empty', 'Nothing is asked for.')
  if (count > MAX_REQUESTS)
    throw runError('deferred_requests_too_large', 'Too much is asked for at once.', {
      expected: `at most ${MAX_REQUESTS} requests`,
    })
}

/** Rows 7a and 7b. */
function checkCalls({ requests }: DeferredToolResume): void {
  const all = [...requests.calls, ...requests.approvals]
  const model = new Set<string>()
  for (const { modelCall, targetCall, identity } of all) {
    const id = modelCall.toolCallId
    if (typeof id !== 'string' || id === '' || model.has(id))
      throw runError('deferred_request_duplicate', 'A model call has no id of its own.')
    model.add(id)
    const named = typeof identity === 'string' && identity !== '' && [...identity].length <= MAX_IDENTITY
    if (!named || !isCall(modelCall) || !isCall(targetCall) || (id === targetCall.toolCallId && !sameCall(modelCall, targetCall)))
      throw runError('deferred_request_invalid', 'A request is none.', { expected: 'names, JSON arguments and an identity' })
  }
  for (const request of all)
    if (request.modelCall.toolCallId !== targetId(request) && model.has(targetId(request)))
      throw runError('deferred_request_duplicate', 'A forwarded call has the id of another one.')
}

const isCall = ({ toolName, args }: DeferredCall): boolean => typeof toolName === 'string' && toolName !== '' && isJson(args)

const sameCall = (a: DeferredCall, b: DeferredCall): boolean => a.toolName === b.toolName && jsonEqual(argsOf(a), argsOf(b))

/** Parsed arguments; text that is no object counts as itself. */
function argsOf({ args }: Pick<DeferredCall, 'args'>): JsonValue {
  const parsed = parseArgs({ args: args as string | JsonObject | null })
  return parsed.ok ? parsed.value : { $unparsed: args as JsonValue }
}

function isJson(value: unknown): boolean {
  try {
    toJson(value ?? null)
    return true
  } catch (error) {
    if (isThreadlogError(error, 'json_invalid')) return false
    throw error
  }
}

/** Rows 8 and 12. */
function checkMetadata({ requests }: DeferredToolResume, metadata: Readonly<Record<string, unknown>>): void {
  const ids = new Set([...requests.calls, ...requests.approvals].map(targetId))
  const fits =
    Object.entries(metadata).every(([id, value]) => ids.has(id) && isJsonObject(value) && isJson(value)) &&
    Buffer.byteLength(canonicalJson(metadata as JsonObject)) <= MAX_METADATA_BYTES
  if (!fits)
    throw runError('deferred_metadata_invalid', 'The metadata cannot be kept.', {
      expected: `JSON objects by id of a request, ${MAX_METADATA_BYTES} bytes in all`,
    })
}

/** Row 9. */
function checkCoverage({ requests, results }: DeferredToolResume): void {
  for (const category of ['calls', 'approvals'] as const) {
    const asked = requests[category].map(targetId)
    const given = Object.keys(results[category])
    if (asked.length !== given.length || asked.some((id) => !Object.hasOwn(results[category], id)))
      throw runError('deferred_results_incomplete', 'The results are not those of the requests.', { path: `results.${category}` })
  }
}

/** Row 10. */
function checkDecision(decision: unknown): void {
  const is = outcomeOf(decision)?.is
  if (typeof decision !== 'boolean' && is !== 'approved' && is !== 'denied')
    throw runError('deferred_approval_invalid', 'A decision is none.', { expected: 'true, false, toolApproved or toolDenied' })
}

/** Row 11, in the order of the requests: calls, then overrides. */
function finalResults({ requests, results }: DeferredToolResume): DeferredToolResults {
  const calls = Object.fromEntries(
    requests.calls.map((request) => [targetId(request), finalValue(request, results.calls[targetId(request)])]),
  )
  for (const decision of Object.values(results.approvals)) {
    const outcome = outcomeOf(decision)
    if (outcome?.is === 'approved' && outcome.overrideArgs !== undefined)
      if (!isJsonObject(outcome.overrideArgs) || !isJson(outcome.overrideArgs))
        throw invalid('Override arguments are no JSON object.')
  }
  return new DeferredToolResults({ ...results, calls })
}

function finalValue({ targetCall }: DeferredRequest, value: unknown): unknown {
  const outcome = outcomeOf(value)
  if (outcome?.is === 'tool-failed') return value
  const wrapper = outcome?.is === 'tool-return' ? outcome : undefined
  const plain = wrapper ? wrapper.returnValue : value
  if (!isJson(plain) || (wrapper?.metadata !== undefined && !isJson(wrapper.metadata))) throw invalid('A result is not JSON.')
  const final = targetCall.toolName === QUESTION_TOOL ? normalisedAnswer(targetCall, plain as JsonValue) : plain
  if (!wrapper) return final
  return lowered(toolReturn({ ...wrapper, returnValue: final }), invalid)
}

function normalisedAnswer(call: DeferredCall, value: JsonValue): JsonValue {
  const args = parseArgs({ args: call.args as string | JsonObject | null })
  try {
    return answerJson(validateAnswer(validateQuestionRequest(args.ok ? args.value : null), value))
  } catch (error) {
    if (!isThreadlogError(error)) throw error
    throw runError('deferred_results_invalid', 'A question is not answered by that.', {
      ...(error.path === undefined ? {} : { path: error.path }),
      ...(error.expected === undefined ? {} : { expected: error.expected }),
    })
  }
}

/** Rows 13 to 18. */
function checkHistory({ requests }: DeferredToolResume, history: ReturnType<HarnessState['messageHistory']['slice']>): void {
  const { response, answered } = latestResponse(history)
  const calls = new Map<string, DeferredCall>()
  for (const { tool_call_id: id, tool_name: toolName, args } of toolCalls(response)) {
    if (calls.has(id)) throw runError('deferred_request_duplicate', 'The latest response repeats an id.')
    calls.set(id, { toolCallId: id, toolName, args })
  }
  for (const { modelCall } of [...requests.calls, ...requests.approvals]) {
    const details = { tool_call_id: modelCall.toolCallId }
    const call = calls.get(modelCall.toolCallId)
    if (!call) throw runError('deferred_request_missing', 'The latest response makes no such call.', { details })
    if (answered.has(modelCall.toolCallId))
      throw runError('deferred_request_completed', 'The call has been answered.', { details })
    if (!sameCall(call, modelCall)) throw runError('deferred_request_mismatch', 'The call was made in another way.', { details })
  }
}
