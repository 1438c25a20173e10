import { describe, expect, test } from 'vitest'
import { openMemoryLog } from '../../src/log/index.ts'
import { logConformance } from '../../src/testing/index.ts'

const coverage = logConformance(
  { describe, test },
  {
    name: 'memory',
    traits: ['transactional-edges'],
    create: async () => ({ open: () => openMemoryLog(), remove: async () => {} }),
  },
)

test('memory: which cases apply', () => {
  expect(coverage).toEqual({ cases: 39, lacking: { durable: 3, 'multi-process': 6, 'keeps-void': 1, 'external-writers': 2 } })
})
