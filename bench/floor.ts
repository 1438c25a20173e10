import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { FloorOptions } from './floor-process.ts'
import type { Measured } from './resume.ts'

/** Raw grouped rows in a process of their own: what the storage gives at most. */
export async function measureFloor(o: FloorOptions): Promise<Measured> {
  const child = fork(join(import.meta.dirname, 'floor-process.ts'), [JSON.stringify(o)])
  const [measured] = await once(child, 'message', { signal: AbortSignal.timeout(600_000) })
  if (child.exitCode === null) await once(child, 'exit')
  return measured as Measured
}
