import type { Clock } from '../../base/index.ts'
import type { ContentStore, LogBackend } from '../ports.ts'
import { openSqliteLog } from '../sqlite/index.ts'

/** A log that lives and dies with this process: the same code as the file, on SQLite in memory. */
export const openMemoryLog = ({
  clock,
  content,
}: {
  clock?: Clock
  content?: ContentStore | undefined
} = {}): Promise<LogBackend> => openSqliteLog({ clock, content, file: ':memory:' })
