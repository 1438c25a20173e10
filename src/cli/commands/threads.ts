import { type Command, Option } from 'commander'
import type { JsonObject } from '../../base/index.ts'
import { threadName } from '../../events/index.ts'
import { listThreads, type ThreadFilter, type ThreadRow } from '../../projections/index.ts'
import { counted, isoTime, parseSince } from '../format.ts'
import { looking } from '../logs.ts'
import { action, count, type Session, showsTimes } from '../options.ts'
import { threadJson } from '../references.ts'
import { type Column, outcomeStyle } from '../table.ts'

const STATES = ['idle', 'requested', 'running', 'waiting', 'resolved', 'quarantined', 'completed', 'failed', 'cancelled'] as const

interface Options {
  state?: ThreadFilter['status']
  app?: string
  user?: string
  since?: string
  limit: number
}

/** `threadlog threads` */
export function threadsCommand(program: Command, session: Session): void {
  const command = program
    .command('threads')
    .summary('list threads, newest first')
    .description('Lists threads, newest opened first: what each is doing, or how its last run ended.')
    .addOption(
      new Option(
        '--state <state>',
        'only threads in this state; completed, failed and cancelled: idle ones by their last end',
      ).choices(STATES),
    )
    .option('--app <application>', 'only threads of this application')
    .option('--user <user>', 'only threads of this user')
    .option('--since <when>', 'only threads with an event since then: 24h, 7d, or an ISO time')
    .option('--limit <count>', 'at most so many', count(1), 50)
  action<Options, []>(showsTimes(command), session, async (context, o) => {
    const since = o.since === undefined ? undefined : parseSince(o.since, context.now)
    const filter: ThreadFilter = { application: o.app, user: o.user, status: o.state, since, limit: o.limit + 1 }
    const rows = await looking(context.log, async ({ tables }) => listThreads(tables, filter))
    const columns: Column<ThreadRow>[] = [
      { name: 'STREAM', text: (row) => row.stream.slice(0, 12) },
      { name: 'STATE', text: stateText, style: (row) => outcomeStyle(stateText(row)) },
      { name: 'VERSION', text: (row) => String(row.version), right: true },
      { name: 'WAITS', text: (row) => String(row.open_waits), right: true },
      { name: 'UPDATED', text: (row) => context.timeText(row.updated_at) },
      { name: 'AGENT', text: (row) => (row.agent === null ? (row.requested_agent ?? '') : `${row.agent}@${row.revision}`) },
      { name: 'THREAD', text: nameOf },
    ]
    await context.list('threads', rows.slice(0, o.limit), rowJson, columns)
    if (rows.length > o.limit) context.io.note(`Only the newest ${counted(o.limit, 'thread')}; --limit shows more.`)
  })
}

const stateText = (row: ThreadRow): string => (row.status === 'idle' ? (row.last_end ?? 'idle') : row.status)

const nameOf = (row: ThreadRow): string => (row.application === '' ? row.stream : threadName(row))

const rowJson = (row: ThreadRow): JsonObject => ({
  ...threadJson(row.stream, row.application === '' ? undefined : row),
  kind: row.kind,
  state: row.status,
  last_end: row.last_end,
  version: row.version,
  open_waits: row.open_waits,
  agent: row.agent,
  revision: row.revision,
  requested_agent: row.requested_agent,
  run_id: row.run_id,
  invocation_id: row.invocation_id,
  attempt: row.attempt,
  owner: row.owner_id === null ? null : { id: row.owner_id, kind: row.owner_kind },
  blocked_revision: row.blocked_revision,
  quarantined_at: row.quarantined_at,
  opened_at: isoTime(row.opened_at),
  updated_at: isoTime(row.updated_at),
})
