import { ConfigResourceTypes } from 'kafkajs'
import { expect, test } from 'vitest'
import { clientOf } from '../../src/log/kafka/index.ts'
import { brokers, describeKafka, kafkaPlace } from '../support/kafka/index.ts'
import { AGENTS, cli, records, says, start } from './support/cli.ts'

const address = (prefix: string): string => `kafka://${brokers().join(',')}/${prefix}`

describeKafka('the command line on Kafka', () => {
  test('makes topics, names what differs, and does not start an engine on a wrong one', async () => {
    await using place = await kafkaPlace({ topics: false })
    const o = { log: address(place.prefix), env: { XDG_CACHE_HOME: place.folder } }
    const missing = await cli(['threads'], o)
    expect([missing.code, missing.err]).toEqual([4, expect.stringContaining('(topic_missing)')])
    expect((await cli(['topics', 'check'], o)).code).toBe(1)
    const made = JSON.parse((await cli(['topics', 'create', '--partitions', '2', '-o', 'json'], o)).out)
    expect([made.ok, made.made.length]).toEqual([true, 7])
    expect(await cli(['topics', 'create'], o)).toMatchObject({ code: 0, out: '0 topics made, all as they should be\n' })
    expect((await cli(['topics', 'check', '--partitions', '3'], o)).code).toBe(1)

    const topic = `${place.prefix}.events`
    const admin = clientOf(place.connection).admin()
    await admin.connect()
    const configEntries = [{ name: 'cleanup.policy', value: 'compact' }]
    await admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }],
    })
    await admin.disconnect()
    const { code, out } = await cli(['topics', 'check', '-o', 'jsonl'], o)
    expect(code).toBe(1)
    expect(records(out)).toContainEqual(
      expect.objectContaining({
        finding: expect.objectContaining({ topic, setting: 'cleanup.policy', found: 'compact', severity: 'error' }),
      }),
    )
    const engine = await cli(['engine', AGENTS], o)
    expect([engine.code, engine.err]).toEqual([4, expect.stringContaining(topic)])
    expect((await cli(['doctor'], o)).code).toBe(1)
  })

  test('runs, serves, sends results and looks at them', async () => {
    await using place = await kafkaPlace()
    const o = { log: address(place.prefix), env: { XDG_CACHE_HOME: place.folder } }
    const engine = start(['engine', AGENTS, '--app', 'shop'], o)
    try {
      await says(engine, 'stderr', /^ready/)
      expect((await cli(['start', 'support', 'shop/u-17/order_1', 'Pay order 3'], o)).code).toBe(0)
      let wait: string | undefined
      while (wait === undefined) wait = JSON.parse((await cli(['waits', '-o', 'json'], o)).out).waits[0]?.id
      const sent = await cli(
        [
          'results',
          'send',
          '--provider',
          'payouts',
          '--app',
          'shop',
          '--continuation-id',
          wait,
          '--result',
          '{"reference":"R-1"}',
        ],
        o,
      )
      expect(sent).toMatchObject({ code: 0, out: expect.stringContaining('accepted') })
      const doctor = JSON.parse((await cli(['doctor', '-o', 'json'], o)).out)
      expect(doctor.ok).toBe(true)
      const facts = Object.fromEntries(doctor.checks.map(({ check, facts: found }: Record<string, unknown>) => [check, found]))
      expect(facts.engines).toMatchObject({ members: 1 })
      expect(facts.owners.owners.map(({ pid }: { pid: number }) => pid)).toEqual([engine.pid])
      expect(facts.results).toEqual({ unjudged: '0' })
    } finally {
      engine.kill('SIGTERM')
    }
    expect((await cli(['receipts'], o)).out).toContain('accepted')
    expect((await cli(['requests'], o)).out).toContain('payouts')
    const verified = await cli(['verify', '--all', '-o', 'json'], { ...o, log: `${o.log}?replica=${place.replica('new')}` })
    expect([verified.code, JSON.parse(verified.out)]).toMatchObject([0, { checked: 1, damaged: 0 }])
  })

  test('says in seconds that nobody answers', async () => {
    for (const command of ['threads', 'doctor']) {
      const { code, out, err } = await cli([command], { log: 'kafka://127.0.0.1:1/x' })
      expect([command, code]).toEqual([command, command === 'doctor' ? 1 : 3])
      expect(out + err).toContain('The cluster did not answer.')
    }
  })
})
