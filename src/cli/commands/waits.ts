import { type Command, Option } from 'commander'
import { countWaits, listWaits, type WaitCount, type WaitRow } from '../../projections/index.ts'
import type { Context } from '../context.ts'
import { followEvents } from '../follow.ts'
import { counted, isoTime, parseDuration } from '../format.ts'
import { looking } from '../logs.ts'
import { action, count, parsed, type Session, showsPayloads, showsTimes } from '../options.ts'
import { refText } from '../references.ts'
import { type Column, outcomeStyle } from '../table.ts'
import { findWaitView, waitJson, waitLines, waitRowJson } from '../wait-view.ts'

const KINDS = ['approval', 'question', 'external'] as const
const STATUSES = ['pending', 'completed', 'failed', 'claimed', 'cancelled', 'expired', 'abandoned', 'any'] as const

interface Options {
  kind?: WaitRow['kind']
  provider?: string
  app?: string
  user?: string
  thread?: string
  status: WaitRow['status'] | 'any'
  due?: number
  olderThan?: number
  counts?: boolean
  limit: number
  follow?: boolean
}

/** `threadlog waits` */
export function waitsCommand(program: Command, session: Session): void {
  const command = program
    .command('waits')
    .summary('list what threads wait for')
    .description(
      'Lists waits, oldest first: approvals, questions and calls answered from outside. Without --status only those still open.',
    )
    .addOption(new Option('--kind <kind>', 'only waits of this kind').choices(KINDS))
    .option('--provider <provider>', 'only waits this provider answers')
    .option('--app <application>', 'only waits of this application')
    .option('--user <user>', 'only waits of this user')
    .option('--thread <id>', 'only waits of threads with this id')
    .addOption(new Option('--status <status>', 'only waits in this status').choices(STATUSES).default('pending'))
    .option('--due <duration>', 'only waits whose deadline is within this time, or past: 1h, 2d', parsed(parseDuration))
    .option('--older-than <duration>', 'only waits that are open at least so long: 1h, 2d', parsed(parseDuration))
    .option('--limit <count>', 'at most so many', count(1), 200)
    .addOption(
      new Option('--counts', 'how many are open, by provider and kind, and since when').conflicts([
        ...['user', 'thread', 'status', 'due', 'olderThan', 'limit', 'follow'],
      ]),
    )
    .option('--follow', 'go on with waits as they open (-o jsonl)')
  action<Options, []>(showsTimes(command), session, async (context, o) => {
    await looking(context.log, async (backend) => {
      if (o.counts)
        return listCounts(context, countWaits(backend.tables, { application: o.app, provider: o.provider, kind: o.kind }))
      // Before the list is read, so that nothing falls between.
      const news = o.follow ? followEvents(backend, context) : undefined
      const filter = filterOf(o, context.now)
      const rows = listWaits(backend.tables, { ...filter, limit: o.limit + 1 })
      const shown = rows.slice(0, o.limit)
      const columns: Column<WaitRow>[] = [
        { name: 'WAIT', text: (row) => row.continuation_id },
        { name: 'KIND', text: (row) => row.kind },
        { name: 'STATUS', text: (row) => row.status, style: (row) => outcomeStyle(row.status) },
        { name: 'SINCE', text: (row) => context.timeText(row.created_at) },
        { name: 'DUE', text: (row) => (row.deadline === null ? '' : context.timeText(row.deadline)) },
        { name: 'PROVIDER', text: (row) => row.provider },
        { name: 'TOOL', text: (row) => row.tool_name },
        { name: 'THREAD', text: (row) => refText({ stream: row.stream, key: row }) },
      ]
      await context.list('waits', shown, waitRowJson, columns)
      if (rows.length > o.limit) context.io.note(`Only ${counted(o.limit, 'wait')}; --limit shows more.`)
      if (!news) return
      const told = new Set(shown.map((row) => row.continuation_id))
      for await (const { event } of news) {
        if (event?.type !== 'continuation.armed/1' || told.has(event.data.continuation_id)) continue
        const [row] = listWaits(backend.tables, { ...filter, continuationId: event.data.continuation_id })
        if (row) await context.record(waitRowJson(row))
      }
    })
  })
}

const listCounts = (context: Context, counts: WaitCount[]): Promise<void> => {
  const columns: Column<WaitCount>[] = [
    { name: 'WAITS', text: (row) => String(row.waits), right: true },
    { name: 'OLDEST', text: (row) => context.timeText(row.oldest_at) },
    { name: 'KIND', text: (row) => row.kind },
    { name: 'PROVIDER', text: (row) => row.provider },
    { name: 'APPLICATION', text: (row) => row.application },
  ]
  return context.list('counts', counts, (row) => ({ ...row, oldest_at: isoTime(row.oldest_at) }), columns)
}

/** `threadlog wait` */
export function waitCommand(program: Command, session: Session): void {
  const command = program
    .command('wait')
    .summary('one wait: what is asked, and what was answered')
    .description(
      'Shows one wait: tool, arguments, the digest to quote when approving, deadline, and the answer once there is one.',
    )
    .argument('<wait>', 'id of the wait, or its first 8 or more characters')
  action<object, [string]>(showsTimes(showsPayloads(command)), session, async (context, _, id) => {
    const view = await looking(context.log, (backend) => findWaitView(backend, id))
    await context.result({ wait: waitJson(view, context.payloads) }, () =>
      waitLines(view, context.payloads, (ms) => context.timeText(ms)),
    )
  })
}

type Filter = Parameters<typeof listWaits>[1] & object

const filterOf = (o: Options, now: number): Filter => ({
  application: o.app,
  user: o.user,
  thread: o.thread,
  provider: o.provider,
  kind: o.kind,
  status: o.status,
  dueBefore: o.due === undefined ? undefined : now + o.due,
  createdBefore: o.olderThan === undefined ? undefined : now - o.olderThan,
})
