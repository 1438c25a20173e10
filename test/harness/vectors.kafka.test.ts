import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { describeKafka, kafkaPlace } from '../support/kafka/index.ts'
import { casesOf } from '../support/vectors/index.ts'

// A sample of the recorded cases that run an agent: every twelfth, each under an application of its own.

const EVERY = 12
const RUNS = ['run', 'export', 'stream']

describeKafka('recorded cases on Kafka', () => {
  it('pass as they do elsewhere', async () => {
    await using place = await kafkaPlace({ partitions: 2 })
    const log = await place.open()
    const recorded = casesOf(fileURLToPath(new URL('../vectors/harness', import.meta.url)), log).flatMap(({ cases }) => cases)
    const sample = recorded.filter(({ kind }) => RUNS.includes(kind)).filter((_, i) => i % EVERY === 0)
    const failed: string[] = []
    for (const one of sample) await one.run().catch((error: unknown) => failed.push(`${one.id}: ${error}`))
    expect(failed).toEqual([])
    expect(sample.length).toBeGreaterThan(20)
    await using threads = await openThreadlog({ log, application: sample[0]!.id })
    expect(threads.application).toBe(sample[0]!.id)
  }, 300_000)
})
