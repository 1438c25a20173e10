import { describe, test } from 'vitest'
import { logConformance } from '../../src/testing/index.ts'
import { sqlitePlace } from './support/sqlite-place.ts'

logConformance(
  { describe, test },
  {
    name: 'sqlite',
    traits: ['durable', 'multi-process', 'transactional-edges', 'external-writers'],
    create: async () => sqlitePlace(),
  },
)
