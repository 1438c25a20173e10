import type { Logs } from './logs.ts'
import { measuredBy } from './measured-by.ts'
import type { Measured } from './resume.ts'

/** Replays a whole log in one process: see BENCHMARKS.md. */
export async function measureFold(logs: Logs, events: number): Promise<Measured> {
  return measuredBy('fold-process.ts', { log: await logs.next(), events })
}
