import type { Admin } from 'kafkajs'
import { expect, test } from 'vitest'
import type { LogBackend } from '../../../src/log/index.ts'
import { clientOf, createTopics } from '../../../src/log/kafka/index.ts'
import { TopicTail } from '../../../src/log/kafka/tail.ts'
import { commitOn, grow, newStream, readStream } from '../../../src/testing/log-conformance/writing.ts'
import { describeKafka, type KafkaPlace, kafkaPlace } from '../../support/kafka/index.ts'
import { asAdmin, codeOf, configure, spread, streamIn, until } from './faults-support.ts'

const eventsOf = (place: KafkaPlace) => `${place.prefix}.events`

async function deleted(admin: Admin, topic: string): Promise<void> {
  await admin.deleteTopics({ topics: [topic] })
  await until(`${topic} deleted`, async () => !(await admin.listTopics()).includes(topic))
}

/** Deletes a topic and makes the log's missing topics anew, with as many partitions as before. */
async function makeAnew(place: KafkaPlace, topic: string, partitions = 4): Promise<void> {
  await asAdmin(place.connection, (admin) => deleted(admin, topic))
  await createTopics(clientOf(place.connection), { prefix: place.prefix, partitions })
}

const deleteBefore = (place: KafkaPlace, partition: number, offset: bigint) =>
  asAdmin(place.connection, async (admin) => {
    // kafkajs deletes only from topics it has looked at.
    await admin.fetchTopicOffsets(eventsOf(place))
    await admin.deleteTopicRecords({ topic: eventsOf(place), partitions: [{ partition, offset: String(offset) }] })
  })

describeKafka('topics that are wrong', () => {
  test('none there, or one missing: topic_missing names it', async () => {
    await using place = await kafkaPlace({ topics: false })
    await expect(place.open()).rejects.toMatchObject({
      code: 'topic_missing',
      disposition: 'reject',
      path: eventsOf(place),
      hint: expect.stringContaining('topics create'),
    })
    await createTopics(clientOf(place.connection), { prefix: place.prefix })
    const receipts = `${place.prefix}.receipts`
    await asAdmin(place.connection, (admin) => deleted(admin, receipts))
    await expect(place.open()).rejects.toMatchObject({ code: 'topic_missing', path: receipts })
  })

  test('one with another number of partitions: topic_misconfigured names it, and both numbers', async () => {
    await using place = await kafkaPlace({ partitions: 2 })
    const results = `${place.prefix}.results`
    await spread(place.connection, [results], 3)
    await expect(place.open()).rejects.toMatchObject({
      code: 'topic_misconfigured',
      disposition: 'reject',
      path: results,
      expected: 'partitions = 2',
      details: { setting: 'partitions', found: '3' },
    })
  })

  test.each([
    ['cleanup.policy', 'compact'],
    ['retention.ms', '86400000'],
    ['retention.bytes', '1000000'],
    ['unclean.leader.election.enable', 'true'],
    ['max.message.bytes', '20000'],
  ])('events with %s = %s are refused, naming the setting', async (setting, value) => {
    await using place = await kafkaPlace({ partitions: 1 })
    await configure(place.connection, eventsOf(place), { [setting]: value })
    await expect(place.open()).rejects.toMatchObject({ code: 'topic_misconfigured', path: eventsOf(place), details: { setting } })
  })
})

/** Everybody who uses the partition is told, at once or as soon as it is looked at; the others go on. */
async function isStopped(log: LogBackend, partition: number, code: string): Promise<void> {
  await until(code, async () => (await codeOf(log.events.barrier(partition))) === code)
  expect(await codeOf(log.events.append(commitOn(streamIn(log.events, partition), undefined)))).toBe(code)
}

describeKafka('a log that is not the one that was read', () => {
  test('row 35, row 90, row 105: records gone that come next: log_gap at the start, with the offsets', async () => {
    await using place = await kafkaPlace({ partitions: 2 })
    const replica = place.replica()
    const log = await place.open({ replica })
    const stream = streamIn(log.events, 0)
    await grow(log.events, stream, 3)
    await log.close()
    const later = await place.open()
    await grow(later.events, stream, 5)
    await later.close()
    await deleteBefore(place, 0, 6n)
    await expect(place.open({ replica })).rejects.toMatchObject({
      code: 'log_gap',
      disposition: 'fatal',
      path: `${eventsOf(place)}[0]`,
      details: { partition: 0, next: '3', first: '6', end: '8' },
    })
    // A new replica has no better luck: the beginning is gone.
    await expect(place.open({ replica: place.replica('new') })).rejects.toMatchObject({ code: 'log_gap' })
  })

  test('records gone that were read: nothing is missing, and the replica goes on', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    const replica = place.replica()
    const log = await place.open({ replica })
    const stream = newStream()
    const head = await grow(log.events, stream, 3)
    await deleteBefore(place, 0, 3n)
    await log.close()
    const again = await place.open({ replica })
    expect(await again.events.append(commitOn(stream, head))).toMatchObject({ accepted: true })
    expect(await readStream(again.events, stream)).toHaveLength(4)
  })

  test('row 105, row 128: events made anew under a reader: it stops with a report, its process and the other readers live', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    const log = await place.open({ replica: place.replica() })
    const stream = newStream()
    await grow(log.events, stream, 3)
    await makeAnew(place, eventsOf(place), 1)
    await isStopped(log, 0, 'log_truncated')
    // What was read before can still be read.
    expect(await readStream(log.events, stream)).toHaveLength(3)
    await log.close()
    await expect(place.open({ replica: place.replica() })).rejects.toMatchObject({ code: 'log_truncated', disposition: 'fatal' })
    expect(await (await place.open({ replica: place.replica('new') })).events.head(stream)).toBeUndefined()
  })

  test('row 88, row 105, row 122: other records at the same offsets: log_changed at the start', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    const replica = place.replica()
    const log = await place.open({ replica })
    await grow(log.events, newStream(), 3)
    await log.close()
    await makeAnew(place, eventsOf(place), 1)
    const other = await place.open()
    await grow(other.events, newStream(), 5)
    await expect(place.open({ replica })).rejects.toMatchObject({
      code: 'log_changed',
      disposition: 'fatal',
      path: `${eventsOf(place)}[0]`,
      details: { last: '2', end: '5' },
    })
  })

  test('row 122: other records at the same offsets under a reader that is running: it takes none of them', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    const log = await place.open({ replica: place.replica() })
    const stream = newStream()
    const head = await grow(log.events, stream, 3)
    await makeAnew(place, eventsOf(place), 1)
    const other = await place.open()
    await grow(other.events, newStream(), 5)
    const codes = ['log_changed', 'log_truncated']
    await until('stopped', async () => codes.includes((await codeOf(log.events.append(commitOn(stream, head)))) as string))
    expect(await readStream(log.events, stream)).toHaveLength(3)
  })

  test('row 95: more partitions than when the log was made: the replica is refused', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    const log = await place.open({ replica: place.replica() })
    await grow(log.events, newStream(), 1)
    await log.close()
    const topics = await asAdmin(place.connection, (admin) => admin.listTopics())
    const mine = topics.filter((name) => name.startsWith(`${place.prefix}.`))
    await spread(place.connection, mine, 2)
    await expect(place.open({ replica: place.replica() })).rejects.toMatchObject({
      code: 'replica_foreign',
      expected: expect.stringContaining('2 partitions'),
    })
  })
})

describeKafka('a reader that is overtaken by the deletion of records', () => {
  test('row 68: that partition stops with log_gap and its offsets, the others are read on', async () => {
    await using place = await kafkaPlace({ partitions: 2 })
    const { events: log } = await place.open()
    const streams = [streamIn(log, 0), streamIn(log, 1)]
    for (const stream of streams) await grow(log, stream, 2)

    const topic = eventsOf(place)
    const read: [partition: number, offset: bigint][] = []
    const stops = new Map<number, unknown>()
    const held = Promise.withResolvers<void>()
    const tail = new TopicTail({
      kafka: clientOf(place.connection),
      topic,
      from: new Map([0, 1].map((partition) => [partition, 0n])),
      committed: false,
      onRecords: async ({ partition, records }) => {
        read.push(...records.map(({ offset }) => [partition, offset] as [number, bigint]))
        await held.promise
      },
      onStopped: (partition, error) => stops.set(partition, error),
    })
    tail.start()
    await until('the first records', () => read.length > 0)
    for (const stream of streams) await grow(log, stream, 3)
    await deleteBefore(place, 0, 4n)
    held.resolve()
    await until('the report', () => stops.has(0))
    await until('the other partition', () => read.filter(([partition]) => partition === 1).length === 5)
    await tail.close()
    expect([...stops]).toEqual([
      [
        0,
        expect.objectContaining({
          code: 'log_gap',
          path: `${topic}[0]`,
          details: { partition: 0, wanted: '2', first: '4', end: '5' },
        }),
      ],
    ])
    expect(read.filter(([partition]) => partition === 0).map(([, offset]) => offset)).toEqual([0n, 1n])
  })
})

describeKafka('a partition that does not exist', () => {
  test('is refused by who waits for it', async () => {
    await using place = await kafkaPlace({ partitions: 2 })
    const log = await place.open()
    for (const partition of [2, -1]) expect(await codeOf(log.events.barrier(partition))).toBe('partition_unknown')
  })
})
