import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, test } from 'vitest'
import { type LogBackend, openLog } from '../../src/log/index.ts'
import { describeKafka, type KafkaPlace, kafkaPlace } from './kafka/index.ts'

/** What holds on every log, by name; each body is given an empty one. */
export type LogCases = Readonly<Record<string, (log: LogBackend) => Promise<void>>>

/** The cases on a log in memory, and on one in a file. */
export function onEmbeddedLogs(title: string, cases: LogCases): void {
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
  describe.each(Object.entries(logs))(`${title}, on %s`, (_, open) => {
    test.each(Object.entries(cases))(
      '%s',
      async (_name, body) => {
        const log = await open()
        cleanup.push(() => log.close())
        await body(log)
      },
      30_000,
    )
  })
}

/** The same on Kafka. */
export function onKafka(title: string, cases: LogCases): void {
  const places: KafkaPlace[] = []
  afterEach(async () => {
    for (const place of places.splice(0)) await place.remove()
  })
  describeKafka(`${title}, on Kafka`, () => {
    test.each(Object.entries(cases))(
      '%s',
      async (_, body) => {
        const place = await kafkaPlace({ partitions: 2 })
        places.push(place)
        await body(await place.open())
      },
      60_000,
    )
  })
}
