import assert from 'node:assert/strict'
import type { Delivery, LogBackend, Projector, RecordedEvent } from '../../log/index.ts'
import type { LogCase } from './suite.ts'
import { assertRefused, commitOn, grow, jsonBytes, newStream, scanAll, take } from './writing.ts'

const request = ({ stream, version }: RecordedEvent) => ({ key: `${stream} ${version}`, value: jsonBytes({ stream, version }) })

/** One row per event, with the length of its stream as the transaction saw it; `publish`: also one request per event. */
const rowsProjector = (version: number, publish: boolean): Projector => ({
  name: 'conformance.rows',
  version,
  schema:
    'CREATE TABLE conformance_rows(stream TEXT, version INTEGER, length INTEGER, release INTEGER, PRIMARY KEY(stream, version))',
  drop: 'DROP TABLE conformance_rows',
  apply(tx, events) {
    const lengths = new Map<string, number>()
    for (const { stream } of events) if (!lengths.has(stream)) lengths.set(stream, tx.read(stream).length)
    for (const event of events) {
      const { stream, version: at } = event
      tx.run('INSERT INTO conformance_rows VALUES (?, ?, ?, ?)', stream, at, lengths.get(stream)!, version)
      if (publish) tx.publish('requests', request(event))
    }
  },
})

/** One request per event. */
const requestsProjector = (version: number): Projector => ({
  name: 'conformance.requests',
  version,
  schema: '',
  drop: '',
  publishes: true,
  apply(tx, events) {
    for (const event of events) tx.publish('requests', request(event))
  },
})

/** One row and one request per event. Where work is shared, requests are made by a projector that does nothing else. */
export const installRows = (log: LogBackend, version = 1): Promise<void> =>
  log.install(log.assignment ? [rowsProjector(version, false), requestsProjector(version)] : [rowsProjector(version, true)])

/** The requests there are. Where work is shared, this process takes part, and they are waited for until there are `count`. */
export async function requestsOf(log: LogBackend, count: number): Promise<Delivery[]> {
  if (log.assignment) {
    await log.assignment.join()
    await take(log.topics.subscribe('requests', {}), count)
  }
  return scanAll(log, 'requests')
}

export interface Row {
  stream: string
  version: number
  length: number
  release: number
}

export const rowsOf = (log: LogBackend, stream: string): Row[] =>
  log.tables.all<Row>('SELECT * FROM conformance_rows WHERE stream = ? ORDER BY version', stream)

const versions = (rows: Row[]) => rows.map((row) => row.version)

export const projectorCases: LogCase[] = [
  {
    name: 'rows are there when the append resolves; a refused or repeated commit adds none',
    async run({ open }) {
      const log = await open()
      await installRows(log)
      const stream = newStream()
      const commit = commitOn(stream, undefined, 2)
      await log.events.append(commit)
      assert.deepEqual(versions(rowsOf(log, stream)), [1, 2])
      await log.events.append(commit)
      await log.events.append(commitOn(stream, undefined))
      assert.deepEqual(versions(rowsOf(log, stream)), [1, 2])
    },
  },
  {
    name: 'a projector reads the stream with the events of its own transaction',
    async run({ open }) {
      const log = await open()
      await installRows(log)
      const stream = newStream()
      await grow(log.events, stream, 1, 2)
      await grow(log.events, stream, 1)
      assert.deepEqual(
        rowsOf(log, stream).map((row) => row.length),
        [2, 2, 3],
      )
    },
  },
  {
    name: 'installing on a log with a past catches up before it resolves',
    async run({ open }) {
      const log = await open()
      const [a, b] = [newStream(), newStream()]
      await grow(log.events, a, 3, 500)
      await grow(log.events, b, 1)
      await installRows(log)
      assert.equal(rowsOf(log, a).length, 1_500)
      await grow(log.events, b, 1)
      assert.deepEqual(versions(rowsOf(log, b)), [1, 2])
    },
  },
  {
    name: 'a raised version rebuilds the tables, and what was published is not published again',
    async run({ open }) {
      const log = await open()
      const stream = newStream()
      await installRows(log, 1)
      await grow(log.events, stream, 2)
      await installRows(log, 2)
      await grow(log.events, stream, 1)
      assert.deepEqual(
        rowsOf(log, stream).map((row) => [row.version, row.release]),
        [
          [1, 2],
          [2, 2],
          [3, 2],
        ],
      )
      assert.deepEqual(
        (await requestsOf(log, 3)).map((record) => record.key),
        [1, 2, 3].map((version) => `${stream} ${version}`),
      )
      await assertRefused(installRows(log, 1), 'projector_newer')
      assert.equal(rowsOf(log, stream).length, 3)
    },
  },
  {
    name: 'a cache is written whole or not at all, and tables are otherwise only read',
    async run({ open }) {
      const log = await open()
      await log.install([
        {
          ...rowsProjector(1, false),
          name: 'conformance.cache',
          schema: 'CREATE TABLE conformance_cache(v INTEGER)',
          drop: 'DROP TABLE conformance_cache',
          apply() {},
        },
      ])
      const values = () => log.tables.all<{ v: number }>('SELECT v FROM conformance_cache ORDER BY v').map((row) => row.v)
      const failing = log.cache((tx) => {
        tx.run('INSERT INTO conformance_cache VALUES (1)')
        throw new Error('no')
      })
      const working = log.cache((tx) => tx.run('INSERT INTO conformance_cache VALUES (2)'))
      await assert.rejects(failing, /no/)
      await working
      assert.deepEqual(values(), [2])
      assert.throws(() => log.tables.run('DELETE FROM conformance_cache'), { code: 'tables_read_only' })
      assert.deepEqual(values(), [2])
    },
  },
]
