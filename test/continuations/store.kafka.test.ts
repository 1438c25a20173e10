import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import type { LogBackend } from '../../src/log/index.ts'
import { clientOf } from '../../src/log/kafka/index.ts'
import { continuationConformance } from '../../src/testing/index.ts'
import { hastyClock } from '../support/continuation-play.ts'
import { type Open, play } from '../support/continuation-worlds.ts'
import { describeKafka, kafkaPlace } from '../support/kafka/index.ts'

describeKafka('continuations on Kafka', () => {
  continuationConformance(
    { describe, test },
    {
      name: 'kafka, each store with a replica of its own',
      traits: ['replicas', 'durable', 'reasons', 'guarded', 'leases'],
      create: async () => {
        const place = await kafkaPlace({ partitions: 2 })
        const open = async () => {
          const log = await place.open()
          const threads = await openThreadlog({ log })
          const close = async () => {
            await threads.close()
            await log.close()
          }
          return { store: threads.continuationStore(), close }
        }
        return { open, remove: () => place.remove() }
      },
    },
  )

  const open: Open = async (onlyAwaited, haste) => {
    const place = await kafkaPlace({ partitions: 2 })
    const logs: LogBackend[] = [await place.open(), await place.open()]
    const clock = hastyClock(() => haste)
    const opened = await Promise.all(logs.map((log) => openThreadlog({ log, clock })))
    return {
      replicas: opened.map((threads) => threads.continuationStore({ onlyAwaited })),
      settle: () => Promise.all(logs.map((log) => log.events.barrier())),
      close: async () => {
        for (const threads of opened) await threads.close()
        await place.remove()
      },
    }
  }

  it('S11: two replicas answer as the reference model, and leave what it leaves', async () => {
    const seen = await play(open, { worlds: Number(process.env['THREADLOG_PROP_FACTOR'] ?? 1) * 10 })
    for (const what of ['arm', 'resolve', 'suspend']) expect(seen.get(`${what} done`), what).toBeGreaterThan(0)
  }, 300_000)

  it('names no external id, result or person in keys and headers, whatever was written', async () => {
    await using place = await kafkaPlace({ partitions: 2 })
    const log = await place.open()
    const threads = await openThreadlog({ log, application: 'marker-app' })
    const store = threads.continuationStore()
    const scope = { applicationId: 'marker-app', userId: 'marker-user', sessionId: 'marker-session', runId: 'marker-run' }
    await store.beginRun({ scope, framework: 'adk' })
    const bank = threads.continuations('bank')
    const at = { ...scope, externalId: 'marker-job', schemaId: 'marker-schema' }
    const record = await bank.suspend({ ...at, capability: 'pay' })
    await bank.complete({ ...at, result: 'marker-result', validate: (value) => value })
    await bank.complete({ ...at, result: 'marker-result', validate: (value) => value }).catch(() => {})
    await threads.submit({ provider: 'bank', external_id: 'marker-nobody', result: 'marker-result' })
    const records = await everyRecord(place.brokers, `${place.prefix}.`, 9)
    const outside = records.map(({ key, headers }) =>
      JSON.stringify([text(key), Object.entries(headers).map(([name, value]) => [name, text(value)])]),
    )
    expect(outside.length).toBeGreaterThan(8)
    for (const one of outside)
      for (const marker of [
        'marker-job',
        'marker-nobody',
        'marker-user',
        'marker-session',
        'marker-run',
        'marker-result',
        'marker-schema',
      ])
        expect(one).not.toContain(marker)
    // Only what the log keeps of them holds them.
    expect(records.some(({ value }) => text(value).includes('marker-job'))).toBe(true)
    expect(record.status).toBe('pending')
    await threads.close()
  }, 60_000)
})

const text = (bytes: unknown): string =>
  bytes === null || bytes === undefined ? '' : Buffer.from(bytes as Uint8Array).toString('latin1')

interface RawRecord {
  key: Buffer | null
  value: Buffer | null
  headers: Record<string, unknown>
}

/** What a stranger's consumer reads of all topics of a log, until there are `enough` records and a while longer. */
async function everyRecord(brokers: readonly string[], prefix: string, enough: number): Promise<RawRecord[]> {
  const kafka = clientOf({ brokers })
  const admin = kafka.admin()
  await admin.connect()
  const topics = (await admin.listTopics()).filter((name) => name.startsWith(prefix))
  await admin.disconnect()
  const consumer = kafka.consumer({ groupId: `${prefix}stranger` })
  const records: RawRecord[] = []
  await consumer.connect()
  await consumer.subscribe({ topics, fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ message: { key, value, headers = {} } }) => void records.push({ key, value, headers }),
  })
  while (records.length < enough) await delay(50)
  await delay(500)
  await consumer.disconnect()
  return records
}
