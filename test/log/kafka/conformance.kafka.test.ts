import { describe, test } from 'vitest'
import { logConformance } from '../../../src/testing/index.ts'
import { kafkaPlace } from '../support/kafka-place.ts'

const brokers = [process.env['KAFKA_BROKERS'] ?? '127.0.0.1:19092']

logConformance(
  { describe, test },
  {
    name: 'kafka, one partition',
    traits: ['durable', 'multi-process', 'keeps-void', 'transactional-edges', 'external-writers'],
    create: () => kafkaPlace(brokers, 1),
  },
)
