import type { JsonValue } from '../base/index.ts'
import { requestPart } from './request-parts.ts'
import { responsePart } from './response-parts.ts'
import {
  byKind,
  constant,
  invalid,
  jsonObject,
  list,
  object,
  oneOf,
  optional,
  orNull,
  type Reader,
  required,
  string,
  timestamp,
  timestampOrNow,
  type Where,
} from './shape.ts'
import { readTimestamp } from './timestamp.ts'
import type {
  FailedAttempt,
  FinishReason,
  Message,
  RequestMessage,
  ResponseMessage,
  ResponseState,
  WorkspaceRef,
} from './types.ts'
import { emptyUsage, usage } from './usage.ts'

/** ISO 8601 with days at most, or seconds as a number. */
const duration: Reader<string> = (value, at) => {
  if (typeof value === 'number') return `PT${value}S`
  if (typeof value !== 'string' || !/^-?P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?$/.test(value))
    throw invalid(at, 'an ISO 8601 duration')
  return value
}

const failedAttempt = object<FailedAttempt>({
  model_name: required(string),
  provider_name: orNull(string),
  outcome: required(oneOf('error', 'rejected')),
  error: orNull(string),
  timestamp: required(timestamp),
  duration: required(duration),
  usage: orNull(usage),
})

const request = object<RequestMessage>({
  parts: required(list(requestPart)),
  timestamp: orNull(timestamp),
  instructions: orNull(string),
  kind: constant('request'),
  run_id: orNull(string),
  conversation_id: orNull(string),
  metadata: orNull(jsonObject),
  state: optional(oneOf('complete', 'interrupted'), 'complete'),
})

const response = object<ResponseMessage>({
  parts: required(list(responsePart)),
  usage: { read: usage, otherwise: emptyUsage },
  model_name: orNull(string),
  timestamp: timestampOrNow,
  kind: constant('response'),
  provider_name: orNull(string),
  provider_url: orNull(string),
  provider_details: orNull(jsonObject, { alias: 'vendor_details' }),
  provider_response_id: orNull(string, { alias: 'vendor_id' }),
  finish_reason: orNull(oneOf<FinishReason>('stop', 'length', 'content_filter', 'tool_call', 'error')),
  run_id: orNull(string),
  conversation_id: orNull(string),
  metadata: orNull(jsonObject),
  workspace_ref: orNull(object<WorkspaceRef>({ provider: required(string), id: required(string) })),
  history_digest: orNull(string),
  failed_attempts: orNull(list(failedAttempt)),
  state: optional(oneOf<ResponseState>('complete', 'incomplete', 'suspended', 'interrupted'), 'complete'),
})

const message = byKind<Message>('kind', { request, response })
const messages = list(message)

const where = (o: { now: string; path?: string }): Where => {
  const at = { path: o.path ?? '$', now: o.now }
  const now = readTimestamp(o.now)
  if (now === undefined) throw invalid({ ...at, path: 'now' }, 'an ISO 8601 timestamp', 'The time of reading is not a timestamp.')
  return { ...at, now }
}

/**
 * Reads a message history strictly: wrong types, unknown kinds and parts on the wrong side reject it as a whole. Unknown keys of messages
 * and parts are dropped, defaults filled in, older forms rewritten. The result has every key in written order, so `JSON.stringify`
 * gives the wire text. Free-form values inside (arguments, tool data, metadata) are shared with `value`.
 * @param o.now ISO 8601 time for parts and responses without one. @param o.path where the list stands, for errors (`$`)
 * @throws ThreadlogError `message_history_invalid` with the path
 */
export const parseMessages = (value: JsonValue, o: { now: string; path?: string }): Message[] => messages(value, where(o))

/** {@link parseMessages} for one message. */
export const parseMessage = (value: JsonValue, o: { now: string; path?: string }): Message => message(value, where(o))

/**
 * A message read back from the log, whose canonical JSON has sorted keys, in written order again. Keys of free-form values inside stay
 * sorted: their first order is not recorded.
 */
export const toWire = (value: JsonValue): Message => message(value, { path: '$', now: '1970-01-01T00:00:00Z' })
