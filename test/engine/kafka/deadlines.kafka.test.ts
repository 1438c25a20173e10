import { expect, test } from 'vitest'
import { until, writeRaw } from '../../log/kafka/faults-support.ts'
import { describeKafka, kafkaPlace } from '../../support/kafka/index.ts'
import { receiptsOf, resultOf, rig } from './rig.ts'

describeKafka('deadlines on Kafka', () => {
  test('of two engines the one whose partition it is ends what is overdue, takes the request back, and refuses what comes later', async () => {
    await using place = await kafkaPlace({ partitions: 2 })
    await using first = await rig(place, { deadlines: { desk: 300 } })
    await using second = await rig(place, { deadlines: { desk: 300 } })
    const threads = ['a_1', 'b_1', 'c_1', 'd_1']
    const waits = await Promise.all(threads.map((thread) => first.asks(thread)))
    const over = async () =>
      first.threads.backend.tables.get<{ n: number }>("SELECT count(*) AS n FROM threads WHERE last_end = 'completed'")?.n === 4
    await until('four runs went on', over)
    const told = async () => {
      const requests: { continuation_id: string; cancelled?: boolean }[] = []
      for await (const batch of first.threads.backend.topics.scan('requests'))
        for (const { value } of batch) requests.push(JSON.parse(Buffer.from(value).toString()))
      return waits.map((wait) => requests.filter((r) => r.continuation_id === wait).map((r) => r.cancelled))
    }
    await until('all are taken back', async () => (await told()).every((records) => records.includes(true)))
    expect(await told()).toEqual(waits.map(() => [undefined, true]))
    await writeRaw(place, 'results', [{ partition: 0, key: 'k', value: resultOf(waits[0] as string) }])
    await until('a receipt', async () => (await receiptsOf(second)).length === 1)
    expect(await receiptsOf(second)).toMatchObject([{ verdict: 'expired' }])
    expect([...first.problems, ...second.problems]).toEqual([])
  }, 120_000)
})
