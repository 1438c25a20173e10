import { fatal, isThreadlogError, reject, retryLater, type ThreadlogError } from '../../base/index.ts'

const BUSY = 5
const LOCKED = 6
const READONLY = 8
const IO = 10
const CORRUPT = 11
const FULL = 13
const CANNOT_OPEN = 14
const PROTOCOL = 15
const NOT_A_DATABASE = 26
/** Extended codes: the file was moved away under the connection; the wal-index could not grow. */
const READONLY_MOVED = 1032
const IO_SHARED_MEMORY_SIZE = 4874

/** Conditions of the machine or the file, never of one statement: everything in the transaction shares them. */
const ENVIRONMENT = new Set([BUSY, LOCKED, READONLY, IO, CORRUPT, FULL, CANNOT_OPEN, PROTOCOL, NOT_A_DATABASE])

interface SqliteError extends Error {
  code: 'ERR_SQLITE_ERROR'
  errcode: number
}

const isSqliteError = (error: unknown): error is SqliteError => (error as SqliteError | undefined)?.code === 'ERR_SQLITE_ERROR'

const primary = (error: SqliteError): number => error.errcode & 0xff

/** True when somebody else holds the lock and waiting will help. */
export function isBusy(error: unknown): boolean {
  return isSqliteError(error) && [BUSY, LOCKED, PROTOCOL].includes(primary(error))
}

/** True when the machine or the file is the cause, not the statement or the change that met it. */
export function isEnvironment(error: unknown): boolean {
  return isSqliteError(error) ? ENVIRONMENT.has(primary(error)) : (error as { code?: unknown })?.code === 'ERR_INVALID_STATE'
}

/**
 * The coded form of what SQLite says; anything that does not come from SQLite is returned as it is.
 * Codes: `log_busy`, `log_full`, `log_io_failed` (retry) · `log_read_only`, `log_unavailable`, `log_closed` (reject) · `log_damaged`,
 * `log_moved` (fatal).
 */
export function translate(error: unknown, file: string): unknown {
  if (isThreadlogError(error)) return error
  const { code } = (error ?? {}) as { code?: unknown }
  if (code === 'ERR_INVALID_STATE') return closed()
  // A number that no log has written.
  if (code === 'ERR_OUT_OF_RANGE') return unlikeWritten({ path: file, cause: error })
  if (!isSqliteError(error)) return error
  // Statements are literals of this package: what they meet is not as it was made.
  if (!isEnvironment(error)) return unlikeWritten({ path: file, details: { errcode: error.errcode }, cause: error })
  const info = { path: file, details: { errcode: error.errcode }, cause: error }
  switch (primary(error)) {
    case READONLY:
      if (error.errcode === READONLY_MOVED)
        return fatal('log_moved', 'The log file was moved or deleted while it was open.', {
          ...info,
          hint: 'Close, put the file back, open again.',
        })
      return reject('log_read_only', 'The log file cannot be written.', {
        ...info,
        hint: 'Check the permissions of the file and its folder.',
      })
    case FULL:
      return full(info)
    case IO:
      if (error.errcode === IO_SHARED_MEMORY_SIZE) return full(info)
      return retryLater('log_io_failed', 'The disk did not do what was asked; nothing is acknowledged.', info)
    case CORRUPT:
    case NOT_A_DATABASE:
      return fatal('log_damaged', 'The file is not a usable SQLite database.', {
        ...info,
        hint: 'Restore a copy; keep this file for inspection.',
      })
    case CANNOT_OPEN:
      return reject('log_unavailable', 'The log file cannot be opened.', {
        ...info,
        hint: 'Check the path, the folder and the permissions.',
      })
    default:
      return retryLater('log_busy', 'Another process kept the log locked for too long.', info)
  }
}

const unlikeWritten = (info: object): ThreadlogError =>
  fatal('log_damaged', 'The tables of the log are not as they were made.', {
    ...info,
    hint: 'Restore a copy; keep this file for inspection.',
  })

const full = (info: object): ThreadlogError =>
  retryLater('log_full', 'No space is left for the log; nothing was written.', { ...info, hint: 'Free space and send it again.' })

export const closed = (): ThreadlogError => reject('log_closed', 'The log is closed.', { hint: 'Open it again.' })
