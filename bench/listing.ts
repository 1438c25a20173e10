import type { Logs } from './logs.ts'
import { measuredBy } from './measured-by.ts'
import type { Measured } from './resume.ts'

/** What a page of open waits costs at the beginning and at the end of that many: see BENCHMARKS.md. */
export const measureListing = async (logs: Logs, waits: number): Promise<Measured> =>
  measuredBy('listing-process.ts', { log: await logs.next(), waits })
