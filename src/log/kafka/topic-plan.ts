/** The topics of one log by their short names (design §6 "Topics"). */
export const TOPIC_NAMES = ['events', 'requests', 'results', 'receipts', 'checkpoints', 'content', 'commands'] as const
export type KafkaTopic = (typeof TOPIC_NAMES)[number]

export const DEFAULT_PREFIX = 'threadlog'
/** Few: the number of record batches is what costs (design §4). */
export const DEFAULT_PARTITIONS = 4

/** Numbers of the partitions of a topic. */
export const range = (partitions: number): number[] => Array.from({ length: partitions }, (_, partition) => partition)

/** Full name of a topic. */
export const topicName = (prefix: string, topic: KafkaTopic): string => `${prefix}.${topic}`

/** Room for a commit of 900,000 bytes and its batch. */
const MESSAGE_BYTES = 1_048_588
const DAY_MS = 86_400_000

/** One setting of a topic: what is made, and what another value of it means. */
export interface Setting {
  readonly name: string
  readonly value: string
  readonly accepts: (value: string) => boolean
  /** `error`: an engine does not start on it. */
  readonly severity: 'error' | 'warning'
  /** What goes wrong with another value. */
  readonly because: string
}

const is = (name: string, value: string, severity: Setting['severity'], because: string): Setting => ({
  name,
  value,
  accepts: (found) => found === value,
  severity,
  because,
})

const room = (severity: Setting['severity']): Setting => ({
  name: 'max.message.bytes',
  value: String(MESSAGE_BYTES),
  accepts: (found) => Number(found) >= MESSAGE_BYTES,
  severity,
  because: 'a commit of the largest size would be refused',
})

const truth: readonly Setting[] = [
  is('cleanup.policy', 'delete', 'error', 'compaction would remove events'),
  is('retention.ms', '-1', 'error', 'events would be deleted by age'),
  is('retention.bytes', '-1', 'error', 'events would be deleted by size'),
  is('unclean.leader.election.enable', 'false', 'error', 'acknowledged events could be lost'),
  is('message.timestamp.type', 'CreateTime', 'warning', 'times of records would be those of the broker'),
  room('error'),
]

const edge: readonly Setting[] = [
  is('cleanup.policy', 'delete', 'error', 'compaction would remove records of one key'),
  is('retention.ms', '-1', 'warning', 'records are gone after that time, also unread ones'),
  room('warning'),
]

/** Replicas that must have a record before it is acknowledged: all but one, so that a broker may be away. */
export const insyncReplicas = (copies: number): number => Math.max(1, copies - 1)

/** The settings of each topic. Replication and `min.insync.replicas` depend on the cluster and are checked apart. */
export const SETTINGS: Readonly<Record<KafkaTopic, readonly Setting[]>> = {
  events: truth,
  requests: edge,
  results: edge,
  receipts: edge,
  checkpoints: [is('cleanup.policy', 'compact', 'warning', 'old checkpoints would be kept, or new ones lost'), room('warning')],
  content: [
    is('cleanup.policy', 'delete', 'error', 'chunks would be removed'),
    is('retention.ms', '-1', 'error', 'content would be deleted by age'),
  ],
  commands: [{ ...is('retention.ms', String(DAY_MS), 'warning', ''), accepts: () => true }],
}
