import { Payload } from '../base/index.ts'
import type { StreamKey } from '../events/index.ts'
import { contentLoader, type Sql } from '../log/index.ts'
import { emptyFold, type Folded } from './fold.ts'
import { decodeState, encodeState } from './snapshot.ts'
import { FOLD_VERSION, type ThreadState } from './state.ts'

/** The table of snapshots; one statement, idempotent. */
export const SNAPSHOTS =
  'CREATE TABLE IF NOT EXISTS snapshots(stream TEXT PRIMARY KEY, version INTEGER, hash TEXT, fold_version INTEGER, state BLOB);'

/** A snapshot as read. Its `head` is a claim: the log must have that hash at that version, or the snapshot is worth nothing. */
export interface Snapshot {
  readonly folded: Folded
  readonly bytes: number
}

/** The snapshot of a thread; undefined if there is none this fold can use. */
export function readSnapshot(sql: Sql, stream: StreamKey): Snapshot | undefined {
  const row = sql.get<{ version: number; hash: string; state: Uint8Array }>(
    'SELECT version, hash, state FROM snapshots WHERE stream = ? AND fold_version = ?',
    stream,
    FOLD_VERSION,
  )
  if (!row) return undefined
  try {
    const state = decodeState(Payload.fromBytes(row.state).value, { stream, load: contentLoader(sql) })
    const head = { version: row.version, hash: row.hash }
    if (state.version !== head.version || state.hash !== head.hash) return undefined
    return { folded: { ...emptyFold, state, head }, bytes: row.state.byteLength }
  } catch {
    // A cache that cannot be read is no cache.
    return undefined
  }
}

/** The state as {@link writeSnapshot} stores it. */
export const snapshotBytes = (state: ThreadState): Uint8Array => Payload.of(encodeState(state)).bytes

/** Replaces the snapshot of a thread. */
export function writeSnapshot(sql: Sql, stream: StreamKey, head: Folded['head'], bytes: Uint8Array): void {
  sql.run(
    'INSERT OR REPLACE INTO snapshots(stream, version, hash, fold_version, state) VALUES (?, ?, ?, ?, ?)',
    stream,
    head.version,
    head.hash,
    FOLD_VERSION,
    bytes,
  )
}
