import { expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { openLog } from '../../src/log/index.ts'
import { countHeld } from '../../src/projections/index.ts'
import { onEmbeddedLogs } from '../support/cases-on-logs.ts'
import { earlyCases } from '../support/early-cases.ts'

onEmbeddedLogs('early results', earlyCases)

// Row 96: expiry of everything at once took the memory or passed the limit of a batch.
test('row 96: very many that are held too long at once end in slices', async () => {
  const count = 5_000
  const log = await openLog('memory')
  const early = { providers: ['jobs'], keepMs: 1, perProvider: count }
  const threads = await openThreadlog({ log, earlyResults: early })
  const ids = Array.from({ length: count }, (_, i) => `job-${i}`)
  for (let i = 0; i < count; i += 500)
    await Promise.all(ids.slice(i, i + 500).map((external_id) => threads.submit({ provider: 'jobs', external_id, result: 1 })))
  const held = () => countHeld(log.tables, { application: 'default', provider: 'jobs', limit: count })
  expect(held()).toBe(count)
  let largest = 0
  const { append } = log.events
  log.events.append = (commit) => {
    largest = Math.max(largest, commit.records.length)
    return append.call(log.events, commit)
  }
  const engine = await threads.serve({ sweepMs: 10 })
  while (held() > 0) await new Promise((resolve) => setTimeout(resolve, 10))
  expect(largest).toBe(1)
  await engine.close()
  await threads.close()
  await log.close()
}, 60_000)
