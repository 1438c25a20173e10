import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { describeOwnKafka } from '../support/kafka/index.ts'

const root = join(import.meta.dirname, '../..')

describeOwnKafka('the benchmarks on Kafka', () => {
  test('print the floor and delayed appends with the settings of the broker', { timeout: 120_000 }, async () => {
    const args = ['append', 'latency', '--log', 'kafka', '--json', '--threads', '8', '--in-flight', '4', '--delays', '30']
    const { stdout } = await promisify(execFile)(process.execPath, ['bench/main.ts', ...args], { cwd: root })
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map(({ bench, log }) => [bench, log])).toEqual([
      ['append', 'kafka'],
      ['latency', 'kafka'],
    ])
    for (const { settings } of lines)
      expect(settings).toMatchObject({ acks: 'all', partitions: 4, flush: 'page cache', broker_directory: 'new', brokers: 1 })
    expect(lines[0].per_second).toBeGreaterThan(0)
    // Every answer comes late by that much, so nothing can be faster.
    expect(lines[1].details.injected_ms).toBe(30)
    for (const time of [lines[1].p50_ms, lines[1].details.raw_send_p50_ms]) expect(time).toBeGreaterThanOrEqual(29)
  })
})
