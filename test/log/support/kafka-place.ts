import { join } from 'node:path'
import { systemIds } from '../../../src/base/index.ts'
import { encodeCommit, ZERO_HASH } from '../../../src/events/index.ts'
import { partitionOf } from '../../../src/log/index.ts'
import { clientOf, createTopics, openKafkaLog } from '../../../src/log/kafka/index.ts'
import type { LogPlace } from '../../../src/testing/index.ts'
import { temporaryFolder } from './sqlite-place.ts'

/** A log on a broker, with topics of its own that are deleted afterwards, and a replica for each time it is opened. */
export async function kafkaPlace(brokers: string[], partitions: number): Promise<LogPlace> {
  const prefix = `t${systemIds.token().slice(0, 12)}`
  const folder = temporaryFolder()
  const kafka = clientOf({ brokers })
  const topics = await createTopics(kafka, { prefix, partitions })
  let opened = 0
  const open = () => openKafkaLog({ brokers, prefix, replica: join(folder.path, `${opened++}.db`) })
  return {
    open,
    remove: async () => {
      folder.remove()
      const admin = kafka.admin()
      await admin.connect()
      await admin.deleteTopics({ topics })
      await admin.disconnect()
    },
    remote: {
      module: new URL('./kafka-remote.ts', import.meta.url).href,
      url: JSON.stringify({ brokers, prefix }),
    },
    external: { javascript: (value) => produce(brokers, { topic: `${prefix}.results`, value: Buffer.from(value) }) },
    damage: async (stream, version) => {
      const log = await open()
      const head = await log.events.head(stream)
      await log.close()
      const commit = encodeCommit(
        {
          stream,
          base: version - 1,
          previous: head?.hash ?? ZERO_HASH,
          id: systemIds.commit(Date.now()),
          time: Date.now(),
          actor: { kind: 'api', id: '', source: 'newer' },
        },
        [{ type: 'run.cancel-requested/1', data: { run_id: 'r', command_id: null, reason: '' } }],
      )
      // Of a type only a newer build knows: the hash covers the body, not the schema id before it.
      const value = Buffer.from(commit.records[0]!.bytes)
      value.writeUInt32BE(0x7ffffff0, 1)
      await produce(brokers, { topic: `${prefix}.events`, key: stream, value, partition: partitionOf(stream, partitions) })
    },
  }
}

async function produce(
  brokers: string[],
  { topic, ...message }: { topic: string; key?: string; value: Buffer; partition?: number },
): Promise<void> {
  const producer = clientOf({ brokers }).producer({ allowAutoTopicCreation: false })
  await producer.connect()
  await producer.send({ topic, acks: -1, messages: [message] })
  await producer.disconnect()
}
