import { afterEach, test } from 'vitest'
import type { LogBackend } from '../../src/log/index.ts'
import { describeKafka, type KafkaPlace, kafkaPlace } from '../support/kafka/index.ts'
import { type LogPlace, submitCases } from '../support/submit-cases.ts'

const places: KafkaPlace[] = []
afterEach(async () => {
  for (const place of places.splice(0)) await place.remove()
})

const origins = new WeakMap<LogBackend, KafkaPlace>()
const kafka: LogPlace = {
  fresh: async () => {
    const place = await kafkaPlace({ partitions: 2 })
    places.push(place)
    const log = await place.open()
    origins.set(log, place)
    return log
  },
  again: async (log) => (origins.get(log) as KafkaPlace).open(),
}

describeKafka('a tool that submits, on Kafka', () => {
  test.each(Object.entries(submitCases))('%s', (_, body) => body(kafka), 60_000)
})
