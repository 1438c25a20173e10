import { systemIds } from '../../../src/base/index.ts'
import { type Commit, decodeEnvelope, encodeCommit, ZERO_HASH } from '../../../src/events/index.ts'
import { partitionOf } from '../../../src/log/index.ts'
import { clientOf } from '../../../src/log/kafka/index.ts'
import type { LogPlace } from '../../../src/testing/index.ts'
import { kafkaPlace } from '../../support/kafka/place.ts'

/** A record as any client may write it. */
interface HandMade {
  topic: string
  key?: string
  value: Buffer | null
  partition?: number
}

/** Writes records in one batch of each partition. */
export async function produce(brokers: readonly string[], records: readonly HandMade[]): Promise<void> {
  const producer = clientOf({ brokers }).producer({ allowAutoTopicCreation: false })
  await producer.connect()
  try {
    await producer.sendBatch({
      acks: -1,
      topicMessages: records.map(({ topic, key, ...message }) => ({ topic, messages: [{ key: key ?? null, ...message }] })),
    })
  } finally {
    await producer.disconnect()
  }
}

/** A log of the conformance suite on a broker: each time it is opened, it reads into a copy of its own. */
export async function conformancePlace(brokers: readonly string[], partitions: number): Promise<LogPlace> {
  const place = await kafkaPlace({ brokers, partitions })
  const { prefix } = place
  const events = `${prefix}.events`
  let opened = 0
  const open = () => place.open({ replica: place.replica(`${opened++}`) })
  const send = ({ stream, records }: Commit, change: (bytes: Buffer) => Buffer = (bytes) => bytes) =>
    produce(
      brokers,
      records.map(({ bytes }) => ({
        topic: events,
        key: stream,
        value: change(Buffer.from(bytes)),
        partition: partitionOf(stream, partitions),
      })),
    )
  return {
    open,
    remove: () => place.remove(),
    remote: { module: new URL('./kafka-remote.ts', import.meta.url).href, url: JSON.stringify({ brokers, prefix }) },
    copies: true,
    send: (commit) => send(commit),
    external: {
      javascript: (value) => produce(brokers, [{ topic: `${prefix}.results`, value: Buffer.from(value), partition: 0 }]),
    },
    damage: async (stream, version) => {
      const log = await open()
      const head = await log.events.head(stream)
      const time = Date.now()
      const commit = encodeCommit(
        {
          stream,
          base: version - 1,
          previous: head?.hash ?? ZERO_HASH,
          id: systemIds.commit(time),
          time,
          actor: { kind: 'api', id: '', source: 'newer' },
        },
        [{ type: 'run.cancel-requested/1', data: { run_id: 'r', command_id: null, reason: '' } }],
      )
      // Of a type and under a schema that only a newer build knows.
      await send(commit, (bytes) => {
        const { type } = decodeEnvelope(bytes)
        bytes.write('z'.repeat(type.length), bytes.indexOf(type), 'latin1')
        bytes.writeUInt32BE(0x7ffffff0, 1)
        return bytes
      })
    },
  }
}
