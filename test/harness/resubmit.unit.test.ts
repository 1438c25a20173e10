import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { externalTool } from '../../src/index.ts'
import { type LogBackend, openLog } from '../../src/log/index.ts'
import { codeOf } from '../support/refusals.ts'
import { resubmitCases } from '../support/resubmit-cases.ts'

const cleanup: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanup.splice(0).reverse()) await step()
})

const logs: Record<string, () => Promise<LogBackend>> = {
  memory: () => openLog('memory'),
  sqlite: () => {
    const folder = mkdtempSync(join(tmpdir(), 'threadlog-'))
    cleanup.push(() => rmSync(folder, { recursive: true, force: true }))
    return openLog(`sqlite:${join(folder, 'log.db')}`)
  },
}

describe.each(Object.entries(logs))('jobs submitted again, on %s', (_, open) => {
  test.each(Object.entries(resubmitCases))(
    '%s',
    async (_name, body) => {
      const log = await open()
      cleanup.push(() => log.close())
      await body(log)
    },
    30_000,
  )
})

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
