import { type Clock, reject } from '../base/index.ts'
import { openMemoryLog } from './memory/index.ts'
import type { ContentStore, LogBackend } from './ports.ts'
import { openSqliteLog } from './sqlite/index.ts'

/**
 * Opens a log by its address: `memory`, or `sqlite:` and a path.
 * @throws ThreadlogError `log_url_invalid`, and what the adapter throws
 */
export async function openLog(
  url: string,
  options: { clock?: Clock; readOnly?: boolean; create?: boolean; content?: ContentStore | undefined } = {},
): Promise<LogBackend> {
  if (url === 'memory') return openMemoryLog(options)
  const file = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : ''
  if (file !== '' && !file.startsWith(':') && !file.includes('\0')) return openSqliteLog({ ...options, file })
  throw reject('log_url_invalid', 'This is not the address of a log.', { path: 'log', expected: "'memory' or 'sqlite:<path>'" })
}
