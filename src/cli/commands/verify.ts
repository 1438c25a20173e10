import type { Command } from 'commander'
import { isThreadlogError, type JsonObject } from '../../base/index.ts'
import { logProjectors } from '../../continuations/index.ts'
import type { StreamKey } from '../../events/index.ts'
import type { LogBackend, Position } from '../../log/index.ts'
import { listThreads, type ThreadRow } from '../../projections/index.ts'
import type { Context } from '../context.ts'
import { EXIT, usage } from '../errors.ts'
import { counted } from '../format.ts'
import { openAddress } from '../logs.ts'
import { action, type Session } from '../options.ts'
import { findThreadRef, refText, type Scope } from '../references.ts'
import { type Column, outcomeStyle, tableLines } from '../table.ts'
import { type Walked, walkLog } from '../verify/log-walk.ts'
import { type Checking, checking, checkThread, claimsOf, type Fault, type ThreadReport } from '../verify/thread-check.ts'

/** `threadlog verify` */
export function verifyCommand(program: Command, session: Session): void {
  const command = program
    .command('verify')
    .summary('check that a log is what was accepted')
    .description(
      'Checks threads from their first event on: versions without gaps, the hash chain, complete commits, the fold, that published ' +
        'checkpoints, the live state and the index agree with it. Names the first bad offset. --all walks the log itself, so a thread the index ' +
        'has lost is found too. Nothing is written.',
    )
    .argument('[thread]', 'app/user/thread, a stream key, or its first 8 or more digits')
    .option('--all', 'check every thread of the log')
    .option('--app <application>', "application of a short thread name (default: 'default')")
    .option('--user <user>', "user of a short thread name (default: 'default')")
    .addHelpText(
      'after',
      '\nExit code 0 when everything is intact, 1 when damage was found. In text, --all lists damaged threads only.',
    )
  action<Scope & { all?: boolean }, [string | undefined]>(command, session, async (context, o, reference) => {
    if ((reference === undefined) === !o.all) throw usage('Give either a thread or --all.')
    const backend = await openAddress(context.log, { readOnly: true })
    try {
      const check = await checking(backend, await isIndexed(context, backend))
      return o.all ? await verifyAll(context, check) : await verifyOne(context, check, reference as string, o)
    } finally {
      await backend.close()
    }
  })
}

async function isIndexed({ io }: Context, backend: LogBackend): Promise<boolean> {
  try {
    await backend.install(logProjectors())
    return true
  } catch (error) {
    if (!isThreadlogError(error, 'log_read_only', 'projector_newer')) throw error
    io.note('The index tables are missing or behind: they are not checked.')
    return false
  }
}

async function verifyOne(context: Context, check: Checking, reference: string, scope: Scope): Promise<number> {
  const { stream } = await findThreadRef(check.backend, reference, scope)
  const claims = await claimsOf(check.backend, stream)
  const report = await checkThread(check, stream, claims.get(stream) ?? [])
  await context.list('threads', [report], reportJson, COLUMNS)
  return report.fault ? EXIT.otherAnswer : EXIT.done
}

async function verifyAll(context: Context, check: Checking): Promise<number> {
  const claims = await claimsOf(check.backend)
  const walked = await walkLog(check.backend, context.signal)
  const reports: ThreadReport[] = []
  let threads = 0
  let damaged = 0
  for await (const report of reportsOf(check, walked, claims)) {
    if (context.signal.aborted) break
    threads++
    if (report.fault) damaged++
    if (context.format === 'jsonl') await context.record(reportJson(report))
    else if (context.format === 'json' || report.fault) reports.push(report)
  }
  if (context.format === 'json')
    await context.document({ threads: reports.map(reportJson), events: walked.events, checked: threads, damaged })
  if (context.format === 'text') {
    if (reports.length > 0) for (const line of tableLines(COLUMNS, reports, context.io.paint)) await context.print(line)
    await context.print(
      `${counted(threads, 'thread')}, ${counted(walked.events, 'event')}: ${damaged === 0 ? 'intact' : `${damaged} damaged`}`,
    )
  }
  return damaged > 0 ? EXIT.otherAnswer : EXIT.done
}

async function* reportsOf(
  check: Checking,
  { streams, refused, ends }: Walked,
  claims: Awaited<ReturnType<typeof claimsOf>>,
): AsyncGenerator<ThreadReport> {
  for (const stream of streams) {
    const report = await checkThread(check, stream, claims.get(stream) ?? [])
    const { version, position, reason } = refused.get(stream) ?? {}
    if (report.fault || reason === undefined) yield report
    else
      yield {
        ...report,
        fault: { code: 'not-accepted', version, position, message: `Acceptance refuses the record: ${reason}.` },
      }
  }
  for (const stream of lost(check, streams, claims.keys())) {
    const position = await beginning(check, stream)
    // Opened after the walk has passed the end of the log.
    if (position && position.offset >= (ends.get(position.partition) ?? 0n)) continue
    const report = await checkThread(check, stream, [])
    const message = position
      ? 'Whoever reads the whole log does not come by this thread.'
      : 'The log has no event of a thread that its index or its checkpoints have.'
    yield { ...report, fault: { code: 'missing', version: 1, position, message } }
  }
}

async function beginning({ backend }: Checking, stream: StreamKey): Promise<Position | undefined> {
  for await (const [first] of backend.events.read(stream)) return first?.position
  return undefined
}

function lost({ backend, indexed }: Checking, streams: ReadonlySet<StreamKey>, claimed: Iterable<StreamKey>): Set<StreamKey> {
  const known = new Set(claimed)
  let rows: ThreadRow[] = []
  if (indexed)
    do {
      rows = listThreads(backend.tables, { limit: 500, after: rows.at(-1)?.id })
      for (const { stream } of rows) known.add(stream)
    } while (rows.length === 500)
  return known.difference(streams)
}

const reportJson = ({ stream, key, events, head, fault }: ThreadReport): JsonObject => ({
  stream,
  thread: key ? refText({ stream, key }) : null,
  ok: fault === undefined,
  events,
  head: { version: head.version, hash: head.hash },
  ...(fault && faultJson(fault)),
})

const faultJson = ({ code, version, position, message }: Fault): JsonObject => ({
  code,
  version: version ?? null,
  partition: position?.partition ?? null,
  offset: position === undefined ? null : String(position.offset),
  message,
})

const COLUMNS: Column<ThreadReport>[] = [
  {
    name: 'STATE',
    text: ({ fault }) => (fault ? 'damaged' : 'ok'),
    style: ({ fault }) => outcomeStyle(fault ? 'damaged' : 'ok'),
  },
  { name: 'EVENTS', text: ({ events }) => String(events), right: true },
  { name: 'HEAD', text: ({ head }) => head.hash.slice(0, 12) },
  { name: 'FAULT', text: ({ fault }) => fault?.code ?? '' },
  { name: 'VERSION', text: ({ fault }) => String(fault?.version ?? ''), right: true },
  { name: 'OFFSET', text: ({ fault }) => (fault?.position ? `${fault.position.partition}@${fault.position.offset}` : '') },
  { name: 'THREAD', text: refText },
  { name: 'NOTE', text: ({ fault }) => fault?.message ?? '' },
]
