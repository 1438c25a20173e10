import type { Logs } from './logs.ts'
import { measuredBy } from './measured-by.ts'
import type { Measured } from './resume.ts'

/** What an event costs at the end of a thread of that many: see BENCHMARKS.md. */
export const measureLength = async (logs: Logs, events: number): Promise<Measured> =>
  measuredBy('length-process.ts', { log: await logs.next(), events })
