import type { Command } from 'commander'
import { type JsonObject, Payload } from '../../base/index.ts'
import type { ThreadKey } from '../../events/index.ts'
import type { LogBackend, RecordedEvent } from '../../log/index.ts'
import { verifyRecords } from '../../projections/index.ts'
import type { Context } from '../context.ts'
import { after } from '../deadline.ts'
import { EXIT, timedOut, usage } from '../errors.ts'
import { followEvents } from '../follow.ts'
import { counted, durationText, isoTime, parseDuration } from '../format.ts'
import { looking } from '../logs.ts'
import { action, count, names, parsed, type Session, showsPayloads, showsTimes } from '../options.ts'
import { fieldsJson, payloadText, valueText } from '../payloads.ts'
import { eventJson, typeFilter, typeOf } from '../records.ts'
import { findThreadRef, type Scope, type ThreadRef, threadJson } from '../references.ts'
import { type Group, groupEvents, rangesText } from '../show/groups.ts'
import { noteOf, outcomeOf, whatOf } from '../show/outcome.ts'
import { type Column, outcomeStyle, tableLines } from '../table.ts'
import { parseVersion, readUpTo, recordsUpTo, type VersionSpec } from '../versions.ts'
import { threadArgument } from './thread-argument.ts'

interface Options extends Scope {
  at?: VersionSpec
  types?: string[]
  all?: boolean
  limit: number
  groups?: boolean
  detail?: boolean
  from: number
  follow?: boolean
  until?: string[]
  timeout?: number
}

/** `threadlog show` */
export function showCommand(program: Command, session: Session): void {
  const command = threadArgument(program.command('show'))
    .summary('the events of a thread as a table')
    .description('Shows what happened on a thread, one event a line, or grouped by runs, model requests, calls and waits.')
    .option('--at <version>', 'up to a version, -N (N events before the newest), or @<ISO time>', parsed(parseVersion))
    .option('--types <types>', 'only these, separated by commas: run.suspended, or tool for all of tool.*', names)
    .option('--limit <count>', 'the newest so many events in text', count(1), 100)
    .option('--all', 'every event, whatever --limit says')
    .option('--groups', 'grouped, with how long each took')
    .option('--detail', 'all fields of each event below its line')
    .option('--from <version>', 'with --follow: only events after this version', count(0), 0)
    .option('--follow', 'go on with events as they come (-o jsonl)')
    .option('--until <types>', 'with --follow: end after an event of one of these types, told ones included', names)
    .option('--timeout <duration>', 'with --follow: give up after this time', parsed(parseDuration))
    .addHelpText(
      'after',
      '\nThe last line of text says whether the hash chain holds; threadlog verify checks more. Exit code 3 when --timeout has passed.',
    )
  action<Options, [string]>(showsTimes(showsPayloads(command)), session, async (context, o, reference) => {
    check(o)
    return looking(context.log, async (backend) => {
      const ref = await findThreadRef(backend, reference, o)
      if (o.follow) return follow(context, backend, ref, o)
      const records = await readUpTo(backend, ref.stream, o.at, context.signal)
      await (o.groups ? showGroups(context, ref, records) : showEvents(context, ref, records, o))
    })
  })
}

function check(o: Options): void {
  const excluded = (names: string) => usage(`${names} do not go together.`)
  if (o.groups && (o.types || o.detail || o.follow)) throw excluded('--groups and --types, --detail or --follow')
  if (o.follow && o.at) throw excluded('--follow and --at')
  if (!o.follow && (o.until || o.timeout !== undefined || o.from > 0))
    throw usage('--until, --timeout and --from go with --follow.')
}

async function showEvents(context: Context, ref: ThreadRef, records: readonly RecordedEvent[], o: Options): Promise<void> {
  const wanted = records.filter(typeFilter(o.types))
  if (context.format !== 'text') {
    const events = wanted.map((record) => eventJson(record, context.payloads))
    if (context.format === 'json') return context.document({ ...headJson(ref, records), events })
    for (const event of events) await context.record(event)
    return
  }
  const shown = o.all ? wanted : wanted.slice(-o.limit)
  if (shown.length < wanted.length)
    context.io.note(`${counted(wanted.length - shown.length, 'earlier event')} not shown; --all shows every one.`)
  const columns: Column<RecordedEvent>[] = [
    { name: 'VERSION', text: (record) => String(record.version), right: true },
    { name: 'TIME', text: ({ event }) => (event ? context.timeText(event.time) : '') },
    { name: 'WHAT', text: (record) => (record.event ? whatOf(record.event) : (typeOf(record) ?? 'unreadable')) },
    { name: 'OUTCOME', text: outcomeText, style: (record) => outcomeStyle(outcomeText(record)) },
    { name: 'NOTE', text: ({ event, defect }) => (event ? noteOf(event, context.payloads) : (defect?.message ?? '')) },
  ]
  const [heading, ...lines] = tableLines(columns, shown, context.io.paint)
  await context.print(heading as string)
  for (const [i, line] of lines.entries()) {
    await context.print(line)
    if (o.detail) for (const field of detailLines(context, shown[i] as RecordedEvent)) await context.print(field)
  }
  await context.print(summary(ref, records))
}

const outcomeText = ({ event }: RecordedEvent): string => (event ? outcomeOf(event) : 'unreadable')

/** Fields and where the event stands, one a line; what is absent is left out. */
function detailLines({ payloads }: Context, { event, hash, position }: RecordedEvent): string[] {
  const { commit, actor, causation, run_id, attempt } = event ?? {}
  const where = { run: run_id, attempt, actor, causation, commit, hash, offset: `${position.partition}@${position.offset}` }
  return Object.entries({ ...event?.data, ...where }).flatMap(([name, value]) => {
    if (value === undefined || value === null || (value === run_id && name === 'run_id')) return []
    const text = value instanceof Payload ? payloadText(value, payloads) : valueText(fieldsJson(value, payloads), 'full')
    return [`         ${name.padEnd(18)}${text}`.trimEnd()]
  })
}

async function showGroups(context: Context, ref: ThreadRef, records: readonly RecordedEvent[]): Promise<void> {
  const groups = groupEvents(records)
  const { now } = context
  if (context.format === 'json')
    return context.document({ ...headJson(ref, records), groups: groups.map((group) => groupJson(group, now)) })
  if (context.format === 'jsonl') {
    for (const group of groups) await context.record(groupJson(group, now))
    return
  }
  const rows = groups.flatMap((group) => [
    { group, stem: '' },
    ...group.parts.map((part, i) => ({ group: part, stem: i === group.parts.length - 1 ? '└ ' : '├ ' })),
  ])
  await context.table(
    [
      { name: 'VERSION', text: ({ group }) => rangesText(group.versions) },
      { name: 'TIME', text: ({ group }) => context.timeText(group.time) },
      { name: 'WHAT', text: ({ group, stem }) => stem + group.what },
      { name: 'OUTCOME', text: ({ group }) => group.outcome, style: ({ group }) => outcomeStyle(group.outcome) },
      { name: 'TOOK', text: ({ group }) => (group.kind === 'event' ? '' : durationText(tookMs(group, now))) },
      { name: 'NOTE', text: ({ group }) => group.note },
    ],
    rows,
  )
  await context.print(summary(ref, records))
}

const tookMs = ({ open, until, time }: Group, now: number): number => Math.max(0, (open ? now : until) - time)

const groupJson = (group: Group, now: number): JsonObject => ({
  kind: group.kind,
  versions: group.versions,
  time: isoTime(group.time),
  what: group.what,
  outcome: group.outcome,
  open: group.open,
  took_ms: tookMs(group, now),
  note: group.note,
  ...(group.kind === 'run' && { parts: group.parts.map((part) => groupJson(part, now)) }),
})

/** The chain of what is shown: it may end within a commit. */
function chainOf({ stream }: ThreadRef, records: readonly RecordedEvent[]) {
  const { head, damage, folded } = verifyRecords(stream, records)
  const isCut = damage?.code === 'commit-incomplete' && damage.version > head.version
  return { head, damage: isCut ? undefined : damage, folded }
}

function headJson(ref: ThreadRef, records: readonly RecordedEvent[]): JsonObject {
  const { head, damage, folded } = chainOf(ref, records)
  const chain: JsonObject = damage ? { intact: false, code: damage.code, version: damage.version } : { intact: true }
  return {
    thread: threadJson(ref.stream, keyOf(ref, folded.state.identity)),
    head: { version: head.version, hash: head.hash },
    chain,
  }
}

const keyOf = (ref: ThreadRef, identity: ThreadKey | undefined): ThreadKey | undefined => ref.key ?? identity

function summary(ref: ThreadRef, records: readonly RecordedEvent[]): string {
  const { head, damage } = chainOf(ref, records)
  const chain = damage ? `damaged at version ${damage.version} (${damage.code})` : 'chain intact'
  return `${counted(records.length, 'event')}, head ${head.version} (${head.hash.slice(0, 6)}…), ${chain}`
}

async function follow(context: Context, backend: LogBackend, ref: ThreadRef, o: Options): Promise<number> {
  const late = o.timeout === undefined ? undefined : after(o.timeout)
  const signal = late ? AbortSignal.any([context.signal, late]) : context.signal
  const isWanted = typeFilter(o.types)
  const isLast = o.until ? typeFilter(o.until) : () => false
  // Before the events so far are read, so that nothing falls between.
  const news = followEvents(backend, { io: context.io, signal })
  let told = o.from
  const tell = async (record: RecordedEvent): Promise<boolean> => {
    told = record.version
    if (isWanted(record)) await context.record(eventJson(record, context.payloads))
    return isLast(record)
  }
  for await (const record of recordsUpTo(backend, ref.stream, { after: o.from, signal })) if (await tell(record)) return EXIT.done
  for await (const record of news)
    if (record.stream === ref.stream && record.version > told && (await tell(record))) return EXIT.done
  if (context.signal.aborted || !late) return EXIT.done
  throw timedOut(`Nothing ended the wait within ${durationText(o.timeout as number)}.`, { details: { version: told } })
}
