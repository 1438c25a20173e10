import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import type { Check, Facts } from '../../examples/demo/checks.ts'
import { brokers, describeKafka } from '../support/kafka/index.ts'
import { scriptedEnv } from './processes.ts'

const main = fileURLToPath(new URL('../../examples/demo/main.ts', import.meta.url))

describeKafka('the demo on Kafka', () => {
  test('settles one refund through three kills, each engine replaced by the next', { timeout: 180_000 }, async () => {
    const env = { ...scriptedEnv(), KAFKA_BROKERS: brokers().join(',') }
    const { stdout } = await promisify(execFile)(process.execPath, [main, '--json', '--kafka'], { env, timeout: 170_000 })
    const facts = JSON.parse(stdout) as Facts & { checks: Check[] }
    expect(facts.checks.filter((check) => !check.ok)).toEqual([])
    expect(facts.kills).toHaveLength(3)
    expect(facts.receipts.map(({ provider, verdict }) => `${provider} ${verdict}`)).toEqual([
      'human accepted',
      'payouts accepted',
      'payouts duplicate',
      'payouts conflict',
    ])
    expect(facts.checkpoints.map(({ status }) => status)).toEqual(['suspended', 'suspended', 'completed'])
    expect(facts.effects.map(({ tool }) => tool)).toEqual(['lookup_order', 'lookup_order', 'refund'])
  })
})
