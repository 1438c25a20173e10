import { describe, test } from 'vitest'
import { openMemoryLog } from '../../src/log/index.ts'
import { logConformance } from '../../src/testing/index.ts'

logConformance(
  { describe, test },
  {
    name: 'memory',
    traits: ['transactional-edges'],
    create: async () => ({ open: () => openMemoryLog(), remove: async () => {} }),
  },
)
