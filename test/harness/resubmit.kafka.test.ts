import { afterEach, test } from 'vitest'
import { describeKafka, type KafkaPlace, kafkaPlace } from '../support/kafka/index.ts'
import { resubmitCases } from '../support/resubmit-cases.ts'

const places: KafkaPlace[] = []
afterEach(async () => {
  for (const place of places.splice(0)) await place.remove()
})

describeKafka('jobs submitted again, on Kafka', () => {
  test.each(Object.entries(resubmitCases))(
    '%s',
    async (_, body) => {
      const place = await kafkaPlace({ partitions: 2 })
      places.push(place)
      await body(await place.open())
    },
    60_000,
  )
})
