import { type StreamKey, threadStream } from '../../events/index.ts'
import type { Sql } from '../../log/index.ts'
import type { WaitStatus } from '../state.ts'
import { type Conditions, conditions } from './conditions.ts'
import type { WaitRow } from './wait-row.ts'

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
  /** Epoch milliseconds: only waits that were suspended at or before it. */
  createdBefore?: number
  /** Default 100. */
  limit?: number
  /** The last row of the page before; it need not be pending any more. */
  after?: Pick<WaitRow, 'id' | 'created_at'>
}

/** Pending waits of one provider and kind. */
export interface WaitCount {
  readonly application: string
  readonly provider: string
  readonly kind: WaitRow['kind']
  readonly waits: number
  /** Epoch milliseconds: when the oldest of them was suspended. */
  readonly oldest_at: number
}

type Group = Pick<WaitCount, 'application' | 'provider' | 'kind'>

/**
 * Waits, oldest first; a page costs the same however many came before it. Pending ones go by the time they were suspended at, then by the order
 * of the log; those of other statuses by the order of the log. Writers whose clocks differ may suspend a wait behind a cursor by that difference.
 */
export function listWaits(sql: Sql, filter: WaitFilter = {}): WaitRow[] {
  const { status = 'pending' } = filter
  if (status !== 'pending') return inLogOrder(sql, filter, status)
  if (isNarrow(filter)) return pageOf<WaitRow>(sql, '*', filter)
  const groups = pendingGroups(sql, filter)
  const [only] = groups
  if (!only) return []
  if (groups.length === 1) return pageOf<WaitRow>(sql, '*', filter, only)
  // Each provider and kind has its own stretch of the index: their first waits, put in order.
  const places = groups.flatMap((group) => pageOf<Pick<WaitRow, 'id' | 'created_at'>>(sql, 'id, created_at', filter, group))
  places.sort((a, b) => a.created_at - b.created_at || a.id - b.id)
  return places.slice(0, limitOf(filter)).flatMap(({ id }) => sql.get<WaitRow>('SELECT * FROM waits WHERE id = ?', id) ?? [])
}

const limitOf = (filter: WaitFilter): number => filter.limit ?? 100

/** Another index finds the few that can be meant. */
const isNarrow = (filter: WaitFilter): boolean =>
  filter.continuationId !== undefined || filter.dueBefore !== undefined || streamOf(filter) !== undefined

function streamOf({ stream, application, user, thread }: WaitFilter): StreamKey | undefined {
  if (stream !== undefined || application === undefined || user === undefined || thread === undefined) return stream
  return threadStream({ application, user, thread })
}

function inLogOrder(sql: Sql, filter: WaitFilter, status: WaitStatus | 'any'): WaitRow[] {
  const where = conditionsOf(filter)
  if (status !== 'any') where.add('status = ?', status)
  if (filter.after !== undefined) where.add('id > ?', filter.after.id)
  return sql.all<WaitRow>(`SELECT * FROM waits ${where.text()} ORDER BY id LIMIT ?`, ...where.values, limitOf(filter))
}

/** Pending waits by age; with `group` along its stretch of the index `waits_pending`. */
function pageOf<Row>(sql: Sql, columns: string, filter: WaitFilter, group?: Group): Row[] {
  const where = conditionsOf(group ? { ...filter, ...group } : filter)
  // As a literal, so that the partial indexes serve.
  where.add("status = 'pending'")
  if (filter.after !== undefined) where.add('(created_at, id) > (?, ?)', filter.after.created_at, filter.after.id)
  const text = `SELECT ${columns} FROM waits ${where.text()} ORDER BY created_at, id LIMIT ?`
  return sql.all<Row>(text, ...where.values, limitOf(filter))
}

function conditionsOf(filter: WaitFilter): Conditions {
  const where = conditions()
  const stream = streamOf(filter)
  // With a deadline asked for, the index of deadlines is the one to go by: a unary plus keeps a column from choosing another.
  const by = (column: string) => (filter.dueBefore === undefined ? column : `+${column}`)
  if (stream !== undefined) where.add('stream = ?', stream)
  if (filter.application !== undefined) where.add(`${by('application')} = ?`, filter.application)
  if (filter.user !== undefined) where.add('user = ?', filter.user)
  if (filter.thread !== undefined) where.add('thread = ?', filter.thread)
  if (filter.continuationId !== undefined) where.add('continuation_id = ?', filter.continuationId)
  if (filter.provider !== undefined) where.add(`${by('provider')} = ?`, filter.provider)
  if (filter.kind !== undefined) where.add(`${by('kind')} = ?`, filter.kind)
  if (filter.dueBefore !== undefined) where.add('deadline <= ?', filter.dueBefore)
  if (filter.createdBefore !== undefined) where.add(`${by('created_at')} <= ?`, filter.createdBefore)
  return where
}

/** The providers and kinds that have pending waits: a few steps in the index for each, however many its waits are. */
function pendingGroups(sql: Sql, filter: WaitFilter): Group[] {
  const step = (column: keyof Group, given: Partial<Group>) => {
    const fixed = Object.entries(given)
    const text = `SELECT min(${column}) AS next FROM waits
      WHERE status = 'pending' AND ${fixed.map(([name]) => `${name} = ? AND `).join('')}${column} > ?`
    const own = filter[column]
    if (own !== undefined) return [own]
    const found: string[] = []
    for (let at = ''; ; found.push(at)) {
      const next = sql.get<{ next: string | null }>(text, ...fixed.map(([, value]) => value), at)?.next
      if (next == null) return found
      at = next
    }
  }
  return step('application', {}).flatMap((application) =>
    step('provider', { application }).flatMap((provider) =>
      step('kind', { application, provider }).map((kind) => ({ application, provider, kind }) as Group),
    ),
  )
}

/** How many waits are pending, by application, provider and kind; read from the index alone. */
export function countWaits(sql: Sql, filter: Pick<WaitFilter, 'application' | 'provider' | 'kind'> = {}): WaitCount[] {
  const where = conditionsOf({ application: filter.application, provider: filter.provider, kind: filter.kind })
  where.add("status = 'pending'")
  return sql.all<WaitCount>(
    `SELECT application, provider, kind, count(*) AS waits, min(created_at) AS oldest_at FROM waits ${where.text()}
     GROUP BY application, provider, kind ORDER BY application, provider, kind`,
    ...where.values,
  )
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
