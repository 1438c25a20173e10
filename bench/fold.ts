import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Logs } from './logs.ts'
import type { Measured } from './resume.ts'

/** Replays a whole log in one process: see BENCHMARKS.md. */
export function measureFold(logs: Logs, events: number): Promise<Measured> {
  return measuredBy('fold-process.ts', { log: logs.next(), events })
}

/** Runs a measurement in a process of its own, which answers with one message. */
export async function measuredBy<T = Measured>(file: string, options: object): Promise<T> {
  const child = fork(join(import.meta.dirname, file), [JSON.stringify(options)])
  const [measured] = await once(child, 'message', { signal: AbortSignal.timeout(1_800_000) })
  if (child.exitCode === null) await once(child, 'exit')
  return measured as T
}
