import { reject } from '../../base/index.ts'
import { type StreamKey, type ThreadKey, threadStream } from '../../events/index.ts'
import type { Sql } from '../../log/index.ts'
import { conditions } from './conditions.ts'
import type { ThreadRow } from './thread-row.ts'

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
