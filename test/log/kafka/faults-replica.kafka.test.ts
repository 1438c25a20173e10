import { existsSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openSqliteLog } from '../../../src/log/sqlite/index.ts'
import { grow, newStream, readStream } from '../../../src/testing/log-conformance/writing.ts'
import { describeKafka, describeOwnKafka, type KafkaPlace, kafkaPlace, ownBroker } from '../../support/kafka/index.ts'

/** A log with five events of one stream, and a replica that has read them. */
async function written(place: KafkaPlace, replica: string): Promise<string> {
  const log = await place.open({ replica })
  const stream = newStream()
  await grow(log.events, stream, 5)
  await log.close()
  return stream
}

/** Damages of a file that a crash of the disk, a careless copy or another program leave. */
const DAMAGES: Record<string, (file: string) => void> = {
  deleted: (file) => rmSync(file),
  emptied: (file) => writeFileSync(file, ''),
  'overwritten at its head': (file) => writeSync(openSync(file, 'r+'), Buffer.alloc(64, 7), 0, 64, 0),
  'overwritten in the middle': (file) => {
    const size = statSync(file).size
    writeSync(openSync(file, 'r+'), Buffer.alloc(size - 4_096, 7), 0, size - 4_096, 4_096)
  },
  'cut in half': (file) => writeFileSync(file, readFileSync(file).subarray(0, statSync(file).size >> 1)),
  'replaced by a text': (file) => writeFileSync(file, 'this is not a database'.repeat(1_000)),
}

describeKafka('a replica', () => {
  test.each(Object.keys(DAMAGES))('that is %s is built anew from the cluster', async (damage) => {
    await using place = await kafkaPlace({ partitions: 1 })
    const replica = place.replica()
    const stream = await written(place, replica)
    DAMAGES[damage]!(replica)
    const log = await place.open({ replica })
    expect(await readStream(log.events, stream)).toHaveLength(5)
    expect(existsSync(replica)).toBe(true)
    await log.close()
  })

  test('of another prefix of the same cluster is refused and stays as it is', async () => {
    await using one = await kafkaPlace({ partitions: 1 })
    await using two = await kafkaPlace({ partitions: 1 })
    const replica = one.replica()
    const stream = await written(one, replica)
    await expect(two.open({ replica })).rejects.toMatchObject({
      code: 'replica_foreign',
      disposition: 'reject',
      path: replica,
      expected: expect.stringContaining(two.prefix),
    })
    expect(await readStream((await one.open({ replica })).events, stream)).toHaveLength(5)
  })

  test('that is an embedded log is refused and stays as it is', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    const file = place.replica('embedded')
    const embedded = await openSqliteLog({ file })
    const stream = newStream()
    await grow(embedded.events, stream, 5)
    await embedded.close()
    await expect(place.open({ replica: file })).rejects.toMatchObject({ code: 'replica_foreign', path: file })
    const again = await openSqliteLog({ file })
    expect(await readStream(again.events, stream)).toHaveLength(5)
    await again.close()
  })
})

describeOwnKafka('a replica of another cluster', () => {
  test('with the same topics is refused, by the id of the cluster', async () => {
    await using first = await kafkaPlace({ partitions: 1 })
    await using broker = await ownBroker()
    await using second = await kafkaPlace({ brokers: broker.brokers, partitions: 1 })
    const replica = second.replica()
    await written(second, replica)
    const { createTopics, clientOf } = await import('../../../src/log/kafka/index.ts')
    await createTopics(clientOf(first.connection), { prefix: second.prefix, partitions: 1 })
    await expect(first.open({ replica, prefix: second.prefix })).rejects.toMatchObject({ code: 'replica_foreign', path: replica })
  })
})
