import { expect, test } from 'vitest'
import { z } from 'zod'
import { externalTool } from '../../src/index.ts'
import { onEmbeddedLogs } from '../support/cases-on-logs.ts'
import { codeOf } from '../support/refusals.ts'
import { resubmitCases } from '../support/resubmit-cases.ts'

onEmbeddedLogs('jobs submitted again', resubmitCases)

test('a policy that cannot be meant is refused', () => {
  const tool = { name: 'job', description: 'j', provider: 'jobs', input: z.object({}) }
  const submit = () => ({ externalId: 'x' })
  for (const o of [
    { resubmit: { attempts: 1 } },
    { submit, resubmit: { attempts: 0 } },
    { submit, resubmit: { attempts: 1.5 } },
    { submit, resubmit: { attempts: 101 } },
    { submit, resubmit: { attempts: 1, delayMs: 7 } },
  ])
    expect(codeOf(() => externalTool({ ...tool, ...(o as object) }))).toBe('resubmit_invalid')
})
