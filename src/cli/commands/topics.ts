import { type Command, Option } from 'commander'
import { isJsonObject, type JsonObject, type JsonValue, MAX_DOCUMENT_DEPTH, Payload, parseJson } from '../../base/index.ts'
import { type Receipt, type Verdict, verdicts } from '../../continuations/index.ts'
import type { Delivery, TopicName } from '../../log/index.ts'
import type { Context } from '../context.ts'
import { followTopic } from '../follow.ts'
import { isoTime, parseSince } from '../format.ts'
import { looking } from '../logs.ts'
import { action, count, type Session, showsPayloads, showsTimes } from '../options.ts'
import { type PayloadForm, payloadJson, valueText } from '../payloads.ts'
import { sourceText } from '../receipt-view.ts'
import { positionJson } from '../records.ts'
import { type Column, outcomeStyle } from '../table.ts'

interface Options {
  app?: string
  provider?: string
  wait?: string
  thread?: string
  verdict?: Verdict
  since?: string
  limit: number
  follow?: boolean
}

/** A record of a topic and its value; `value` is empty for one that is no JSON object. */
interface Item extends Delivery {
  readonly json: JsonObject
}

interface TopicCommand {
  readonly topic: TopicName
  /** Name of one record in JSON. */
  readonly one: string
  readonly summary: string
  readonly description: string
  readonly payloads?: readonly string[]
  options(command: Command): Command
  matches(item: JsonObject, o: Options): boolean
  columns(context: Context): Column<Item>[]
}

const field = (item: Item, name: string): string => {
  const value = item.json[name]
  return typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)
}
const text = (name: string, key: string): Column<Item> => ({ name, text: (item) => field(item, key) })
const isFor = (wanted: string | undefined, value: JsonValue | undefined): boolean => wanted === undefined || wanted === value
const nameOf = (item: Item): string =>
  ['application_id', 'user_id', 'thread_id'].map((key) => encodeURIComponent(field(item, key))).join('/')

const RECEIPTS: TopicCommand = {
  topic: 'receipts',
  one: 'receipt',
  summary: 'what became of results',
  description: 'Lists receipts: the verdict on each submitted result, in the order they were given.',
  options: (command) =>
    command
      .addOption(new Option('--verdict <verdict>', 'only receipts with this verdict').choices(verdicts))
      .option('--provider <provider>', 'only receipts of this provider')
      .option('--wait <id>', 'only receipts of results addressed by this wait id'),
  matches: (json, o) =>
    isFor(o.verdict, json['verdict']) && isFor(o.provider, json['provider']) && isFor(o.wait, json['continuation_id']),
  columns: () => [
    { name: 'VERDICT', text: (item) => field(item, 'verdict'), style: (item) => outcomeStyle(field(item, 'verdict')) },
    text('PROVIDER', 'provider'),
    { name: 'SOURCE', text: (item) => sourceOf(item.json['source']) },
    text('CODE', 'code'),
    text('PATH', 'path'),
    { name: 'ADDRESS', text: (item) => field(item, 'continuation_id') || field(item, 'external_id') },
  ],
}

const sourceOf = (source: JsonValue | undefined): string => (isJsonObject(source) ? sourceText(source as Receipt['source']) : '')

const REQUESTS: TopicCommand = {
  topic: 'requests',
  one: 'request',
  summary: 'what providers are asked',
  description: 'Lists requests: what armed waits ask of providers, and which of them were taken back.',
  payloads: ['arguments'],
  options: (command) =>
    command
      .option('--app <application>', 'only requests of this application')
      .option('--provider <provider>', 'only requests to this provider')
      .option('--wait <id>', 'only requests of this wait'),
  matches: (json, o) =>
    isFor(o.app, json['application_id']) && isFor(o.provider, json['provider']) && isFor(o.wait, json['continuation_id']),
  columns: ({ payloads }) => [
    text('WAIT', 'continuation_id'),
    { name: 'STATE', text: (item) => (item.json['cancelled'] === true ? 'cancelled' : 'asked') },
    text('PROVIDER', 'provider'),
    text('TOOL', 'tool'),
    text('EXTERNAL ID', 'external_id'),
    { name: 'ARGUMENTS', text: (item) => valueText(item.json['arguments'] ?? null, payloads) },
  ],
}

const CHECKPOINTS: TopicCommand = {
  topic: 'checkpoints',
  one: 'checkpoint',
  summary: 'where runs came to a safe boundary',
  description: 'Lists checkpoints: a thread at a safe boundary of a run, with its state in JSON.',
  payloads: ['state'],
  options: (command) =>
    command
      .option('--app <application>', 'only checkpoints of this application')
      .option('--thread <id>', 'only checkpoints of threads with this id'),
  matches: (json, o) => isFor(o.app, json['application_id']) && isFor(o.thread, json['thread_id']),
  columns: () => [
    { name: 'STATUS', text: (item) => field(item, 'status'), style: (item) => outcomeStyle(field(item, 'status')) },
    { name: 'VERSION', text: (item) => field(item, 'version'), right: true },
    { name: 'WAITS', text: (item) => String(Array.isArray(item.json['waits']) ? item.json['waits'].length : 0), right: true },
    { name: 'STATE', text: (item) => field(item, 'state_digest').slice(0, 12) },
    text('RUN', 'run_id'),
    { name: 'THREAD', text: nameOf },
  ],
}

/** `threadlog receipts`, `requests` and `checkpoints` */
export function topicCommands(program: Command, session: Session): void {
  for (const topic of [RECEIPTS, REQUESTS, CHECKPOINTS]) topicCommand(program, session, topic)
}

function topicCommand(program: Command, session: Session, t: TopicCommand): void {
  const command = t
    .options(program.command(t.topic).summary(t.summary).description(t.description))
    .option('--since <when>', 'only records from then on: 24h, 7d, or an ISO time')
    .option('--limit <count>', 'the newest so many', count(1), 100)
    .option('--follow', 'go on with records as they come (-o jsonl)')
  action<Options, []>(showsTimes(t.payloads ? showsPayloads(command) : command), session, async (context, o) => {
    const since = o.since === undefined ? 0 : parseSince(o.since, context.now)
    const wanted = (item: Item): boolean => item.time >= since && t.matches(item.json, o)
    const json = (item: Item): JsonObject => itemJson(t, item, context.payloads)
    await looking(context.log, async (backend) => {
      const shown: Item[] = []
      const next = new Map<number, bigint>()
      let left = 0
      for await (const batch of backend.topics.scan(t.topic)) {
        if (context.signal.aborted) return
        for (const delivery of batch) {
          next.set(delivery.position.partition, delivery.position.offset + 1n)
          const item = itemOf(delivery)
          if (!wanted(item)) continue
          shown.push(item)
          if (shown.length > 2 * o.limit) left += shown.splice(0, shown.length - o.limit).length
        }
      }
      left += shown.splice(0, shown.length - o.limit).length
      if (left > 0) context.io.note(`${left} earlier ones are not shown; --limit shows more.`)
      const columns: Column<Item>[] = [
        { name: 'OFFSET', text: ({ position: { partition, offset } }) => `${partition}@${offset}`, right: true },
        { name: 'TIME', text: (item) => context.timeText(item.time) },
        ...t.columns(context),
      ]
      await context.list(t.topic, shown, json, columns)
      if (!o.follow) return
      for await (const delivery of followTopic(backend, t.topic, next, context)) {
        const item = itemOf(delivery)
        if (wanted(item)) await context.record(json(item))
      }
    })
  })
}

/** Rows can be written by hand, so a value may be anything. */
function itemOf(delivery: Delivery): Item {
  try {
    const json = parseJson(delivery.value, { maxDepth: MAX_DOCUMENT_DEPTH })
    return { ...delivery, json: isJsonObject(json) ? json : {} }
  } catch {
    return { ...delivery, json: {} }
  }
}

function itemJson(t: TopicCommand, { position, time, json }: Item, form: PayloadForm): JsonObject {
  const shown = { ...json }
  for (const name of t.payloads ?? []) {
    const value = shown[name]
    if (value !== undefined && value !== null) shown[name] = payloadJson(Payload.of(value), form)
  }
  return { position: positionJson(position), time: isoTime(time), [t.one]: shown }
}
