import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { openSqliteLog } from '../../src/log/index.ts'
import { listWaits } from '../../src/projections/index.ts'
import { Child } from '../support/processes/child.ts'
import { places } from '../support/processes/place.ts'
import { script, workerAgent } from '../support/processes/worker.ts'

const place = places()

// The table of waits may be ahead of the tail: a wait that was listed came again with its event.
test('a follower of waits is told of each exactly once, while another process opens them', async () => {
  const files = place()
  // Notices other processes late, so that the table is ahead.
  await using backend = await openSqliteLog({ file: files.file, wakeups: { watch: false, pollMs: 200 } })
  await using threads = await openThreadlog({ log: backend, application: 'shop', agents: [workerAgent(files)] })
  await using engine = await Child.start('client.ts', files)
  const input = script([{ id: 'c1', name: 'ask' }], 'done')
  const many = (round: number) => Array.from({ length: 20 }, (_, i) => ({ thread: `many_${round}x${i}`, input }))
  await engine.must('serve')
  for (let round = 0; round < 3; round++) {
    await engine.must('startMany', many(round))
    while (listWaits(backend.tables, { limit: 1000 }).length < round * 21 + 20) await delay(1)
    const told: string[] = []
    for await (const wait of threads.waits({ follow: true })) {
      told.push(wait.thread.thread)
      // Its event comes behind all others.
      if (told.length === round * 21 + 20) await engine.must('start', { thread: `last_${round}`, input })
      if (wait.thread.thread === `last_${round}`) break
    }
    expect(told.sort()).toEqual([...new Set(told)])
    expect(told).toHaveLength((round + 1) * 21)
  }
}, 60_000)
