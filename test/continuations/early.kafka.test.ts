import { afterEach, test } from 'vitest'
import { earlyCases } from '../support/early-cases.ts'
import { describeKafka, type KafkaPlace, kafkaPlace } from '../support/kafka/index.ts'

const places: KafkaPlace[] = []
afterEach(async () => {
  for (const place of places.splice(0)) await place.remove()
})

describeKafka('early results, on Kafka', () => {
  test.each(Object.entries(earlyCases))(
    '%s',
    async (_, body) => {
      const place = await kafkaPlace({ partitions: 2 })
      places.push(place)
      await body(await place.open())
    },
    60_000,
  )
})
