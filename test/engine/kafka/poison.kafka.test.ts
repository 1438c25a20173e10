import { expect, test } from 'vitest'
import { clientOf } from '../../../src/log/kafka/index.ts'
import { partitionOf } from '../../../src/log/partition.ts'
import { commitOn, newStream, readStream } from '../../../src/testing/log-conformance/writing.ts'
import { configure, recordsOf, until, writeRaw } from '../../log/kafka/faults-support.ts'
import { describeKafka, kafkaPlace } from '../../support/kafka/index.ts'
import { receiptsOf, resultOf, rig, verdictsOf } from './rig.ts'

const GARBAGE = [
  Buffer.from('no record of any kind'),
  Buffer.alloc(0),
  Buffer.from([0, 0, 0, 0, 1]),
  Buffer.alloc(5_000, 0xff),
  null,
]

describeKafka('poison', () => {
  test('row 73, row 106: on results: each record has its verdict, and the good ones between are accepted', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    await using engine = await rig(place)
    const waits = await Promise.all(['a_1', 'b_1', 'c_1'].map((thread) => engine.asks(thread)))
    const values = GARBAGE.flatMap((bad, i) => (waits[i] ? [bad, resultOf(waits[i])] : [bad]))
    await writeRaw(
      place,
      'results',
      values.map((value) => ({ partition: 0, key: 'k', value })),
    )
    await until('8 receipts', async () => (await receiptsOf(engine)).length >= values.length)
    const bad = ['unreadable']
    const good = ['accepted']
    expect(verdictsOf(await receiptsOf(engine))).toEqual(
      Object.fromEntries([bad, good, bad, good, bad, good, bad, bad].entries()),
    )
    await until(
      'all done',
      () => engine.threads.backend.tables.all('SELECT 1 FROM threads WHERE status = ?', 'idle').length === 3,
    )
  })

  test.each(['snappy', 'lz4', 'zstd', 'gzip'])('on results: a batch in %s is read like any other', async (codec) => {
    await using place = await kafkaPlace({ partitions: 1 })
    await using engine = await rig(place)
    const wait = await engine.asks('a_1')
    await configure(place.connection, `${place.prefix}.results`, { 'compression.type': codec })
    const noise = Array.from({ length: 200 }, (_, i) => ({
      partition: 0,
      key: 'k',
      value: `${i} over and over and over again ${'x'.repeat(i)}`,
    }))
    await writeRaw(place, 'results', [...noise, { partition: 0, key: 'k', value: resultOf(wait) }])
    await until('receipts', async () => (await receiptsOf(engine)).length > noise.length)
    const verdicts = verdictsOf(await receiptsOf(engine))
    expect(verdicts[200]).toEqual(['accepted'])
    expect(Object.values(verdicts).filter(([verdict]) => verdict === 'unreadable')).toHaveLength(200)
  })

  test('row 62: on results: what another producer wrote in a transaction it aborted is not seen', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    await using engine = await rig(place)
    const wait = await engine.asks('a_1')
    const producer = clientOf(place.connection).producer({ transactionalId: `${place.prefix}-other`, maxInFlightRequests: 1 })
    await producer.connect()
    const topic = `${place.prefix}.results`
    const aborted = await producer.transaction()
    await aborted.send({ topic, messages: [{ partition: 0, key: 'k', value: resultOf(wait, 'aborted') }] })
    await aborted.abort()
    const committed = await producer.transaction()
    await committed.send({ topic, messages: [{ partition: 0, key: 'k', value: resultOf(wait, 'committed') }] })
    // Open: nobody may see it yet.
    expect(verdictsOf(await receiptsOf(engine))).toEqual({})
    await committed.commit()
    await producer.disconnect()
    await until('a receipt', async () => (await receiptsOf(engine)).length > 0)
    expect(verdictsOf(await receiptsOf(engine))).toEqual({ 2: ['accepted'] })
    const { events } = engine.threads.backend
    const [answered] = (await readStream(events, engine.threads.thread('a_1').stream)).filter(
      ({ event }) => event?.type === 'continuation.completed/1',
    )
    expect(JSON.stringify(answered?.event?.data)).toContain('committed')
  })

  test('on events: bytes that name no commit are passed over, a type of a newer build stops its thread alone', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    await using engine = await rig(place)
    const { threads } = engine
    const [ill, well] = [await engine.asks('ill_1'), await engine.asks('well_1')]
    const before = await threads.store.load(threads.thread('ill_1').stream)
    const strange = commitOn(threads.thread('ill_1').stream, before)
    // A type this build does not have, under a schema id it does not have; the envelope is whole.
    const newer = recordsOf(0, strange).map(({ value, ...record }) => {
      const bytes = Buffer.from(value)
      bytes.writeInt32BE(0x7fff_fff0, 1)
      bytes.write('thread.perfumed/1', bytes.indexOf('thread.repaired/1'))
      return { ...record, value: bytes }
    })
    const at = (await threads.backend.events.barrier(0)).get(0)!
    await writeRaw(place, 'events', [...GARBAGE.map((value) => ({ partition: 0, key: 'k', value })), ...newer])
    await threads.backend.events.barrier(0)
    await writeRaw(
      place,
      'results',
      [ill, well].map((wait) => ({ partition: 0, key: 'k', value: resultOf(wait) })),
    )
    await until('receipts', async () => (await receiptsOf(engine)).length === 2)
    expect(verdictsOf(await receiptsOf(engine))).toEqual({ 0: ['quarantined'], 1: ['accepted'] })
    await expect(threads.store.load(threads.thread('ill_1').stream)).rejects.toMatchObject({
      code: 'thread_quarantined',
      details: { partition: 0, offset: String(at + BigInt(GARBAGE.length)), version: before.version + 1 },
    })
    // A process that has seen none of it before says the same.
    await using other = await rig(place, { serve: false })
    await expect(other.threads.store.load(threads.thread('ill_1').stream)).rejects.toMatchObject({ code: 'thread_quarantined' })
    expect((await other.threads.store.load(threads.thread('well_1').stream)).hash).toBe(
      (await threads.store.load(threads.thread('well_1').stream)).hash,
    )
  })

  test('row 95: on events: a commit in a partition that is not its own is void for every reader', async () => {
    await using place = await kafkaPlace({ partitions: 4 })
    const log = await place.open()
    const stream = newStream()
    const commit = commitOn(stream, undefined, 2)
    const wrong = (partitionOf(stream, 4) + 1) % 4
    await writeRaw(place, 'events', recordsOf(wrong, commit))
    await log.events.barrier()
    expect(await log.events.head(stream)).toBeUndefined()
    expect(await log.events.append(commit)).toMatchObject({ accepted: true })
    const later = await place.open()
    expect(await readStream(later.events, stream)).toHaveLength(2)
  })

  test('on commands, receipts, checkpoints and requests: nobody stops, and what is right is published and read', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    await using engine = await rig(place)
    const tombstoned = (topic: string) => topic !== 'checkpoints'
    for (const topic of ['commands', 'receipts', 'checkpoints', 'requests'])
      await writeRaw(
        place,
        topic,
        GARBAGE.filter((value) => value !== null || tombstoned(topic)).map((value) => ({
          partition: 0,
          key: 'owner:x',
          value,
          headers: { 'threadlog-progress': 'no sense at all', other: 'x' },
        })),
      )
    const wait = await engine.asks('a_1')
    await writeRaw(place, 'results', [{ partition: 0, key: 'k', value: resultOf(wait) }])
    await until('a receipt', async () => (await receiptsOf(engine)).length === 1)
    await using other = await rig(place)
    expect(await other.threads.backend.owners.isDead(engine.threads.backend.owners.self)).toBe(false)
    expect(await other.asks('b_1')).toBeTruthy()
    for (const topic of ['receipts', 'checkpoints', 'requests'] as const) {
      let seen = 0
      for await (const batch of other.threads.backend.topics.scan(topic)) seen += batch.length
      expect(seen, topic).toBeGreaterThanOrEqual(GARBAGE.length)
    }
  })
})
