import { describe, expect, test } from 'vitest'
import { clientOf, createTopics } from '../../../src/log/kafka/index.ts'
import { commitOn, newStream, readStream } from '../../../src/testing/log-conformance/writing.ts'
import { asAdmin, codeOf, recordsOf, until, writeRaw } from '../../log/kafka/faults-support.ts'
import { describeKafka, describeOwnKafka, type KafkaPlace, kafkaPlace, ownBroker } from '../../support/kafka/index.ts'
import { type Rig, receiptsOf, resultOf, rig, verdictsOf } from './rig.ts'

const status = ({ threads }: Rig, thread: string): string | undefined =>
  threads.backend.tables.get<{ status: string }>('SELECT status FROM threads WHERE thread = ?', thread)?.status

const receipts = (engine: Rig, count: number) =>
  until(`${count} receipts`, async () => (await receiptsOf(engine)).length >= count)

describeOwnKafka('known failures of brokers', () => {
  test('row 20: a result that was acknowledged before its broker was killed is judged', async () => {
    await using broker = await ownBroker()
    await using place = await kafkaPlace({ brokers: broker.brokers, partitions: 1 })
    await using engine = await rig(place)
    const wait = await engine.asks('a_1')
    await writeRaw(place, 'results', [{ partition: 0, key: 'k', value: resultOf(wait) }])
    await broker.restart()
    await receipts(engine, 1)
    expect(verdictsOf(await receiptsOf(engine))).toEqual({ 0: ['accepted'] })
  }, 120_000)

  test('row 125, row 126: a broker that has forgotten its producers: what comes after the idle time is written', async () => {
    const settings = {
      'transactional.id.expiration.ms': 1_000,
      'transaction.remove.expired.transaction.cleanup.interval.ms': 300,
      'producer.id.expiration.ms': 1_000,
      'producer.id.expiration.check.interval.ms': 300,
    }
    await using broker = await ownBroker({ settings })
    await using place = await kafkaPlace({ brokers: broker.brokers, partitions: 1 })
    await using engine = await rig(place)
    for (let round = 0; round < 2; round++) {
      const wait = await engine.asks(`round_${round}`)
      await writeRaw(place, 'results', [{ partition: 0, key: 'k', value: resultOf(wait) }])
      await receipts(engine, round + 1)
      await new Promise((resolve) => setTimeout(resolve, 4_000))
    }
    expect(Object.values(verdictsOf(await receiptsOf(engine)))).toEqual([['accepted'], ['accepted']])
  }, 120_000)
})

describeKafka('known failures of topics and groups', () => {
  test('row 70: the offsets of the group are gone: each result still has one receipt, and the next is judged', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    let second = ''
    {
      await using engine = await rig(place)
      const first = await engine.asks('a_1')
      second = await engine.asks('b_1')
      await writeRaw(place, 'results', [{ partition: 0, key: 'k', value: resultOf(first) }])
      await receipts(engine, 1)
    }
    await asAdmin(place.connection, async (admin) => {
      const { groups } = await admin.listGroups()
      const mine = groups.map(({ groupId }) => groupId).filter((group) => group.startsWith(`${place.prefix}.`))
      await admin.deleteGroups(mine)
    })
    await writeRaw(place, 'results', [{ partition: 0, key: 'k', value: resultOf(second) }])
    await using engine = await rig(place)
    await receipts(engine, 2)
    expect(verdictsOf(await receiptsOf(engine))).toEqual({ 0: ['accepted'], 1: ['accepted'] })
    await until('both done', () => status(engine, 'a_1') === 'idle' && status(engine, 'b_1') === 'idle')
  })

  test('row 78: of two that publish for one partition the older one is fenced and publishes nothing more', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    const [older, newer] = [await place.open(), await place.open()]
    const publish = (log: typeof older, value: string, expected: bigint | undefined, next: bigint) =>
      log.topics.transact({
        publish: { receipts: [{ key: 'k', value: Buffer.from(value) }] },
        progress: {
          topic: 'results',
          group: 'row-78',
          next: new Map([[0, next]]),
          ...(expected !== undefined && { expect: new Map([[0, expected]]) }),
        },
      })
    await publish(older, 'older 1', undefined, 1n)
    await publish(newer, 'newer 1', 1n, 2n)
    expect(await codeOf(publish(older, 'older 2', 1n, 2n))).toBe('progress_moved')
    await publish(newer, 'newer 2', 2n, 3n).catch(() => publish(newer, 'newer 2', 2n, 3n))
    const values: string[] = []
    for await (const batch of newer.topics.scan('receipts'))
      values.push(...batch.map(({ value }) => Buffer.from(value).toString()))
    expect(values).toEqual(['older 1', 'newer 1', 'newer 2'])
  })

  test('row 108: two engines, 400 results, 400 final receipts', async () => {
    await using place = await kafkaPlace({ partitions: 2 })
    await using one = await rig(place)
    await using two = await rig(place)
    const wait = await one.asks('a_1')
    const records = Array.from({ length: 400 }, (_, i) => ({
      partition: i % 2,
      key: 'k',
      value: i % 50 === 0 ? resultOf(wait) : resultOf(`nobody-${i}`),
    }))
    await writeRaw(place, 'results', records)
    await receipts(one, records.length)
    const found = await receiptsOf(two)
    expect(found).toHaveLength(records.length)
    for (const partition of [0, 1]) {
      const verdicts = Object.values(verdictsOf(found, partition))
      expect(verdicts).toHaveLength(200)
      for (const each of verdicts) expect(each).toHaveLength(1)
    }
    expect(found.filter(({ verdict }) => verdict === 'accepted').length).toBeGreaterThanOrEqual(1)
  })

  test('row 130: holes in the offsets of events change nothing and stop nobody', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    const log = await place.open()
    const stream = newStream()
    const producer = clientOf(place.connection).producer({ transactionalId: `${place.prefix}-holes`, maxInFlightRequests: 1 })
    await producer.connect()
    const commits = [commitOn(stream, undefined, 2)]
    for (let i = 0; i < 6; i++) {
      const last = commits.at(-1)!.records.at(-1)!
      commits.push(commitOn(stream, last, 1 + (i % 2)))
    }
    for (const [i, commit] of commits.entries()) {
      expect(await log.events.append(commit)).toMatchObject({ accepted: true })
      // Each leaves a marker, which takes an offset and is no record.
      const hole = await producer.transaction()
      const [record] = recordsOf(0, commit)
      await hole.send({
        topic: `${place.prefix}.events`,
        messages: [{ partition: 0, key: 'k', value: Buffer.from(record!.value) }],
      })
      if (i % 2 === 0) await hole.commit()
      else await hole.abort()
    }
    await producer.disconnect()
    const other = await place.open()
    const [mine, others] = [await readStream(log.events, stream), await readStream(other.events, stream)]
    expect(mine).toHaveLength(commits.reduce((sum, { records }) => sum + records.length, 0))
    expect(others.map(({ hash, position }) => [hash, position])).toEqual(mine.map(({ hash, position }) => [hash, position]))
  })

  test('row 131: holes in the offsets of results do not hold up the progress', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    {
      await using engine = await rig(place)
      const waits = [await engine.asks('a_1'), await engine.asks('b_1')]
      const producer = clientOf(place.connection).producer({ transactionalId: `${place.prefix}-holes`, maxInFlightRequests: 1 })
      await producer.connect()
      for (const wait of waits)
        for (const commits of [false, true]) {
          const transaction = await producer.transaction()
          await transaction.send({
            topic: `${place.prefix}.results`,
            messages: [{ partition: 0, key: 'k', value: resultOf(wait) }],
          })
          await (commits ? transaction.commit() : transaction.abort())
        }
      await producer.disconnect()
      await receipts(engine, 2)
      expect(verdictsOf(await receiptsOf(engine))).toEqual({ 2: ['accepted'], 6: ['accepted'] })
    }
    await using again = await rig(place)
    const wait = await again.asks('c_1')
    await writeRaw(place, 'results', [{ partition: 0, key: 'k', value: resultOf(wait) }])
    await receipts(again, 3)
    expect(verdictsOf(await receiptsOf(again))).toEqual({ 2: ['accepted'], 6: ['accepted'], 8: ['accepted'] })
  })

  describe.each(['shorter', 'longer'])('row 128: results made anew, %s than what was judged,', (length) => {
    const nobody = { partition: 0, key: 'k', value: resultOf('nobody') }

    async function remake(place: KafkaPlace, wait: string): Promise<void> {
      const topic = `${place.prefix}.results`
      await asAdmin(place.connection, async (admin) => {
        await admin.deleteTopics({ topics: [topic] })
        await until(`${topic} deleted`, async () => !(await admin.listTopics()).includes(topic))
      })
      await createTopics(clientOf(place.connection), { prefix: place.prefix, partitions: 1 })
      const more = length === 'longer' ? [nobody, nobody, nobody] : []
      await writeRaw(place, 'results', [{ partition: 0, key: 'k', value: resultOf(wait) }, ...more])
    }
    const fresh = length === 'longer' ? ['accepted', 'unknown', 'unknown', 'unknown'] : ['accepted']
    /** By offset: what became of the record before, then of the one that stands there now. */
    const expected = (now: readonly string[]) =>
      Object.fromEntries(
        Array.from({ length: Math.max(2, now.length) }, (_, offset) => [
          offset,
          [['unknown', 'accepted'][offset], now[offset]].filter((verdict) => verdict !== undefined),
        ]),
      )

    test('while nobody looked: each record of the new topic is judged once', async () => {
      await using place = await kafkaPlace({ partitions: 1 })
      let second = ''
      {
        await using engine = await rig(place)
        const first = await engine.asks('a_1')
        second = await engine.asks('b_1')
        await writeRaw(place, 'results', [nobody, { ...nobody, value: resultOf(first) }])
        await receipts(engine, 2)
      }
      await remake(place, second)
      // The second engine begins from progress that was written since.
      for (const now of [fresh, [...fresh, 'unknown']]) {
        await using engine = await rig(place)
        if (now !== fresh) await writeRaw(place, 'results', [nobody])
        await receipts(engine, 2 + now.length)
        expect(verdictsOf(await receiptsOf(engine))).toEqual(expected(now))
      }
    }, 120_000)

    test('under a running engine: it begins again, and judges each record once', async () => {
      await using place = await kafkaPlace({ partitions: 1 })
      await using engine = await rig(place)
      const first = await engine.asks('a_1')
      const second = await engine.asks('b_1')
      await writeRaw(place, 'results', [nobody, { ...nobody, value: resultOf(first) }])
      await receipts(engine, 2)
      await remake(place, second)
      await receipts(engine, 2 + fresh.length)
      expect(verdictsOf(await receiptsOf(engine))).toEqual(expected(fresh))
    }, 120_000)
  })
})
