import { expect, test } from 'vitest'
import { describeKafka, kafkaPlace } from '../../support/kafka/index.ts'

describeKafka('owners on Kafka', () => {
  test('who registered after the last look is alive', async () => {
    await using place = await kafkaPlace()
    const one = await place.open()
    await one.owners.isDead('nobody')
    const two = await place.open()
    await one.owners.isDead('nobody')
    const three = await place.open()
    expect(await one.owners.isDead(two.owners.self)).toBe(false)
    expect(await one.owners.isDead(three.owners.self)).toBe(false)
  })
})
