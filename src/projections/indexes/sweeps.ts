import type { Sql } from '../../log/index.ts'
import type { ThreadRow } from './thread-row.ts'
import type { WaitRow } from './wait-row.ts'

/** A page of a sweep: `limit` rows with `id` above `after` (default: from the first). */
export interface SweepPage {
  limit: number
  after?: number
}

const REQUESTED = `
SELECT * FROM threads
WHERE requested_agent IN (SELECT value FROM json_each(?)) AND requested_agent IS NOT NULL
  AND status IN ('requested', 'waiting', 'resolved') AND id > ?
ORDER BY id LIMIT ?`

/**
 * Threads whose oldest request names one of `agents` and can begin: no run is running. A thread that waits is among them, since new
 * input first abandons its waits (design §7).
 */
export const requestedThreads = (sql: Sql, agents: readonly string[], page: SweepPage): ThreadRow[] =>
  sql.all<ThreadRow>(REQUESTED, JSON.stringify(agents), page.after ?? 0, page.limit)

const RESOLVED = `
SELECT threads.* FROM json_each(?) AS known CROSS JOIN threads
WHERE threads.status = 'resolved' AND threads.agent = json_extract(known.value, '$[0]') AND threads.id > ?
  AND (threads.blocked_revision IS NULL OR threads.blocked_revision <> json_extract(known.value, '$[1]'))
ORDER BY threads.id LIMIT ?`

/**
 * Suspended threads without a pending wait, of agents given as `[name, revision]`, each name once; without those that this very
 * revision has refused to resume (R11).
 */
export const resolvedThreads = (
  sql: Sql,
  agents: readonly (readonly [name: string, revision: string])[],
  page: SweepPage,
): ThreadRow[] => sql.all<ThreadRow>(RESOLVED, JSON.stringify(agents), page.after ?? 0, page.limit)

const RUNNING = `SELECT * FROM threads WHERE status = 'running' AND kind <> 'foreign' AND id > ? ORDER BY id LIMIT ?`

/** Threads of threadlog itself with a running run; whether its owner lives is for {@link ThreadRow.owner_id} and the log's owners to say. */
export const runningThreads = (sql: Sql, page: SweepPage): ThreadRow[] => sql.all<ThreadRow>(RUNNING, page.after ?? 0, page.limit)

const FOREIGN = `
SELECT * FROM threads WHERE kind = 'foreign' AND status IN ('waiting', 'resolved') AND application = ? AND id > ? ORDER BY id LIMIT ?`

/** Sessions of foreign hosts whose run waits for a continuation, or has an outcome to take or to acknowledge. */
export const waitingSessions = (sql: Sql, application: string, page: SweepPage): ThreadRow[] =>
  sql.all<ThreadRow>(FOREIGN, application, page.after ?? 0, page.limit)

/** Where a page of {@link dueWaits} ended. */
export interface Due {
  readonly deadline: number
  readonly id: number
}

const DUE = `
SELECT * FROM waits WHERE application = ? AND status = 'pending' AND deadline IS NOT NULL AND deadline <= ? AND (deadline, id) > (?, ?)
ORDER BY deadline, id LIMIT ?`

/** Pending waits whose deadline is at or before `now` (epoch milliseconds), longest overdue first, behind `after`. */
export const dueWaits = (sql: Sql, o: { application: string; now: number; limit: number; after?: Due | undefined }): WaitRow[] =>
  sql.all<WaitRow>(DUE, o.application, o.now, o.after?.deadline ?? -1, o.after?.id ?? 0, o.limit)
