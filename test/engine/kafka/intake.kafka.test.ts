import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { fatal } from '../../../src/base/index.ts'
import type { LogBackend } from '../../../src/log/index.ts'
import { clientOf } from '../../../src/log/kafka/index.ts'
import { describeKafka, type KafkaPlace, kafkaPlace } from '../../support/kafka/index.ts'
import { eventsOf } from '../../support/processes/streams.ts'
import { withTopics } from '../intake-rig.ts'
import { named, node, placeOf, receipts, said, send, shared, shareOf, until, untilReceipts, waiting } from './intake-nodes.ts'

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)

async function deleteGroups({ connection }: KafkaPlace, groupIds: string[]): Promise<void> {
  const admin = clientOf(connection).admin()
  await admin.connect()
  await admin.deleteGroups(groupIds)
  await admin.disconnect()
}

describeKafka('intake on Kafka', () => {
  test('row 69: each engine judges its own partitions; what one loses the other goes on with, and each record has one receipt', async () => {
    await using place = await kafkaPlace()
    await using one = await node(place)
    const two = await node(place)
    await shared(one, two)
    const waits = await waiting(
      one.threads,
      named(8, [0, 1, 2, 3], (name) => one.threads.thread(name).stream),
    )
    // Twice each, and keyed by anything: a result may stand in another partition than its thread.
    const round = (n: number) =>
      send(
        one.backend,
        waits.flatMap(
          (wait, i) =>
            [
              [`k${i + n}`, said(wait)],
              [`k${i + n}`, said(wait)],
            ] as const,
        ),
      )
    await round(0)
    expect(await untilReceipts(one.backend, 16)).toHaveLength(16)
    await round(100)
    // In the middle of it one of them goes.
    await two.close()
    const all = await untilReceipts(one.backend, 32)
    expect(shareOf(one)).toEqual([0, 1, 2, 3])
    expect(new Set(all.map(placeOf)).size).toBe(32)
    expect(all).toHaveLength(32)
    expect(all.filter(({ verdict }) => verdict === 'accepted')).toHaveLength(8)
    expect(all.every(({ verdict }) => verdict === 'accepted' || verdict === 'duplicate')).toBe(true)
    expect(one.problems).toEqual([])
  })

  test('the source of a receipt is where others find the record: cluster, full topic name, partition, offset, time', async () => {
    await using place = await kafkaPlace()
    await using one = await node(place)
    const [key] = named(1, [2], (name) => name)
    const before = Date.now()
    await send(one.backend, [[key!, {}]])
    const [receipt] = await untilReceipts(one.backend, 1)
    expect(receipt).toMatchObject({
      verdict: 'invalid',
      final: true,
      source: { cluster: one.backend.events.id, topic: `${place.prefix}.results`, partition: 2, offset: 0 },
    })
    expect((receipt!.source as { record_time: number }).record_time).toBeGreaterThanOrEqual(before)
  })

  test('an outcome that an engine appends to a thread of another wakes that one, which resumes the run', async () => {
    await using place = await kafkaPlace()
    await using one = await node(place)
    await using two = await node(place)
    await shared(one, two)
    const streamOf = (name: string) => one.threads.thread(name).stream
    const theirs = named(6, shareOf(two), streamOf)
    const waits = await waiting(one.threads, theirs)
    const keys = named(3, shareOf(one), (name) => name)
    // Half of them as records in partitions of the first engine, half through its API.
    await send(
      one.backend,
      waits.slice(0, 3).map((wait, i) => [keys[i]!, said(wait)] as const),
    )
    for (const wait of waits.slice(3)) expect((await one.threads.submit(said(wait))).verdict).toBe('accepted')
    for (const name of theirs) {
      const events = await until(`${name} is done`, async () => {
        const found = await eventsOf(one.backend, streamOf(name))
        return found.at(-1)?.type === 'run.completed/1' && found
      })
      const started = events.filter(({ type }) => type === 'run.started/1').map(({ data }) => data as { owner: { id: string } })
      expect(started.map(({ owner }) => owner.id)).toEqual([two.backend.owners.self, two.backend.owners.self])
      // The outcome stands alone in its commit.
      const completed = events.find(({ type }) => type === 'continuation.completed/1')
      expect(completed?.commit.size).toBe(1)
    }
    const standing = await untilReceipts(one.backend, 6)
    expect(
      standing.filter(({ source }) => 'partition' in source && shareOf(one).includes(source.partition as number)),
    ).toHaveLength(3)
  })

  test('row 83: an engine that dies between acceptance and receipt: the next one gives the equal verdict, once', async () => {
    await using place = await kafkaPlace()
    const [key] = named(1, [1], (name) => name)
    const dying = await node(place, (log) => {
      const transact: LogBackend['topics']['transact'] = async (o) => {
        if (o.publish.receipts) throw fatal('killed', 'The process is gone.')
        return log.topics.transact(o)
      }
      return withTopics(log, { transact })
    })
    const [wait] = await waiting(dying.threads, ['thread_t'])
    await send(dying.backend, [
      [key!, said(wait!)],
      [key!, said(wait!, 'no')],
    ])
    expect(await dying.engine.failed).toMatchObject({ code: 'killed' })
    const { stream } = dying.threads.thread('thread_t')
    const completed = async (log: LogBackend) =>
      (await eventsOf(log, stream)).filter(({ type }) => type === 'continuation.completed/1')
    expect(await completed(dying.backend)).toHaveLength(1)
    expect(await receipts(dying.backend)).toEqual([])
    await dying.close()

    await using next = await node(place)
    const found = await untilReceipts(next.backend, 2)
    expect(found.map(({ verdict }) => verdict)).toEqual(['accepted', 'conflict'])
    expect(await completed(next.backend)).toHaveLength(1)
  })

  test('progress is found in the records when the offsets of the groups are gone, and when they are behind', async () => {
    await using place = await kafkaPlace()
    const groups = [`${place.prefix}.intake`, `${place.prefix}.publisher`]
    const edges = async (log: LogBackend) => {
      const found: string[] = []
      for await (const batch of log.topics.scan('requests'))
        found.push(...batch.map(({ position: { partition, offset }, key }) => `${partition} ${offset} ${key}`))
      return found
    }
    const first = await node(place)
    const names = named(6, [0, 1, 2, 3], (name) => first.threads.thread(name).stream)
    const waits = await waiting(first.threads, names)
    await send(
      first.backend,
      waits.map((wait, i) => [`k${i}`, said(wait)] as const),
    )
    await untilReceipts(first.backend, 6)
    const requests = await until('a request for each wait', async () => {
      const found = await edges(first.backend)
      return found.length >= 6 && found
    })
    // Receipts of the API stand between those with progress.
    for (let i = 0; i < 100; i++)
      await first.threads.submit({ provider: 'desk', continuation_id: 'none', result: 1 }).catch(() => {})
    const progress = await first.backend.topics.progress('results', 'intake')
    expect([...progress.values()].reduce((sum, next) => sum + next, 0n)).toBe(6n)
    const before = await receipts(first.backend)
    await first.close()
    await deleteGroups(place, groups)

    const second = await node(place)
    expect(await second.backend.topics.progress('results', 'intake')).toEqual(progress)
    await delay(1_500)
    expect(await receipts(second.backend)).toEqual(before)
    expect(await edges(second.backend)).toEqual(requests)
    await send(
      second.backend,
      upTo(4).map((i) => [`k${i}`, said(waits[i]!)] as const),
    )
    const after = await untilReceipts(second.backend, before.length + 4)
    expect(after).toHaveLength(before.length + 4)
    expect(second.problems).toEqual([])
    await second.close()

    // Somebody sets the offsets back: the records know better.
    const admin = clientOf(place.connection).admin()
    await admin.connect()
    const partitions = upTo(4).map((partition) => ({ partition, offset: '0' }))
    await admin.setOffsets({ groupId: groups[0]!, topic: `${place.prefix}.results`, partitions })
    await admin.disconnect()
    await using third = await node(place)
    await delay(1_000)
    expect(await receipts(third.backend)).toHaveLength(before.length + 4)
    expect(third.problems).toEqual([])
  })
})
