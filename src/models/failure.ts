import { isA, isThreadlogError } from '../base/index.ts'

/** Why a model request failed, without a word of what the provider said: its texts may quote prompts. */
export interface Failure {
  code: 'model_request_failed' | 'model_stream_ended' | 'model_response_invalid'
  /** True for failures of transport and capacity: the same request may succeed later. */
  retryable: boolean
  /** What the provider asked for in `retry-after`, in whole milliseconds, at most a day: timers and events hold no more. */
  retryAfterMs?: number
  details: { error_type: string; status?: number }
}

/** A stream that broke the rules of its protocol. `reason` is one of ours, never the provider's text. */
export class StreamFault extends Error {
  readonly reason: string
  constructor(reason: string) {
    super(`The model stream is not valid: ${reason}.`)
    this.reason = reason
  }
}

export const brokenStream = (reason: string): Failure => ({
  code: 'model_response_invalid',
  retryable: false,
  details: { error_type: reason },
})
export const endedStream = (): Failure => ({ code: 'model_stream_ended', retryable: true, details: { error_type: 'no_finish' } })

const NETWORK = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])
const RETRYABLE_TYPES = new Set([
  'overloaded_error',
  'rate_limit_error',
  'api_error',
  'server_error',
  'timeout_error',
  'TimeoutError',
])

/**
 * Describes whatever a model threw or put into an `error` part, by shape: `statusCode`, `isRetryable` and `responseHeaders` as on the
 * AI SDK's APICallError, `code` as on Node's errors.
 * @param now epoch milliseconds, for a `retry-after` that is a date
 */
export function describeFailure(error: unknown, now: number): Failure {
  if (isA(error, StreamFault)) return brokenStream(error.reason)
  if (isThreadlogError(error))
    return { code: 'model_request_failed', retryable: error.disposition === 'retry', details: { error_type: error.code } }
  const chain = causes(error)
  const statusCode = chain.map((e) => e.statusCode ?? e.status).find((status) => Number.isInteger(status)) as number | undefined
  const flagged = chain.map((e) => e.isRetryable).find((flag) => typeof flag === 'boolean') as boolean | undefined
  const headers = chain.map((e) => e.responseHeaders ?? e.headers).find((h) => typeof h === 'object' && h !== null)
  const retryAfterMs = retryAfter(headers, now)
  return {
    code: 'model_request_failed',
    retryable: flagged ?? (statusCode === undefined ? chain.some(isTransport) : isRetryableStatus(statusCode)),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    details: { error_type: typeOf(chain[0]), ...(statusCode === undefined ? {} : { status: statusCode }) },
  }
}

type Shape = Record<string, unknown>

const READ = ['name', 'message', 'type', 'code', 'statusCode', 'status', 'isRetryable', 'responseHeaders', 'headers'] as const

/** The error and what caused it: `cause`, `lastError` (the AI SDK's retry error), `error` (provider payloads). At most five deep. */
function causes(error: unknown): Shape[] {
  const chain: Shape[] = []
  for (let e = error; typeof e === 'object' && e !== null && chain.length < 5; ) {
    const given = e
    chain.push(Object.fromEntries(READ.map((name) => [name, attempt(() => (given as Shape)[name])])))
    e = attempt(() => (given as Shape).lastError ?? (given as Shape).cause ?? (given as Shape).error)
  }
  return chain
}

/** Undefined where looking throws: an error may be anything, its getters included. */
function attempt(look: () => unknown): unknown {
  try {
    return look()
  } catch {
    return undefined
  }
}

const isTransport = (e: Shape): boolean =>
  NETWORK.has(e.code as string) ||
  RETRYABLE_TYPES.has(e.type as string) ||
  e.name === 'TimeoutError' ||
  (e.name === 'TypeError' && (e.message === 'fetch failed' || e.message === 'terminated'))

const isRetryableStatus = (status: number): boolean => status === 408 || status === 409 || status === 429 || status >= 500

/** A class or type name; anything that does not look like one could be payload. */
function typeOf(error: Shape | undefined): string {
  for (const name of [error?.name, error?.type]) if (typeof name === 'string' && /^[A-Za-z_][\w.]{0,63}$/.test(name)) return name
  return 'Error'
}

function retryAfter(headers: unknown, now: number): number | undefined {
  if (headers === undefined) return undefined
  const get = (name: string): unknown =>
    attempt(() => (typeof (headers as Headers).get === 'function' ? (headers as Headers).get(name) : (headers as Shape)[name]))
  const asked = get('retry-after-ms')
  const ms = typeof asked === 'string' && asked !== '' ? Number(asked) : Number.NaN
  if (Number.isFinite(ms) && ms >= 0) return usable(ms)
  const value = get('retry-after')
  if (typeof value !== 'string' || value === '') return undefined
  const wait = Number.isFinite(Number(value)) ? Number(value) * 1000 : Date.parse(value) - now
  return Number.isFinite(wait) ? usable(wait) : undefined
}

const DAY_MS = 86_400_000

const usable = (ms: number): number => Math.ceil(Math.min(Math.max(0, ms), DAY_MS))
