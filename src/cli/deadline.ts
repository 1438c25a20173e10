import { MAX_TIMER_MS } from '../base/index.ts'

/** Aborts after a time as it was given on the command line: fractions and years included, which a timer does not take. */
export const after = (ms: number): AbortSignal => AbortSignal.timeout(Math.ceil(Math.min(ms, MAX_TIMER_MS)))
