// Rows of one size into bare node:sqlite, many at a time: one BEGIN IMMEDIATE for each turn of the event loop.
//   node bench/floor-process.ts <options as JSON>
import { DatabaseSync } from 'node:sqlite'
import { now, pool, quantile, shuffled } from './statistics.ts'

export interface FloorOptions {
  /** A new file, or `:memory:`. */
  file: string
  /** Streams that exist before, with {@link STANDING} rows each. */
  streams: number
  rows: number
  rowBytes: number
  inFlight: number
}

/** Rows of a waiting thread, and those a resume adds to it. */
const STANDING = 8
const ADDED = 10

const { file, streams, rows, rowBytes, inFlight } = JSON.parse(process.argv[2] ?? '{}') as FloorOptions
const db = new DatabaseSync(file, { timeout: 0 })
db.exec(
  `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 1000; PRAGMA temp_store = MEMORY;
   PRAGMA cache_size = -65536;
   CREATE TABLE events(id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, version INTEGER NOT NULL, value BLOB NOT NULL,
     UNIQUE(stream, version))`,
)
const insert = db.prepare('INSERT INTO events(stream, version, value) VALUES (?, ?, ?)')
const begin = db.prepare('BEGIN IMMEDIATE')
const commit = db.prepare('COMMIT')
const value = Buffer.alloc(rowBytes, 97)

for (let stream = 1; stream <= streams; stream += 100) {
  begin.run()
  for (let of = stream; of < Math.min(streams + 1, stream + 100); of++)
    for (let version = 1; version <= STANDING; version++) insert.run(of, version, value)
  commit.run()
}

/** Streams in random order, as results come; what one resume adds to its stream stands together. */
const order = shuffled(streams)
const place = (row: number): [stream: number, version: number] => {
  const nth = Math.floor(row / ADDED)
  const again = Math.floor(nth / streams)
  return [(order[nth % streams] as number) + 1, STANDING + again * ADDED + (row % ADDED) + 1]
}

let queue: { row: number; done: () => void }[] = []
function flush(): void {
  const batch = queue
  queue = []
  begin.run()
  for (const { row } of batch) insert.run(...place(row), value)
  commit.run()
  for (const { done } of batch) done()
}
const append = (row: number) =>
  new Promise<void>((done) => {
    if (queue.push({ row, done }) === 1) setImmediate(flush)
  })

const warmUp = Math.min(500, rows)
await pool(warmUp, inFlight, append)
const latencies: number[] = []
const begun = now()
await pool(rows, inFlight, async (i) => {
  const sent = now()
  await append(warmUp + i)
  latencies.push(now() - sent)
})
const perSecond = rows / ((now() - begun) / 1_000)
db.close()
process.send?.({
  per_second: perSecond,
  p50_ms: quantile(latencies, 0.5),
  p99_ms: quantile(latencies, 0.99),
  rows_per_second: perSecond,
  details: { row_bytes: rowBytes },
})
process.disconnect()
