import { statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { fatal } from '../../base/index.ts'

const LOOK_MS = 1_000

/**
 * Notices that the open file is no longer the one at its path: moved, deleted, or replaced by a copy. SQLite goes on writing to the
 * old one, which nobody will find again, so writing must stop.
 * @param onLost called once with `log_moved` (fatal)
 */
export function watchLineage(file: string, onLost: (error: unknown) => void): { close(): void } {
  const opened = statSync(file)
  const timer = setInterval(look, LOOK_MS).unref()
  return { close: () => clearInterval(timer) }

  async function look(): Promise<void> {
    const found = await stat(file).catch((error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? undefined : opened))
    if (found?.ino === opened.ino && found.dev === opened.dev) return
    clearInterval(timer)
    onLost(
      fatal('log_moved', 'The log file was moved, deleted or replaced while it was open.', {
        path: file,
        hint: 'Close, put the file back, open again. What was acknowledged in the last second may be in the old file only.',
      }),
    )
  }
}
