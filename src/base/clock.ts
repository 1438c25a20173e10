import { setTimeout as delay } from 'node:timers/promises'

/** The longest a timer of the platform can run; a longer one would go off at once. About 24 days. */
export const MAX_TIMER_MS = 2_147_483_647

/** Time as a dependency: `now` for what is recorded, `monotonic` for what is measured, `sleep` for what is waited. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Milliseconds from an arbitrary origin; never goes back. */
  monotonic(): number
  /** Resolves after `ms`, or at once (without error) when `signal` aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    if (signal?.aborted) return
    try {
      let left = ms
      do await delay(Math.min(left, MAX_TIMER_MS), undefined, { signal, ref: true })
      while ((left -= MAX_TIMER_MS) > 0)
    } catch (error) {
      if ((error as { name?: string }).name !== 'AbortError') throw error
    }
  },
}
