import { describe, expect, it, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import type { LogBackend } from '../../src/log/index.ts'
import { continuationConformance } from '../../src/testing/index.ts'
import { hastyClock } from '../support/continuation-play.ts'
import { type Open, play } from '../support/continuation-worlds.ts'
import { describeKafka, kafkaPlace } from '../support/kafka/index.ts'

describeKafka('continuations on Kafka', () => {
  continuationConformance(
    { describe, test },
    {
      name: 'kafka, each store with a replica of its own',
      traits: ['replicas', 'durable', 'reasons', 'guarded'],
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
})
