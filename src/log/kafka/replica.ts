import { rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Clock, isThreadlogError, reject } from '../../base/index.ts'
import { type Connection, IN_MEMORY, openDatabase } from '../store/index.ts'
import { CONTENT_PROGRESS } from './content-topic.ts'

/** Whose copy a replica is. */
export interface ReplicaOf {
  cluster: string
  prefix: string
  partitions: number
}

/** Beside the tables of a log: how far each partition has been read, and the place of each event. */
const TABLES = `
CREATE TABLE IF NOT EXISTS replica(
  partition INTEGER PRIMARY KEY,
  next INTEGER NOT NULL,
  last INTEGER,
  hash TEXT,
  epoch INTEGER,
  voids INTEGER NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS events_place ON events(place);
${CONTENT_PROGRESS}
`

/**
 * Opens the local copy of a log: a cache, rebuilt from the cluster when it is missing or damaged, and refused when it is a copy of
 * another log.
 * @param file path, or `:memory:`
 * @throws ThreadlogError `replica_foreign`, and what opening a SQLite file throws
 */
export async function openReplica(file: string, of: ReplicaOf, clock: Clock, busyTimeoutMs = 10_000): Promise<Connection> {
  const path = file === IN_MEMORY ? IN_MEMORY : resolve(file)
  try {
    return await open(path, of, clock, busyTimeoutMs)
  } catch (error) {
    if (path === IN_MEMORY || !isThreadlogError(error, 'log_damaged', 'log_format_newer')) throw error
    for (const suffix of ['', '-wal', '-shm']) await rm(path + suffix, { force: true })
    return open(path, of, clock, busyTimeoutMs)
  }
}

async function open(file: string, of: ReplicaOf, clock: Clock, busyTimeoutMs: number): Promise<Connection> {
  const options = { file, readOnly: false, create: true, busyTimeoutMs, synchronous: 'normal', now: () => clock.now() } as const
  const connection = await openDatabase(options)
  try {
    await connection.query(() => prepare(connection, of))
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

function prepare(connection: Connection, of: ReplicaOf): void {
  connection.exec('BEGIN IMMEDIATE')
  try {
    connection.exec(TABLES)
    claim(connection, of)
    connection.exec('COMMIT')
  } catch (error) {
    if (connection.inTransaction) connection.exec('ROLLBACK')
    throw error
  }
}

/** What a replica says of whose copy it is (`meta.replica_of`). */
export const markOf = ({ cluster, prefix, partitions }: ReplicaOf): string => JSON.stringify([cluster, prefix, partitions])

/** Writes down, in a new replica, whose copy it is; compares it in an old one. */
function claim(connection: Connection, of: ReplicaOf): void {
  const saved = connection.get<{ value: string }>("SELECT value FROM meta WHERE name = 'replica_of'")?.value
  const wanted = markOf(of)
  if (saved === wanted) return
  if (saved === undefined && connection.get<{ n: number }>('SELECT count(*) AS n FROM events')!.n === 0) {
    connection.run("INSERT INTO meta(name, value) VALUES ('replica_of', ?)", wanted)
    return
  }
  throw reject('replica_foreign', 'This file is not a replica of this log.', {
    path: connection.file,
    expected: `a replica of ${of.prefix} on cluster ${of.cluster} with ${of.partitions} partitions`,
    hint: 'Name another file, or remove this one: a replica is built anew from the cluster.',
  })
}
