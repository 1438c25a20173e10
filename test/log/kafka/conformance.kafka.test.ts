import { describe, expect, test } from 'vitest'
import { logConformance } from '../../../src/testing/index.ts'
import { brokers, describeKafka } from '../../support/kafka/index.ts'
import { conformancePlace } from '../support/kafka-place.ts'

describeKafka('on Kafka', () => {
  for (const partitions of [1, 4]) {
    const coverage = logConformance(
      { describe, test },
      {
        name: `kafka, ${partitions} partitions`,
        traits: ['durable', 'multi-process', 'keeps-void', 'transactional-edges', 'external-writers'],
        create: () => conformancePlace(brokers(), partitions),
      },
    )
    test(`${partitions} partitions: every case applies`, () => {
      expect(coverage).toEqual({ cases: 51, lacking: {} })
    })
  }
})
