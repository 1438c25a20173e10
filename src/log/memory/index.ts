import type { Clock } from '../../base/index.ts'
import type { LogBackend } from '../ports.ts'
import { openSqliteLog } from '../sqlite/index.ts'

/** A log that lives and dies with this process: the same code as the file, on SQLite in memory. */
export const openMemoryLog = (options: { clock?: Clock } = {}): Promise<LogBackend> =>
  openSqliteLog({ ...options, file: ':memory:' })
