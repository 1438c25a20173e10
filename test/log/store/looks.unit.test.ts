import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openSqliteLog } from '../../../src/log/index.ts'
import { Connection } from '../../../src/log/store/connection.ts'
import { grow, newStream } from '../../../src/testing/log-conformance/writing.ts'
import { temporaryFolder } from '../support/sqlite-place.ts'

let folder: ReturnType<typeof temporaryFolder>
let file: string
beforeEach(() => {
  folder = temporaryFolder()
  file = join(folder.path, 'log.db')
})
afterEach(() => folder.remove())

describe('the data version', () => {
  let ours: Connection
  let others: DatabaseSync
  beforeEach(() => {
    others = new DatabaseSync(file)
    others.exec('PRAGMA journal_mode = WAL; CREATE TABLE t(x)')
    ours = new Connection(new DatabaseSync(file), file, 0)
  })
  afterEach(() => {
    ours.close()
    others.close()
  })

  test('is asked for once by all who wait together', async () => {
    const before = ours.dataVersion()
    const waiting = [1, 2, 3].map(() => Promise.resolve().then(() => ours.dataVersion()))
    expect(await Promise.all(waiting)).toEqual([before, before, before])
    others.exec('INSERT INTO t VALUES (1)')
    await Promise.resolve()
    expect(ours.dataVersion()).not.toBe(before)
  })

  test('is asked for again once anything else was read, for that may be newer', () => {
    const before = ours.dataVersion()
    others.exec('INSERT INTO t VALUES (1)')
    expect(ours.get('SELECT count(*) AS n FROM t')).toEqual({ n: 1 })
    expect(ours.dataVersion()).not.toBe(before)
  })
})

test('who is told of an event of another process finds it in the head, and misses none, while this one writes too', async () => {
  const events = 150
  await using log = await openSqliteLog({ file })
  const [theirs, ours] = [newStream(), newStream()]
  const told = new Map([
    [theirs, 0],
    [ours, 0],
  ])
  const signal = AbortSignal.timeout(60_000)
  const following = (async () => {
    for await (const records of log.events.follow({ from: new Map(), signal }))
      for (const { stream, version } of records) {
        expect(version).toBe(told.get(stream)! + 1)
        told.set(stream, version)
        expect((await log.events.head(stream))!.version).toBeGreaterThanOrEqual(version)
        if ([...told.values()].every((count) => count === events)) return
      }
  })()
  const worker = new Worker(new URL('../support/appending-worker.ts', import.meta.url), {
    workerData: { file, stream: theirs, events },
  })
  const ended = once(worker, 'exit')
  for (let i = 0; i < events; i++) await grow(log.events, ours, 1)
  await Promise.all([following, ended])
  expect([...told.values()]).toEqual([events, events])
})
