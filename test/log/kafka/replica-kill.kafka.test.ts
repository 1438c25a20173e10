import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { LogBackend } from '../../../src/log/index.ts'
import { foldStream, stateHash } from '../../../src/projections/index.ts'
import { commitOn, newStream } from '../../../src/testing/log-conformance/writing.ts'
import { describeKafka, kafkaPlace } from '../../support/kafka/index.ts'
import { Child } from '../../support/processes/child.ts'
import { recordsOf, streamsOf } from '../../support/processes/streams.ts'

const COMMITS = 4_000
const SIZE = 4

/** What a replica holds of each partition, by its tables alone; undefined before they are there. */
function held(file: string): { next: number; newest: number; rows: number }[] | undefined {
  if (!existsSync(file)) return undefined
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return database
      .prepare(
        `SELECT r.next AS next, coalesce(max(e.place % (1 << 40)), -1) AS newest, count(e.place) AS rows
         FROM replica r LEFT JOIN events e ON e.place >> 40 = r.partition GROUP BY r.partition`,
      )
      .all() as { next: number; newest: number; rows: number }[]
  } catch {
    return undefined
  } finally {
    database.close()
  }
}

const hashes = async (log: LogBackend) =>
  Promise.all(
    streamsOf(log)
      .sort()
      .map(async (stream) => stateHash(foldStream(await recordsOf(log, stream)).state)),
  )

describeKafka('a replica whose process is killed while it is built', () => {
  // Row 114: the place to go on from was saved every thousand records of one kind, so a dirty stop began again and again.
  // Row 121: an offset and the rows it stood for did not agree after a kill, and everything was wiped.
  test('row 114, row 121: goes on from where it was; its offset and its rows agree at every kill', async () => {
    await using place = await kafkaPlace({ partitions: 2 })
    const writer = await place.open()
    for (let i = 0; i < COMMITS; i += 500)
      await Promise.all(Array.from({ length: 500 }, () => writer.events.append(commitOn(newStream(), undefined, SIZE))))
    const { brokers, prefix } = place
    const replica = place.replica('killed')
    const seen: number[] = []
    let isWhole = false
    for (let round = 0; round < 12 && !isWhole; round++) {
      const child = await Child.start('../../log/kafka/replica-reader.ts', { brokers: [...brokers], prefix, replica })
      const opening = child.ask('open').then((answer) => (isWhole ||= 'value' in answer))
      const before = seen.at(-1) ?? 0
      while (!isWhole && (held(replica) ?? []).reduce((sum, { rows }) => sum + rows, 0) <= before) await delay(2)
      await child.kill()
      await opening
      const now = held(replica) ?? []
      for (const { next, newest, rows } of now) {
        // Nothing but accepted commits is in this log: each record below the offset is a row, and none above it.
        expect(newest).toBe(next - 1)
        expect(rows).toBe(next)
      }
      seen.push(now.reduce((sum, { rows }) => sum + rows, 0))
    }
    expect(seen).toEqual([...seen].sort((a, b) => a - b))
    expect(seen.length).toBeGreaterThan(1)
    const log = await place.open({ replica })
    expect(await hashes(log)).toEqual(await hashes(writer))
    expect(streamsOf(log)).toHaveLength(COMMITS)
  }, 120_000)
})
