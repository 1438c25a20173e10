import { expect, it } from 'vitest'
import { describeKafka, type KafkaPlace, kafkaPlace } from '../support/kafka/index.ts'
import { groups, runVector, storeOn } from '../support/vectors/continuation/index.ts'

// A sample of the recorded cases that use a store: every sixteenth, each on a log of its own.

const EVERY = 16

describeKafka('recorded continuations on Kafka', () => {
  it('are answered as they are elsewhere', async () => {
    const recorded = groups().flatMap(({ fixture, vectors }) => vectors.map((vector) => ({ vector, fixture })))
    const sample = recorded.filter(({ vector }) => vector.kind === 'sequence').filter((_, i) => i % EVERY === 0)
    const failed: string[] = []
    for (const { vector, fixture } of sample) {
      const places: KafkaPlace[] = []
      const open = async () => {
        const place = await kafkaPlace({ partitions: 2 })
        places.push(place)
        return storeOn(await place.open())
      }
      await runVector(vector, fixture, open).catch((error: unknown) => failed.push(`${vector.id}: ${error}`))
      await Promise.all(places.map((place) => place.remove()))
    }
    expect(failed).toEqual([])
    expect(sample.length).toBeGreaterThan(20)
  }, 300_000)
})
