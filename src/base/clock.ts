import { setTimeout as delay } from 'node:timers/promises'

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
      await delay(ms, undefined, { signal, ref: true })
    } catch (error) {
      if ((error as { name?: string }).name !== 'AbortError') throw error
    }
  },
}
