import type { LogEvent } from '../../../src/events/index.ts'
import type { Effect } from '../processes/ledger.ts'

/** One dispatched call as the log has it. */
export interface Call {
  tool: string
  key: string
  dispatches: number
  /** Attempts that dispatched it. One that learns too late that it may start dispatches again; another one only what is retryable. */
  attempts: Set<string>
  settlement: string
  reason: string
}

/** The dispatched calls of one thread. A call id may come again in a later response: then it has another key. */
export function callsOf(events: readonly LogEvent[]): Call[] {
  const calls = new Map<string, Call>()
  const keys = new Map<string, string>()
  for (const { type, data, run_id, attempt } of events)
    if (type === 'tool.dispatched/1') {
      const { call_id, idempotency_key: key, tool } = data
      const call = calls.get(key) ?? {
        tool: tool.split('/').at(-1) ?? '',
        key,
        dispatches: 0,
        attempts: new Set(),
        settlement: 'open',
        reason: '',
      }
      call.dispatches++
      call.attempts.add(`${run_id} ${attempt}`)
      calls.set(key, call)
      keys.set(call_id, key)
    } else if (type === 'tool.settled/1') {
      const call = calls.get(keys.get(data.call_id) ?? '')
      if (call) Object.assign(call, { settlement: data.settlement, reason: data.reason ?? '' })
      keys.delete(data.call_id)
    }
  return [...calls.values()]
}

/**
 * What was done in the world against what the log says of it; answers how the calls ended.
 * @param mayFail whether a call with this effect may be told that it failed
 */
export function checkEffects(
  done: readonly Effect[],
  calls: readonly Call[],
  retryable: ReadonlySet<string>,
  violate: (what: string) => void,
  mayFail: (effect: Effect | undefined) => boolean = () => false,
): Record<string, number> {
  const byKey = Map.groupBy(done, ({ key }) => key)
  const known = new Set(calls.map(({ key }) => key))
  if (known.size !== calls.length) violate(`${calls.length} calls have ${known.size} keys`)
  for (const [key, [first]] of byKey)
    if (!known.has(key)) violate(`${first?.tool} ${first?.call}: done without having been dispatched`)
  const counts: Record<string, number> = { dispatched: calls.length, effects: done.length }
  const count = (what: string) => void (counts[what] = (counts[what] ?? 0) + 1)
  for (const { tool, key, dispatches, attempts, settlement, reason } of calls) {
    const [first] = byKey.get(key) ?? []
    const times = byKey.get(key)?.length ?? 0
    const what = `${tool} ${key}: ${settlement} ${reason}, dispatched ${dispatches} times by ${attempts.size}, done ${times} times`
    const again = retryable.has(tool)
    const isLost = settlement === 'failed' && mayFail(first)
    if (settlement !== 'returned' && settlement !== 'unknown' && !isLost) violate(`unexpected end: ${what}`)
    if (times > (again ? attempts.size : 1) || (!again && attempts.size > 1)) violate(`doubled: ${what}`)
    if (settlement === 'returned' && times === 0) violate(`returned and never done: ${what}`)
    count(settlement === 'unknown' ? `unknown (${reason}), ${times === 0 ? 'not done' : 'done'}` : settlement)
    if (attempts.size > 1) count('dispatched by a later attempt')
    if (dispatches > attempts.size) count('dispatched again in time')
    if (times > 1) count('done again under one key')
  }
  for (const [call, effects] of Map.groupBy(done, ({ tool, call }) => `${tool} ${call}`)) {
    const keys = new Set(effects.map(({ key }) => key))
    if (keys.size > 1) violate(`${call}: done under ${keys.size} keys`)
  }
  return counts
}
