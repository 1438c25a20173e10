import { existsSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { fatal, reject, systemIds } from '../../base/index.ts'
import { busyPause, Connection } from './connection.ts'
import { CONTENT_TABLE } from './content.ts'
import { isBusy, translate } from './errors.ts'
import { APPLICATION_ID, FORMAT, SCHEMA } from './schema.ts'

export const IN_MEMORY = ':memory:'

export interface DatabaseOptions {
  file: string
  readOnly: boolean
  create: boolean
  busyTimeoutMs: number
  maxBytes?: number
  /** `normal`: a cache that may lose its newest commits at a power cut. Default `full`. */
  synchronous?: 'full' | 'normal'
  now: () => number
}

/** Opens the file, making the tables if it is new, and waits without blocking while another process does so. */
export async function openDatabase(options: DatabaseOptions): Promise<Connection> {
  const { file, busyTimeoutMs } = options
  if (file !== IN_MEMORY && !options.create && !existsSync(file)) throw missing(file)
  if (file !== IN_MEMORY && isNoFile(file))
    throw reject('log_unavailable', 'What stands at this place is no file.', { path: file, hint: 'Name a file in that folder.' })
  const deadline = performance.now() + busyTimeoutMs
  for (;;) {
    let connection: Connection | undefined
    try {
      connection = new Connection(new DatabaseSync(file, { readOnly: options.readOnly, timeout: 0 }), file, busyTimeoutMs)
      prepare(connection, options)
      return connection
    } catch (error) {
      connection?.close()
      if (!isBusy(error) || performance.now() >= deadline) throw translate(error, file)
    }
    await delay(busyPause())
  }
}

/** True for folders, devices and the like, of which SQLite says that the disk has failed. */
function isNoFile(file: string): boolean {
  try {
    return !statSync(file).isFile()
  } catch {
    // Nothing there, or nothing that may be looked at: opening it tells.
    return false
  }
}

function prepare(connection: Connection, options: DatabaseOptions): void {
  const { file, readOnly } = options
  const fresh = examine(connection, file)
  if (fresh && readOnly) throw missing(file)
  connection.exec(
    `PRAGMA synchronous = ${options.synchronous ?? 'full'}; PRAGMA wal_autocheckpoint = 1000; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536`,
  )
  if (options.maxBytes !== undefined) limitSize(connection, options.maxBytes)
  if (!readOnly) useWal(connection, file)
  if (fresh) create(connection, options)
  checkFormat(connection, file)
  // Files from before there was one lack it; where it is, this writes nothing.
  if (!readOnly) connection.exec(CONTENT_TABLE)
}

/** True for an empty database; refuses one that belongs to something else. */
function examine(connection: Connection, file: string): boolean {
  const { application_id: application } = connection.get<{ application_id: number }>('PRAGMA application_id')!
  const { tables } = connection.get<{ tables: number }>('SELECT count(*) AS tables FROM sqlite_schema')!
  if (application === APPLICATION_ID) return false
  if (tables === 0 && application === 0) return true
  throw reject('log_foreign', 'The file is a SQLite database of something else.', {
    path: file,
    hint: 'Give the log a file of its own.',
  })
}

function limitSize(connection: Connection, maxBytes: number): void {
  const { page_size: size } = connection.get<{ page_size: number }>('PRAGMA page_size')!
  connection.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / size))}`)
}

function useWal(connection: Connection, file: string): void {
  const { journal_mode: mode } = connection.get<{ journal_mode: string }>('PRAGMA journal_mode = WAL')!
  if (mode === 'wal' || file === IN_MEMORY) return
  throw reject('log_unavailable', 'This file system cannot hold a SQLite write-ahead log.', {
    path: file,
    hint: 'Use a local disk.',
  })
}

function create(connection: Connection, { now }: DatabaseOptions): void {
  connection.exec('BEGIN IMMEDIATE')
  try {
    // Another process may have made them since we looked.
    if (connection.get<{ tables: number }>('SELECT count(*) AS tables FROM sqlite_schema')!.tables === 0) {
      connection.exec(SCHEMA)
      const meta = { id: systemIds.token(), format: FORMAT, partitions: 1, created: now() }
      for (const [name, value] of Object.entries(meta)) connection.run('INSERT INTO meta(name, value) VALUES (?, ?)', name, value)
    }
    connection.exec('COMMIT')
  } catch (error) {
    if (connection.inTransaction) connection.exec('ROLLBACK')
    throw error
  }
}

function checkFormat(connection: Connection, file: string): void {
  const { user_version: format } = connection.get<{ user_version: number }>('PRAGMA user_version')!
  if (format > FORMAT)
    throw fatal('log_format_newer', 'The log was written by a newer release.', {
      path: file,
      expected: `format ${FORMAT} or older`,
      hint: 'Use the newer release.',
      details: { format, supported: FORMAT },
    })
}

const missing = (file: string) =>
  reject('log_missing', 'There is no log at this place.', {
    path: file,
    hint: 'Check the path; a log is made where the caller allows it.',
  })

/** The id made when the file was created. */
export function logId(connection: Connection): string {
  const row = connection.get<{ value: string }>("SELECT value FROM meta WHERE name = 'id'")
  if (typeof row?.value === 'string') return row.value
  throw fatal('log_damaged', 'The log has lost its id.', {
    path: connection.file,
    hint: 'Restore a copy; keep this file for inspection.',
  })
}
