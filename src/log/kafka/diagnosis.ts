import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Kafka } from 'kafkajs'
import { systemClock, type ThreadlogError } from '../../base/index.ts'
import { asked } from './admin.ts'
import { clientOf, type KafkaConnection, producerOf } from './connection.ts'
import { DirectReader } from './direct.ts'
import { translate } from './errors.ts'
import { PROGRESS, type Progress, type ProgressRow, progressOf } from './ingest.ts'
import { probeLineage } from './lineage.ts'
import { type Extent, extentOf } from './origin.ts'
import { KafkaOwners } from './owners.ts'
import { CARRIERS, groupProgress } from './progress.ts'
import { markOf, type ReplicaOf } from './replica.ts'
import { checkTopics, type TopicFinding } from './topic-admin.ts'
import { range, topicName } from './topic-plan.ts'

export interface DiagnosisOptions extends KafkaConnection {
  prefix: string
  /** File of the replica to look at, or a function that names it. */
  replica: string | ((of: ReplicaOf) => string)
}

/** What a look at a cluster found. Nothing is written but the records that time acknowledgements. */
export interface Diagnosis {
  cluster: string
  brokers: number
  partitions: number
  topics: TopicFinding[]
  replica: ReplicaReport
  /** Milliseconds, of sends with acks=all to `.commands`. */
  acknowledgement: { samples: number; p50: number; p99: number }
  group: { name: string; state: string; members: number }
  /** Processes that gave a sign of life in the last seconds. */
  owners: { id: string; pid: number; ageMs: number }[]
  /** Records of `.results` that no engine has judged yet. */
  unjudged: bigint
}

export interface ReplicaReport {
  file: string
  /** `foreign`: of another log or partition count. */
  state: 'missing' | 'foreign' | 'unreadable' | 'present'
  partitions: { partition: number; next: bigint; end: bigint; voids: number; lineage: ThreadlogError | undefined }[]
}

/** Sends that are timed; the first few, which open connections, are not counted. */
const SAMPLES = 24
const WARM_UP = 4

/** @throws ThreadlogError `log_unavailable`, `log_unauthorized`, `topic_missing` when there is too little to look at */
export async function diagnoseKafka(options: DiagnosisOptions): Promise<Diagnosis> {
  const { prefix } = options
  const kafka = clientOf(options)
  const topics = await checkTopics(kafka, { prefix })
  const events = topicName(prefix, 'events')
  const absent = topics.find(({ topic, setting }) => setting === 'topic' && needed(prefix).includes(topic))
  if (absent) throw translate({ type: 'UNKNOWN_TOPIC_OR_PARTITION' }, absent.topic)
  const reader = new DirectReader(kafka)
  try {
    const { clusterId: cluster, brokers } = await asked(kafka, prefix, (admin) => admin.describeCluster())
    const partitions = await reader.partitions(events)
    const of = { cluster, prefix, partitions }
    const file = typeof options.replica === 'string' ? options.replica : options.replica(of)
    return {
      cluster,
      brokers: brokers.length,
      partitions,
      topics,
      replica: await replicaReport(reader, file, of),
      acknowledgement: await acknowledgements(kafka, prefix, partitions),
      group: await groupOf(kafka, prefix),
      owners: await ownersOf(kafka, reader, prefix),
      unjudged: await unjudged(kafka, reader, prefix, partitions),
    }
  } catch (error) {
    throw translate(error, events)
  } finally {
    await reader.close()
  }
}

const needed = (prefix: string): string[] => (['events', 'commands', 'results'] as const).map((topic) => topicName(prefix, topic))

/** Reads what the replica says of itself, without keeping it up, and compares its last records with the log. */
async function replicaReport(reader: DirectReader, file: string, of: ReplicaOf): Promise<ReplicaReport> {
  const report = (state: ReplicaReport['state']): ReplicaReport => ({ file, state, partitions: [] })
  if (!existsSync(file)) return report('missing')
  let saved: SavedReplica
  try {
    saved = savedReplica(file)
  } catch {
    return report('unreadable')
  }
  if (saved.of !== markOf(of)) return report('foreign')
  const topic = topicName(of.prefix, 'events')
  const all = range(of.partitions)
  const ends = await reader.patiently(() => reader.offsets(topic, all, 'end'))
  const partitions = await Promise.all(
    all.map(async (partition) => {
      const progress: Progress = saved.progress.get(partition) ?? { next: 0n, last: undefined, voids: 0 }
      const lineage = await reader.patiently(() => probeLineage(reader, { topic, partition, progress }))
      return { partition, next: progress.next, end: ends.get(partition)!, voids: progress.voids, lineage }
    }),
  )
  return { file, state: 'present', partitions }
}

interface SavedReplica {
  of: string | undefined
  progress: Map<number, Progress>
}

function savedReplica(file: string): SavedReplica {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const of = database.prepare("SELECT value FROM meta WHERE name = 'replica_of'").get() as { value: string } | undefined
    const rows = database.prepare(PROGRESS).all() as unknown as ProgressRow[]
    return { of: of?.value, progress: new Map(rows.map((row) => [row.partition, progressOf(row)])) }
  } finally {
    database.close()
  }
}

async function acknowledgements(kafka: Kafka, prefix: string, partitions: number): Promise<Diagnosis['acknowledgement']> {
  const topic = topicName(prefix, 'commands')
  const producer = producerOf(kafka, { idempotent: false })
  try {
    await producer.connect()
    const times: number[] = []
    for (let i = 0; i < WARM_UP + SAMPLES; i++) {
      const began = performance.now()
      await producer.send({ topic, acks: -1, messages: [{ partition: i % partitions, key: 'doctor', value: '{"doctor":true}' }] })
      if (i >= WARM_UP) times.push(performance.now() - began)
    }
    times.sort((a, b) => a - b)
    const at = (share: number): number =>
      Math.round(times[Math.min(times.length - 1, Math.floor(share * times.length))]! * 100) / 100
    return { samples: times.length, p50: at(0.5), p99: at(0.99) }
  } catch (error) {
    throw translate(error, topic)
  } finally {
    await producer.disconnect().catch(() => {})
  }
}

async function groupOf(kafka: Kafka, prefix: string): Promise<Diagnosis['group']> {
  const name = `${prefix}.engines`
  const { groups } = await asked(kafka, name, (admin) => admin.describeGroups([name]))
  const [group] = groups
  return { name, state: group?.state ?? 'Dead', members: group?.members.length ?? 0 }
}

async function ownersOf(kafka: Kafka, reader: DirectReader, prefix: string): Promise<Diagnosis['owners']> {
  const owners = new KafkaOwners({ kafka, reader, topic: topicName(prefix, 'commands'), clock: systemClock })
  return owners.alive()
}

async function unjudged(kafka: Kafka, reader: DirectReader, prefix: string, partitions: number): Promise<bigint> {
  const topic = topicName(prefix, 'results')
  const all = range(partitions)
  const ends = await reader.patiently(() => reader.offsets(topic, all, 'committed'))
  const firsts = await reader.patiently(() => reader.offsets(topic, all, 'first'))
  const extents = new Map<number, Extent>()
  for (const partition of all) extents.set(partition, await reader.patiently(() => extentOf(reader, topic, partition)))
  const saved = await groupProgress(kafka, reader, {
    extents,
    group: 'intake',
    topic: 'results',
    partitions: all,
    carriers: CARRIERS.results!.map((carrier) => topicName(prefix, carrier)),
    saved: { group: `${prefix}.intake`, topic },
  })
  return all.reduce((sum, partition) => {
    const left = ends.get(partition)! - (saved.get(partition) ?? firsts.get(partition)!)
    return left > 0n ? sum + left : sum
  }, 0n)
}
