import { expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { Child } from '../support/processes/child.ts'
import { places } from '../support/processes/place.ts'
import { script, workerAgent } from '../support/processes/worker.ts'

const place = places()

// The table of waits may be ahead of the tail: a wait that was listed came again with its event.
test('a follower of waits is told of each exactly once, while another process opens them', async () => {
  const files = place()
  await using threads = await openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })
  await using engine = await Child.start('client.ts', files)
  const input = script([{ id: 'c1', name: 'ask' }], 'done')
  const many = (round: number) => Array.from({ length: 30 }, (_, i) => ({ thread: `many_${round}x${i}`, input }))
  await engine.must('serve')
  for (let round = 0; round < 4; round++) {
    const started = engine.must('startMany', many(round))
    const told: string[] = []
    let last = false
    for await (const wait of threads.waits({ follow: true })) {
      told.push(wait.thread.thread)
      if (wait.thread.thread === `last_${round}`) break
      // Its event comes behind all others.
      if (!last && new Set(told.filter((thread) => thread.startsWith(`many_${round}x`))).size === 30) {
        last = true
        await started
        await engine.must('start', { thread: `last_${round}`, input })
      }
    }
    expect(told.sort()).toEqual([...new Set(told)])
    expect(told).toHaveLength((round + 1) * 31)
  }
}, 60_000)
