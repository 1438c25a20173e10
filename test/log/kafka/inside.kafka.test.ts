import kafkajs, { type Kafka } from 'kafkajs'
import { expect, test, vi } from 'vitest'
import { producerOf } from '../../../src/log/kafka/connection.ts'
import { DirectReader } from '../../../src/log/kafka/direct.ts'
import { clientOf } from '../../../src/log/kafka/index.ts'
import { topicName } from '../../../src/log/kafka/topic-plan.ts'
import { brokers, describeKafka, kafkaPlace } from '../../support/kafka/index.ts'

/** As the library makes it. */
const plain = (): Kafka =>
  new kafkajs.Kafka({ clientId: 'plain', brokers: brokers(), logCreator: () => () => {}, retry: { retries: 3 } })

/** Timers set in a stretch in which nothing is asked of a connected reader. */
async function timersAtRest(kafka: Kafka, topic: string): Promise<number> {
  const reader = new DirectReader(kafka)
  await reader.offsets(topic, [0], 'end')
  const set = vi.spyOn(globalThis, 'setTimeout')
  await new Promise((resolve) => setImmediate(resolve))
  const begun = performance.now()
  while (performance.now() - begun < 60) await new Promise((resolve) => setImmediate(resolve))
  const count = set.mock.calls.filter(([, ms]) => (ms ?? 0) <= 1).length
  set.mockRestore()
  await reader.close()
  return count
}

async function coordinatorsAsked(kafka: Kafka, topic: string, transactions: number): Promise<number> {
  const producer = producerOf(kafka, { transactionalId: `${topic}.test`, idempotent: true, maxInFlightRequests: 1 })
  let asked = 0
  producer.on('producer.network.request', ({ payload }) => {
    if ((payload as { apiName: string }).apiName === 'GroupCoordinator') asked++
  })
  await producer.connect()
  for (let i = 0; i < transactions; i++) {
    const transaction = await producer.transaction()
    await transaction.send({ topic, acks: -1, messages: [{ partition: 0, value: String(i) }] })
    await transaction.commit()
  }
  await producer.disconnect()
  return asked
}

// Each says what the library does by itself first: when that changes, the repair is not needed or does not reach it any more.
describeKafka('the inside of kafkajs', () => {
  test('a connection at rest sets no timers', async () => {
    await using place = await kafkaPlace()
    await (await place.open()).close()
    const topic = topicName(place.prefix, 'commands')
    expect(await timersAtRest(plain(), topic)).toBeGreaterThan(5)
    expect(await timersAtRest(clientOf({ brokers: brokers() }), topic)).toBe(0)
  })

  test('who coordinates transactions is not asked before each request', async () => {
    await using place = await kafkaPlace()
    await (await place.open()).close()
    const topic = topicName(place.prefix, 'receipts')
    expect(await coordinatorsAsked(plain(), topic, 5)).toBeGreaterThanOrEqual(10)
    expect(await coordinatorsAsked(clientOf({ brokers: brokers() }), topic, 5)).toBeLessThan(5)
  })
})
