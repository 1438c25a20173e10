import type { Admin, Message } from 'kafkajs'
import type { Commit } from '../../../src/events/index.ts'
import type { EventLog } from '../../../src/log/index.ts'
import { clientOf, type KafkaConnection } from '../../../src/log/kafka/index.ts'
import { newStream } from '../../../src/testing/log-conformance/writing.ts'
import type { KafkaPlace } from '../../support/kafka/index.ts'

/** Type of a topic among what has settings, as kafkajs numbers them. */
const TOPIC = 2

/** Does something with an admin client. */
export async function asAdmin<T>(connection: KafkaConnection, work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = clientOf(connection).admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

/** Writes records as another program does: to any partition of any topic of the place. */
export async function writeRaw(
  place: KafkaPlace,
  topic: string,
  messages: readonly (Omit<Message, 'value'> & { value: string | Uint8Array | null })[],
  more: { compression?: number } = {},
): Promise<void> {
  const producer = clientOf(place.connection).producer({ allowAutoTopicCreation: false })
  await producer.connect()
  try {
    await producer.send({
      topic: `${place.prefix}.${topic}`,
      ...more,
      messages: messages.map(({ value, ...message }) => ({
        ...message,
        value: value === null || typeof value === 'string' ? value : Buffer.from(value),
      })),
    })
  } finally {
    await producer.disconnect()
  }
}

/** A stream nobody has used that lives in a partition. */
export function streamIn(log: EventLog, partition: number): string {
  for (;;) {
    const stream = newStream()
    if (log.partitionOf(stream) === partition) return stream
  }
}

/** The records of commits, as their sender would write them. */
export const recordsOf = (
  partition: number,
  ...commits: readonly Commit[]
): { partition: number; key: string; value: Uint8Array }[] =>
  commits.flatMap(({ stream, records }) => records.map(({ bytes }) => ({ partition, key: stream, value: bytes })))

/** The code of what a promise rejects with; what it resolved with if it does not. */
export async function codeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return { resolved: await work }
  } catch (error) {
    return (error as { code?: string }).code ?? error
  }
}

/** Waits until a condition holds. @throws after 20 s with what was waited for */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`never: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Changes settings of a topic, and waits until the brokers say so. */
export async function configure(connection: KafkaConnection, topic: string, settings: Record<string, string>): Promise<void> {
  // Those that are not named fall back to the brokers' own.
  const configEntries = Object.entries({ 'retention.ms': '-1', ...settings }).map(([name, value]) => ({ name, value }))
  await asAdmin(connection, async (admin) => {
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: TOPIC, name: topic, configEntries }] })
    await until('settings', async () => {
      const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type: TOPIC, name: topic }] })
      const found = new Map(resources[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue]))
      return configEntries.every(({ name, value }) => found.get(name) === value)
    })
  })
}

/** Gives topics more partitions, and waits until the brokers say so. */
export async function spread(connection: KafkaConnection, topics: readonly string[], count: number): Promise<void> {
  await asAdmin(connection, async (admin) => {
    await admin.createPartitions({ topicPartitions: topics.map((topic) => ({ topic, count })) })
    await until('partitions', async () => {
      const found = await admin.fetchTopicMetadata({ topics: [...topics] })
      return found.topics.every(({ partitions }) => partitions.length === count)
    })
  })
}
