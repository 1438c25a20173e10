import { expect, test } from 'vitest'
import { clientOf } from '../../../src/log/kafka/index.ts'
import { KafkaTopics } from '../../../src/log/kafka/topics.ts'
import { describeKafka, kafkaPlace } from '../../support/kafka/index.ts'
import { codeOf } from './faults-support.ts'

const RECORDS = 10_000
const AT_ONCE = 250
/** So large that no partition comes in one fetch. */
const VALUE = Buffer.alloc(2_000, 'x')
/** Batches between one change of owners and the next. */
const BATCHES = 4

describeKafka('the order of a partition', () => {
  test('row 85: 10,000 records over changes of owners are handled in order, each once', async () => {
    await using place = await kafkaPlace({ partitions: 2 })
    const { topics: outside } = await place.open()
    const ends = new Map<number, bigint>()
    for (let sent = 0; sent < RECORDS; sent += AT_ONCE) {
      const records = Array.from({ length: AT_ONCE }, (_, n) => ({ key: `key ${sent + n}`, value: VALUE }))
      for (const [partition, end] of await outside.publish('results', records)) ends.set(partition, end)
    }

    const done = new AbortController()
    const handled = new Map<number, bigint>()
    const outOfOrder: string[] = []
    let shares = [new Set([0]), new Set([1])]
    let batches = 0
    let changes = 0
    const members = [0, 1].map(
      (n) =>
        new KafkaTopics({ kafka: clientOf(place.connection), prefix: place.prefix, partitions: 2, assigned: () => shares[n] }),
    )
    const isDone = () => [...ends].every(([partition, end]) => handled.get(partition) === end)

    /** Handles what comes, until a batch is refused: then it reads on from the saved progress, as an engine does. */
    async function work(topics: KafkaTopics): Promise<void> {
      const read = new Map<string, bigint>()
      for await (const batch of topics.subscribe('results', { group: 'group', signal: done.signal })) {
        const { partition, offset: first } = batch[0]!.position
        const tenure = `${partition} of ${changes}`
        let next = read.get(tenure) ?? first
        for (const { position } of batch) if (position.offset !== next++) outOfOrder.push(`${tenure}: ${position.offset}`)
        read.set(tenure, next)
        const outcome = await codeOf(
          topics.transact({
            publish: { receipts: [{ key: 'handled', value: Buffer.from(`${partition} ${first} ${next}`) }] },
            progress: {
              ...{ topic: 'results', group: 'group' },
              ...{ next: new Map([[partition, next]]), expect: new Map([[partition, first]]) },
            },
          }),
        )
        // Refused is only what has gone to the other member.
        if (outcome === 'progress_moved') return
        expect(outcome).toEqual({ resolved: undefined })
        handled.set(partition, next)
        if (isDone()) done.abort()
        else if (++batches % BATCHES === 0) {
          changes++
          shares = shares.toReversed()
          for (const member of members) member.reassign()
        }
      }
    }
    const serve = async (topics: KafkaTopics) => {
      while (!done.signal.aborted) await work(topics)
    }
    await Promise.all(members.map(serve))
    await Promise.all(members.map((member) => member.close()))

    const spans = new Map<number, bigint>()
    for await (const batch of outside.scan('receipts'))
      for (const { value } of batch) {
        const [partition, first, next] = Buffer.from(value).toString().split(' ').map(BigInt) as [bigint, bigint, bigint]
        expect(first).toBe(spans.get(Number(partition)) ?? 0n)
        spans.set(Number(partition), next)
      }
    expect(outOfOrder).toEqual([])
    expect(spans).toEqual(ends)
    expect(changes).toBeGreaterThan(2)
  }, 120_000)
})
