import type { Kafka } from 'kafkajs'
import { type Clock, isThreadlogError, systemClock } from '../../base/index.ts'
import type { ContentStore, EventLog, Projector, RecordedEvent, Sql } from '../ports.ts'
import {
  type Connection,
  EventStore,
  Heads,
  install,
  LogContent,
  type Participant,
  Projectors,
  readable,
  translate as translateSql,
  Wakeups,
  Writer,
} from '../store/index.ts'
import { asked } from './admin.ts'
import { CLOSE_MS, clientOf, type KafkaConnection } from './connection.ts'
import { ContentTopic, referencesIn } from './content-topic.ts'
import { DirectReader, type RawRecord } from './direct.ts'
import { closed, translate } from './errors.ts'
import { KafkaEventLog } from './event-log.ts'
import { Ingest } from './ingest.ts'
import { probeLineage } from './lineage.ts'
import { Outbox } from './outbox.ts'
import { Reached } from './reached.ts'
import { openReplica, type ReplicaOf } from './replica.ts'
import { pause, Sender } from './sender.ts'
import { TopicTail } from './tail.ts'
import { requireTopics } from './topic-admin.ts'
import { DEFAULT_PREFIX, range, topicName } from './topic-plan.ts'

export interface KafkaEventsOptions extends KafkaConnection {
  /** First part of the topic names. Default `threadlog`. */
  prefix?: string
  /** File of the local replica, or a function that names one for this log. Default: in memory, built anew each time. */
  replica?: string | ((of: ReplicaOf) => string)
  /** Where large values are kept; replicas have copies. Default: the topic `.content`. */
  content?: ContentStore | undefined
  clock?: Clock
  /** Told of what failed and is tried again, and of settings that are only unwise. */
  onTrouble?(trouble: unknown): void
}

/** The events of a log on Kafka and the tables that follow from them. */
export interface KafkaEvents {
  readonly kafka: Kafka
  readonly cluster: string
  readonly prefix: string
  readonly log: EventLog
  readonly reader: DirectReader
  readonly tables: Sql
  readonly connection: Connection
  readonly outbox: Outbox
  readonly wakeups: Wakeups
  readonly content: LogContent
  readonly contentTopic: ContentTopic
  /** Void records of each partition so far. */
  voids(): Map<number, number>
  install(projectors: readonly Projector[]): Promise<void>
  cache(change: (tx: Sql) => void): Promise<void>
  /** Takes no more commits, and lets those on their way be decided, for a while. */
  settle(): Promise<void>
  close(): Promise<void>
}

/** Milliseconds between two lineage probes (R16). */
const PROBE_MS = 30_000

/**
 * Opens the events: checks the topics, opens the replica, compares it with the log, reads to the end of the log.
 * @throws ThreadlogError `log_unavailable` (retry) · `topic_missing`, `topic_misconfigured`, `replica_foreign`, `log_unauthorized` (reject) ·
 * `log_gap`, `log_truncated`, `log_changed` (fatal)
 */
export async function openKafkaEvents(options: KafkaEventsOptions): Promise<KafkaEvents> {
  const { prefix = DEFAULT_PREFIX, clock = systemClock, onTrouble = () => {} } = options
  const kafka = clientOf(options)
  const topic = topicName(prefix, 'events')
  for (const warning of await requireTopics(kafka, { prefix })) onTrouble(warning)
  const { clusterId: cluster } = await asked(kafka, prefix, (admin) => admin.describeCluster())
  const reader = new DirectReader(kafka)
  let connection: Connection | undefined
  try {
    const partitions = await reader.partitions(topic)
    const of = { cluster, prefix, partitions }
    const { replica = ':memory:' } = options
    connection = await openReplica(typeof replica === 'string' ? replica : replica(of), of, clock)
    return await assemble({ kafka, topic, partitions, cluster, prefix, connection, reader, onTrouble, kept: options.content })
  } catch (error) {
    connection?.close()
    await reader.close()
    throw connection && !isThreadlogError(error)
      ? translate(translateSql(error, connection.file), topic)
      : translate(error, topic)
  }
}

interface Parts {
  kafka: Kafka
  topic: string
  partitions: number
  cluster: string
  prefix: string
  connection: Connection
  reader: DirectReader
  kept: ContentStore | undefined
  onTrouble(trouble: unknown): void
}

async function assemble({
  kafka,
  topic,
  partitions,
  cluster,
  prefix,
  connection,
  reader,
  kept,
  onTrouble,
}: Parts): Promise<KafkaEvents> {
  const heads = new Heads(connection)
  const store = new EventStore(connection, heads)
  // Records of the edges are published by who owns the partition, not by every replica.
  const projectors = new Projectors(connection, store, () => {})
  const outbox = new Outbox(connection, store)
  const wakeups = new Wakeups(connection, () => void (projectors.isBehind() && writer.submit(() => {}).catch(() => {})))
  let accepted = false
  const onAccepted = (events: readonly RecordedEvent[]) => {
    accepted = true
    projectors.apply(events)
    outbox.accepted(events)
    log.accepted(events)
  }
  const ingest = new Ingest(connection, { heads, store, partitions }, onAccepted, (stream) => log.sent(stream))
  const announcer: Participant = {
    begin() {},
    committed() {
      log.decided(true)
      if (accepted) wakeups.wake(['events'])
      accepted = false
    },
    rolledBack() {
      log.decided(false)
      accepted = false
    },
  }
  const writer: Writer = new Writer(connection, [heads, store, ingest, projectors, outbox, announcer], () => projectors.catchUp())
  const reached = new Reached((partition) => ingest.readTo(partition))
  const probe = new LineageWatch(partitions, async (partition) => {
    const progress = ingest.progress().get(partition)
    const found = progress && (await reader.patiently(() => probeLineage(reader, { topic, partition, progress })))
    if (found) reached.stop(partition, found)
    return found
  })
  const lookAgain = () => void probe.all().catch(onTrouble)
  const sender = new Sender({ kafka, topic, onTrouble, onRepeated: lookAgain })
  const contentTopic: ContentTopic = new ContentTopic({
    reader,
    connection,
    topic: topicName(prefix, 'content'),
    partitions,
    submit: (run) => writer.submit(run),
    table: () => content,
  })
  const content: LogContent = new LogContent(connection, (run) => writer.submit(run), kept ?? contentTopic)
  const stop = new AbortController()
  /** What events refer to is here before they are folded. A store that is away is waited for: it does not make the content missing. */
  const complete = async (records: readonly RawRecord[]) => {
    const refs = records.flatMap(({ value }) => (value ? referencesIn(value) : []))
    for (let failures = 0; refs.length > 0; failures++)
      try {
        return await content.complete(refs)
      } catch (error) {
        if (stop.signal.aborted) throw closed()
        onTrouble(translate(error, topicName(prefix, 'content')))
        await pause(failures, stop.signal)
      }
  }
  let epoch = 0
  const saved = ingest.progress()
  const tail = new TopicTail({
    kafka,
    topic,
    from: new Map(range(partitions).map((partition) => [partition, saved.get(partition)?.next ?? 0n])),
    committed: false,
    onTrouble,
    onResumed: async () => {
      await probe.all()
    },
    onStopped: (partition, error) => reached.stop(partition, error),
    onRecords: async ({ partition, records, next }) => {
      const stopped = reached.stopOf(partition)
      if (stopped !== undefined) throw stopped
      await complete(records)
      await writer.submit(() => ingest.feed(partition, records, next))
      reached.moved(partition)
      const newest = records.at(-1)?.epoch ?? 0
      if (newest > epoch && epoch !== 0) lookAgain()
      epoch = Math.max(epoch, newest)
    },
  })
  const timer = setInterval(lookAgain, PROBE_MS).unref()

  let settling: Promise<void> | undefined
  /** What was handed over is decided while the log is still read. */
  const settle = () => (settling ??= log.settle(CLOSE_MS))
  let closing: Promise<void> | undefined
  const close = () => (closing ??= shut())
  async function shut(): Promise<void> {
    clearInterval(timer)
    stop.abort()
    await settle()
    wakeups.close()
    await Promise.all([sender.close(0), tail.close(), reader.close()])
    reached.close(closed())
    await writer.close()
    connection.close()
  }
  const parts = { id: cluster, partitions, topic, connection, store, wakeups, sender, reader, reached, close }
  const log = new KafkaEventLog(parts)
  try {
    await sender.connect()
    const [changed] = await probe.all()
    if (changed) throw changed
    wakeups.observe({})
    tail.start()
    await log.barrier()
  } catch (error) {
    await close()
    throw error
  }
  return {
    kafka,
    cluster,
    prefix,
    log,
    reader,
    connection,
    outbox,
    wakeups,
    content,
    contentTopic,
    tables: readable(connection),
    voids: () => connection.look(() => new Map([...ingest.progress()].map(([partition, { voids }]) => [partition, voids]))),
    install: (wanted) => install(wanted, projectors, writer),
    cache: (change) => writer.submit(() => change(connection)),
    settle,
    close,
  }
}

/** One probe of all partitions at a time. */
class LineageWatch {
  readonly #partitions: number
  readonly #probe: (partition: number) => Promise<unknown>
  #running: Promise<unknown[]> | undefined

  constructor(partitions: number, probe: (partition: number) => Promise<unknown>) {
    this.#partitions = partitions
    this.#probe = probe
  }

  /** What was found wrong, one for each partition that is. */
  all(): Promise<unknown[]> {
    this.#running ??= Promise.all(range(this.#partitions).map(this.#probe))
      .then((found) => found.filter((each) => each !== undefined))
      .finally(() => {
        this.#running = undefined
      })
    return this.#running
  }
}
