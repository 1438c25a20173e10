import kafkajs, { type Admin, type Kafka } from 'kafkajs'
import { reject } from '../../base/index.ts'
import { isKind, MISSING, translate } from './errors.ts'
import { DEFAULT_PARTITIONS, type KafkaTopic, SETTINGS, TOPIC_NAMES, topicName } from './topic-plan.ts'

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
  return withAdmin(kafka, prefix, async (admin) => {
    const { brokers } = await admin.describeCluster()
    const copies = replication ?? Math.min(3, brokers.length)
    const existing = new Set(await admin.listTopics())
    const missing = TOPIC_NAMES.filter((topic) => !existing.has(topicName(prefix, topic)))
    if (missing.length === 0) return []
    await admin.createTopics({
      waitForLeaders: false,
      topics: missing.map((topic) => ({
        topic: topicName(prefix, topic),
        numPartitions: partitions,
        replicationFactor: copies,
        configEntries: [
          ...SETTINGS[topic].map(({ name, value }) => ({ name, value })),
          { name: 'min.insync.replicas', value: String(Math.max(1, copies - 1)) },
        ],
      })),
    })
    const made = missing.map((topic) => topicName(prefix, topic))
    await haveLeaders(admin, made)
    return made
  })
}

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

/** What differs from the plan. @param partitions how many the caller expects; default: as many as `.events` has */
export function checkTopics(kafka: Kafka, { prefix, partitions }: TopicLayout): Promise<TopicFinding[]> {
  return withAdmin(kafka, prefix, async (admin) => {
    const existing = new Set(await admin.listTopics())
    const [missing, present] = [false, true].map((there) =>
      TOPIC_NAMES.filter((topic) => existing.has(topicName(prefix, topic)) === there),
    )
    const findings = missing!.map((topic) => missingTopic(topicName(prefix, topic)))
    if (present!.length === 0) return findings
    return [...findings, ...(await layoutOf(admin, prefix, present!, partitions)), ...(await settingsOf(admin, prefix, present!))]
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
  prefix: string,
  present: readonly KafkaTopic[],
  wanted: number | undefined,
): Promise<TopicFinding[]> {
  const { topics } = await admin.fetchTopicMetadata({ topics: present.map((topic) => topicName(prefix, topic)) })
  const { brokers } = await admin.describeCluster()
  const expected =
    wanted ?? topics.find(({ name }) => name === topicName(prefix, 'events'))?.partitions.length ?? DEFAULT_PARTITIONS
  const findings: TopicFinding[] = []
  for (const { name: topic, partitions } of topics) {
    if (partitions.length !== expected)
      findings.push({
        topic,
        severity: 'error',
        setting: 'partitions',
        found: String(partitions.length),
        expected: String(expected),
        because: 'a thread has its partition for life, the same in every topic',
      })
    const copies = Math.min(...partitions.map(({ replicas }) => replicas.length))
    if (copies < Math.min(3, brokers.length))
      findings.push({
        topic,
        severity: 'warning',
        setting: 'replication.factor',
        found: String(copies),
        expected: String(Math.min(3, brokers.length)),
        because: 'the loss of one broker can lose acknowledged records',
      })
  }
  return findings
}

async function settingsOf(admin: Admin, prefix: string, present: readonly KafkaTopic[]): Promise<TopicFinding[]> {
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: present.map((topic) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name: topicName(prefix, topic) })),
  })
  return present.flatMap((short) => {
    const topic = topicName(prefix, short)
    const entries = resources.find(({ resourceName }) => resourceName === topic)?.configEntries ?? []
    return SETTINGS[short].flatMap(({ name, value, accepts, severity, because }) => {
      const found = entries.find(({ configName }) => configName === name)?.configValue ?? ''
      return accepts(found) ? [] : [{ topic, severity, setting: name, found, expected: value, because }]
    })
  })
}

async function withAdmin<T>(kafka: Kafka, path: string, work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = kafka.admin()
  try {
    await admin.connect()
    return await work(admin)
  } catch (error) {
    throw translate(error, path)
  } finally {
    await admin.disconnect().catch(() => {})
  }
}
