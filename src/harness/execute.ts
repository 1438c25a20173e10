import { type Clock, isThreadlogError, type JsonValue, MAX_TIMER_MS, Payload, toJson } from '../base/index.ts'
import { INLINE_PAYLOAD } from '../events/index.ts'
import { PAYLOAD_LIMIT } from './drafts.ts'
import { errorName } from './error-name.ts'
import type { Start } from './plan-calls.ts'

/** What became of one dispatched call. */
export type Executed =
  /** `bytes` is what its event takes of a commit. */
  | { is: 'returned'; content: JsonValue; bytes: number }
  | { is: 'failed'; content: JsonValue }
  /** It never began: the permission to start had run out (R20). */
  | { is: 'missed' }
  | { is: 'threw'; error: unknown; errorName: string }

export interface Execution {
  start: Start
  clock: Clock
  /** Monotonic milliseconds before the dispatch was sent, and how long after it the effect may start. */
  sentAt: number
  startByMs: number
  signal: AbortSignal
  deps: unknown
}

/** Runs one tool body. Never rejects: whatever the body does becomes an outcome. */
export async function execute(e: Execution): Promise<Executed> {
  const { tool, args, key: idempotencyKey, callId, approved } = e.start
  const timeout = new AbortController()
  const timer =
    tool.timeoutMs === undefined ? undefined : setTimeout(() => timeout.abort(), Math.min(tool.timeoutMs, MAX_TIMER_MS))
  const signal = AbortSignal.any([e.signal, timeout.signal])
  try {
    if (e.clock.monotonic() - e.sentAt > e.startByMs) return { is: 'missed' }
    const body = tool.execute?.(args, { idempotencyKey, callId, signal, deps: e.deps, approved })
    const value = await (timer === undefined ? body : Promise.race([body, aborted(timeout.signal)]))
    if (value === TIMED_OUT) return failed('tool_timeout', false)
    return returned(value)
  } catch (error) {
    if (timeout.signal.aborted) return failed('tool_timeout', false)
    return { is: 'threw', error, errorName: errorName(error) }
  } finally {
    clearTimeout(timer)
  }
}

const TIMED_OUT = Symbol('timed out')
const aborted = (signal: AbortSignal): Promise<typeof TIMED_OUT> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(TIMED_OUT), { once: true }))

const failed = (code: string, retryable: boolean): Executed => ({ is: 'failed', content: { error: { code, retryable } } })

/** An effect that happened must always be able to settle: what cannot be stored becomes a failed return that says so (R17). */
function returned(value: unknown): Executed {
  try {
    const content = toJson(value ?? null)
    const bytes = Payload.of(content).bytes.byteLength
    return bytes > PAYLOAD_LIMIT
      ? failed('result_too_large', false)
      : { is: 'returned', content, bytes: Math.min(bytes, INLINE_PAYLOAD) }
  } catch (error) {
    if (isThreadlogError(error, 'json_invalid')) return failed('result_not_json', false)
    throw error
  }
}
