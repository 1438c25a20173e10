import { describe, expect, test } from 'vitest'
import { logConformance } from '../../src/testing/index.ts'
import { sqlitePlace } from './support/sqlite-place.ts'

const coverage = logConformance(
  { describe, test },
  {
    name: 'sqlite',
    traits: ['durable', 'multi-process', 'transactional-edges', 'external-writers'],
    create: async () => sqlitePlace(),
  },
)

test('sqlite: which cases apply', () => {
  expect(coverage).toEqual({ cases: 50, lacking: { 'keeps-void': 1 } })
})
