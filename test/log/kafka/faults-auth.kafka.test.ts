import { expect, test } from 'vitest'
import { describeOwnKafka, kafkaPlace, ownBroker } from '../../support/kafka/index.ts'
import { codeOf } from './faults-support.ts'

const USERS = [
  { mechanism: 'plain', username: 'app', password: 'app-secret' },
  { mechanism: 'scram-sha-256', username: 'scram', password: 'scram-secret' },
] as const

describeOwnKafka('a cluster that asks who is there', () => {
  test('takes the right user and tells every other one log_unauthorized at once, without the password', async () => {
    await using broker = await ownBroker({ sasl: true })
    await using place = await kafkaPlace({ brokers: broker.brokers })
    for (const sasl of USERS) {
      await place.open({ brokers: broker.sasl, sasl })
      const troubles: unknown[] = []
      const onTrouble = (trouble: unknown) => void troubles.push(trouble)
      for (const wrong of [
        { ...sasl, password: 'guessed-secret' },
        { ...sasl, username: 'stranger' },
      ]) {
        const error = await place.open({ brokers: broker.sasl, sasl: wrong, onTrouble }).catch((error: unknown) => error)
        expect(error).toMatchObject({
          code: 'log_unauthorized',
          disposition: 'reject',
          hint: expect.stringContaining('password'),
        })
        expect(JSON.stringify(error) + String(error)).not.toMatch(/secret/)
      }
      expect(troubles).toEqual([])
    }
    expect(await codeOf(place.open({ brokers: broker.sasl }))).toMatch(/^log_(unauthorized|unavailable)$/)
  })
})
