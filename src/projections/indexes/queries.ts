import { reject } from '../../base/index.ts'
import { type StreamKey, type ThreadKey, threadStream } from '../../events/index.ts'
import type { Sql, SqlValue } from '../../log/index.ts'
import type { WaitStatus } from '../state.ts'
import type { ThreadRow } from './thread-row.ts'
import type { WaitRow } from './wait-row.ts'

/** Which threads to list. */
export interface ThreadFilter {
  application?: string
  user?: string
  /** A status of the row, or how the last invocation of an idle thread ended. */
  status?: ThreadRow['status'] | NonNullable<ThreadRow['last_end']>
  /** Epoch milliseconds: only threads with an event at or after it. */
  since?: number
  /** Default 100. */
  limit?: number
  /** `id` of the last row of the page before. */
  after?: number
}

/** Threads, newest opened first. */
export function listThreads(sql: Sql, filter: ThreadFilter = {}): ThreadRow[] {
  const where = conditions()
  if (filter.application !== undefined) where.add('application = ?', filter.application)
  if (filter.user !== undefined) where.add('user = ?', filter.user)
  if (filter.status !== undefined) {
    const ended = ['completed', 'failed', 'cancelled'].includes(filter.status)
    where.add(ended ? "status = 'idle' AND last_end = ?" : 'status = ?', filter.status)
  }
  if (filter.since !== undefined) where.add('updated_at >= ?', filter.since)
  if (filter.after !== undefined) where.add('id < ?', filter.after)
  return sql.all<ThreadRow>(
    `SELECT * FROM threads ${where.text()} ORDER BY id DESC LIMIT ?`,
    ...where.values,
    filter.limit ?? 100,
  )
}

/**
 * One thread, by its three ids, its stream key, or a unique beginning of that (8 hex digits or more).
 * @throws ThreadlogError `ambiguous_prefix`; `thread_reference_invalid` when the text is none of these
 */
export function findThread(sql: Sql, reference: ThreadKey | StreamKey): ThreadRow | undefined {
  if (typeof reference !== 'string') return byStream(sql, threadStream(reference))
  const prefix = reference.toLowerCase()
  if (!/^[0-9a-f]{8,64}$/.test(prefix))
    throw reject('thread_reference_invalid', 'This names no thread.', {
      expected: 'a stream key, or at least its first 8 hex digits',
    })
  if (prefix.length === 64) return byStream(sql, prefix)
  // 'g' follows the last hex digit.
  const found = sql.all<ThreadRow>('SELECT * FROM threads WHERE stream >= ? AND stream < ? LIMIT 2', prefix, `${prefix}g`)
  if (found.length < 2) return found[0]
  throw reject('ambiguous_prefix', 'Several threads begin like this.', {
    expected: 'a prefix only one stream key has',
    hint: 'Give more digits.',
    details: { prefix, streams: found.map((row) => row.stream) },
  })
}

const byStream = (sql: Sql, stream: StreamKey): ThreadRow | undefined =>
  sql.get<ThreadRow>('SELECT * FROM threads WHERE stream = ?', stream)

/** Which waits to list. */
export interface WaitFilter {
  application?: string
  user?: string
  /** The thread's id; together with application and user the look-up goes by its stream. */
  thread?: string
  stream?: StreamKey
  provider?: string
  kind?: WaitRow['kind']
  /** Default `pending`. */
  status?: WaitStatus | 'any'
  continuationId?: string
  /** Epoch milliseconds: only waits whose deadline is at or before it. */
  dueBefore?: number
  /** Default 100. */
  limit?: number
  /** `id` of the last row of the page before. */
  after?: number
}

/** Waits in the order of the log, oldest first: pages stay stable while waits come and go. */
export function listWaits(sql: Sql, filter: WaitFilter = {}): WaitRow[] {
  const where = conditions()
  const { application, user, thread, status = 'pending' } = filter
  // As a literal, so that the partial indexes serve.
  if (status === 'pending') where.add("status = 'pending'")
  else if (status !== 'any') where.add('status = ?', status)
  const key = application !== undefined && user !== undefined && thread !== undefined ? { application, user, thread } : undefined
  const stream = filter.stream ?? (key && threadStream(key))
  if (stream !== undefined) where.add('stream = ?', stream)
  if (application !== undefined) where.add('application = ?', application)
  if (user !== undefined) where.add('user = ?', user)
  if (thread !== undefined) where.add('thread = ?', thread)
  if (filter.continuationId !== undefined) where.add('continuation_id = ?', filter.continuationId)
  if (filter.provider !== undefined) where.add('provider = ?', filter.provider)
  if (filter.kind !== undefined) where.add('kind = ?', filter.kind)
  if (filter.dueBefore !== undefined) where.add('deadline <= ?', filter.dueBefore)
  if (filter.after !== undefined) where.add('id > ?', filter.after)
  return sql.all<WaitRow>(`SELECT * FROM waits ${where.text()} ORDER BY id LIMIT ?`, ...where.values, filter.limit ?? 100)
}

/**
 * Pending waits of a provider in byte order of their ids, one indexed read (continuation spec §6).
 * @param o.after the last id of the page before; it need not exist any more
 */
export const pendingOfProvider = (
  sql: Sql,
  o: { application: string; provider: string; after: string | null; limit: number },
): WaitRow[] =>
  sql.all<WaitRow>(
    `SELECT * FROM waits WHERE application = ? AND provider = ? AND status = 'pending' AND continuation_id > ?
     ORDER BY continuation_id LIMIT ?`,
    o.application,
    o.provider,
    o.after ?? '',
    o.limit,
  )

/** Where a wait of any status stands. */
export const waitPlace = (sql: Sql, continuationId: string): Pick<WaitRow, 'stream' | 'continuation_id'> | undefined =>
  sql.get('SELECT stream, continuation_id FROM waits WHERE continuation_id = ?', continuationId)

/** One wait of any status. */
export const waitById = (sql: Sql, continuationId: string): WaitRow | undefined =>
  sql.get<WaitRow>('SELECT * FROM waits WHERE continuation_id = ?', continuationId)

/** The wait with this external id; `externalIdKey` is the hash of provider and external id (continuation spec §7.2). */
export const waitByExternalId = (sql: Sql, application: string, provider: string, externalIdKey: string): WaitRow | undefined =>
  sql.get<WaitRow>(
    'SELECT * FROM waits WHERE application = ? AND provider = ? AND external_id_key = ? ORDER BY id LIMIT 1',
    application,
    provider,
    externalIdKey,
  )

function conditions() {
  const parts: string[] = []
  const values: SqlValue[] = []
  return {
    values,
    add(part: string, ...given: SqlValue[]) {
      parts.push(part)
      values.push(...given)
    },
    text: () => (parts.length > 0 ? `WHERE ${parts.join(' AND ')}` : ''),
  }
}
