import kafkajs, { type Admin, type ITopicConfig, type Kafka } from 'kafkajs'
import { reject } from '../../base/index.ts'
import { asked } from './admin.ts'
import { isKind, MISSING } from './errors.ts'
import { DEFAULT_PARTITIONS, insyncReplicas, type KafkaTopic, SETTINGS, TOPIC_NAMES, topicName } from './topic-plan.ts'

/** Something a topic has that it should not have. */
export interface TopicFinding {
  /** Full name. */
  topic: string
  severity: 'error' | 'warning'
  /** Name of the setting; `partitions`, `replication.factor`, or `topic` when it is missing. */
  setting: string
  found: string
  expected: string
  because: string
}

export interface TopicLayout {
  prefix: string
  /** Default 4. Fixed for the life of the log. */
  partitions?: number
  /** Copies of each partition. Default: 3, or as many as there are brokers. */
  replication?: number
}

/** Makes the topics that are missing; leaves the others as they are. Returns the full names of those made. */
export function createTopics(
  kafka: Kafka,
  { prefix, partitions = DEFAULT_PARTITIONS, replication }: TopicLayout,
): Promise<string[]> {
  return asked(kafka, prefix, async (admin) => {
    const { brokers } = await admin.describeCluster()
    const copies = replication ?? Math.min(3, brokers.length)
    const existing = new Set(await admin.listTopics())
    const missing = TOPIC_NAMES.filter((topic) => !existing.has(topicName(prefix, topic)))
    if (missing.length === 0) return []
    await make(
      admin,
      missing.map((topic) => ({
        topic: topicName(prefix, topic),
        numPartitions: partitions,
        replicationFactor: copies,
        configEntries: [
          ...SETTINGS[topic].map(({ name, value }) => ({ name, value })),
          { name: INSYNC, value: String(insyncReplicas(copies)) },
        ],
      })),
    )
    const made = missing.map((topic) => topicName(prefix, topic))
    await haveLeaders(admin, made)
    return made
  })
}

/** Another process may make the same ones at this moment. @throws ThreadlogError `topics_refused` for a layout the cluster cannot have */
async function make(admin: Admin, topics: ITopicConfig[]): Promise<void> {
  try {
    await admin.createTopics({ waitForLeaders: false, topics })
  } catch (error) {
    const { errors = [] } = error as { errors?: { type?: string; topic?: string }[] }
    const refused = errors.find(({ type = '' }) => REFUSALS.has(type))
    if (!refused) throw error
    throw reject('topics_refused', 'The cluster cannot make a topic like this.', {
      path: refused.topic ?? 'topics',
      expected: 'a replication factor of at most the number of brokers, partitions, settings and names that the cluster allows',
      details: { kind: refused.type ?? 'unknown' },
    })
  }
}

const REFUSALS = new Set([
  'INVALID_REPLICATION_FACTOR',
  'INVALID_PARTITIONS',
  'INVALID_CONFIG',
  'INVALID_TOPIC_EXCEPTION',
  'POLICY_VIOLATION',
])

/** Milliseconds a new topic may take to have a leader for each partition. */
const LEADERS_MS = 20_000

async function haveLeaders(admin: Admin, topics: string[]): Promise<void> {
  const deadline = performance.now() + LEADERS_MS
  for (;;) {
    let missing: unknown = Object.assign(new Error('a partition has no leader'), { type: 'LEADER_NOT_AVAILABLE' })
    try {
      const found = await admin.fetchTopicMetadata({ topics })
      if (found.topics.every(({ partitions }) => partitions.length > 0 && partitions.every(({ leader }) => leader >= 0))) return
    } catch (error) {
      if (!isKind(error, ...MISSING, 'LEADER_NOT_AVAILABLE')) throw error
      missing = error
    }
    if (performance.now() > deadline) throw missing
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/**
 * What differs from the plan.
 * @param layout.partitions how many the caller expects; default: as many as `.events` has
 * @param layout.replication how many copies the caller expects; default: 3, or as many as there are brokers
 */
export function checkTopics(kafka: Kafka, layout: TopicLayout): Promise<TopicFinding[]> {
  const { prefix } = layout
  return asked(kafka, prefix, async (admin) => {
    const existing = new Set(await admin.listTopics())
    const [missing, present] = [false, true].map((there) =>
      TOPIC_NAMES.filter((topic) => existing.has(topicName(prefix, topic)) === there),
    )
    const findings = missing!.map((topic) => missingTopic(topicName(prefix, topic)))
    if (present!.length === 0) return findings
    const { copies, found } = await layoutOf(admin, layout, present!)
    return [...findings, ...found, ...(await settingsOf(admin, prefix, present!, copies))]
  })
}

/**
 * Refuses a log whose topics would lose or reorder events.
 * @returns the warnings that are left
 * @throws ThreadlogError `topic_missing`, `topic_misconfigured` with the topic and setting
 */
export async function requireTopics(kafka: Kafka, layout: TopicLayout): Promise<TopicFinding[]> {
  const findings = await checkTopics(kafka, layout)
  const wrong = findings.find((finding) => finding.severity === 'error')
  if (!wrong) return findings
  const { topic, setting, found, expected, because } = wrong
  if (setting === 'topic')
    throw reject('topic_missing', `The topic ${topic} does not exist.`, { path: topic, hint: 'Run `threadlog topics create`.' })
  throw reject('topic_misconfigured', `The topic ${topic} has ${setting} = ${found}: ${because}.`, {
    path: topic,
    expected: `${setting} = ${expected}`,
    hint: 'Run `threadlog topics check` for all that differs, and change the topic.',
    details: { setting, found, wanted: expected },
  })
}

const missingTopic = (topic: string): TopicFinding => ({
  topic,
  severity: 'error',
  setting: 'topic',
  found: 'missing',
  expected: 'present',
  because: 'the topic does not exist',
})

async function layoutOf(
  admin: Admin,
  { prefix, ...wanted }: TopicLayout,
  present: readonly KafkaTopic[],
): Promise<{ copies: Map<string, number>; found: TopicFinding[] }> {
  const { topics } = await admin.fetchTopicMetadata({ topics: present.map((topic) => topicName(prefix, topic)) })
  const { brokers } = await admin.describeCluster()
  const partitionsOf = (short: KafkaTopic) => topics.find(({ name }) => name === topicName(prefix, short))?.partitions.length
  const count = wanted.partitions ?? partitionsOf('events') ?? DEFAULT_PARTITIONS
  const replication = wanted.replication ?? Math.min(3, brokers.length)
  const copies = new Map<string, number>()
  const found: TopicFinding[] = []
  for (const { name: topic, partitions } of topics) {
    if (partitions.length !== count)
      found.push({
        topic,
        severity: 'error',
        setting: 'partitions',
        found: String(partitions.length),
        expected: String(count),
        because: 'a thread has its partition for life, the same in every topic',
      })
    const fewest = Math.min(...partitions.map(({ replicas }) => replicas.length))
    copies.set(topic, fewest)
    if (fewest < replication)
      found.push({
        topic,
        severity: 'warning',
        setting: 'replication.factor',
        found: String(fewest),
        expected: String(replication),
        because: 'the loss of one broker can lose acknowledged records',
      })
  }
  return { copies, found }
}

async function settingsOf(
  admin: Admin,
  prefix: string,
  present: readonly KafkaTopic[],
  copies: ReadonlyMap<string, number>,
): Promise<TopicFinding[]> {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: present.map((topic) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name: topicName(prefix, topic) })),
  })
  return present.flatMap((short) => {
    const topic = topicName(prefix, short)
    const entries = resources.find(({ resourceName }) => resourceName === topic)?.configEntries ?? []
    const settingOf = (setting: string): string => entries.find(({ configName }) => configName === setting)?.configValue ?? ''
    const settings = SETTINGS[short].flatMap(({ name, value, accepts, severity, because }) => {
      const found = settingOf(name)
      return accepts(found) ? [] : [{ topic, severity, setting: name, found, expected: value, because }]
    })
    return [...settings, ...insyncOf(topic, settingOf(INSYNC), copies.get(topic) ?? 1)]
  })
}

const INSYNC = 'min.insync.replicas'

function insyncOf(topic: string, found: string, copies: number): TopicFinding[] {
  const expected = insyncReplicas(copies)
  if (Number(found) === expected) return []
  const finding = { topic, setting: INSYNC, found, expected: String(expected) }
  if (Number(found) > copies) return [{ ...finding, severity: 'error', because: 'no record could be acknowledged' }]
  if (Number(found) > expected)
    return [{ ...finding, severity: 'warning', because: 'no record is acknowledged while one broker is away' }]
  return [{ ...finding, severity: 'warning', because: 'the loss of one broker can lose acknowledged records' }]
}
