import { runInNewContext } from 'node:vm'

/** Milliseconds; below the limit of a test, so that the failure names the place. */
export const HANG_MS = 50_000

/** Runs `work`, and fails if it does not end: also work that never gives the event loop a turn, which the limit of a test cannot stop. */
export const ends = <T>(work: () => T): T => runInNewContext('work()', { work }, { timeout: HANG_MS }) as T
