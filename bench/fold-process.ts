// Writes a log of whole lives of threads, then replays it in log order: read, decode, hash, verify the chain, fold.
//   node bench/fold-process.ts <options as JSON>
import { decodeEnvelope, decodeEvent, type StreamKey } from '../src/events/index.ts'
import { openLog } from '../src/log/index.ts'
import { emptyFold, type Folded, foldRecord } from '../src/projections/index.ts'
import { now, pool } from './statistics.ts'
import { keyOf, lifeTemplates, nothingWritten, write } from './templates.ts'

const { log, events } = JSON.parse(process.argv[2] ?? '{}') as { log: string; events: number }

/** Threads that live at the same time in the log. */
const ABREAST = 64

const templates = await lifeTemplates()
const perThread = templates.flat().length
const count = Math.max(1, Math.ceil(events / perThread))
let backend = await openLog(log)
await pool(count, ABREAST, async (i) => {
  const thread = nothingWritten(keyOf(i))
  for (const template of templates) await backend.events.append(write(thread, template))
})
const total = count * perThread
// What this process wrote it would have at hand without reading.
if (log !== 'memory') {
  await backend.close()
  backend = await openLog(log)
}

/** Each pass reads the log anew. CPU is of this process, reading included. */
async function pass(name: string, each: (value: Uint8Array) => unknown): Promise<[string, number]> {
  const cpu = process.cpuUsage()
  let last = 0
  for (;;) {
    const rows = backend.tables.all<{ id: number; value: Uint8Array }>(
      'SELECT id, value FROM events WHERE id > ? ORDER BY id LIMIT 2000',
      last,
    )
    if (rows.length === 0) break
    for (const { value } of rows) each(value)
    last = rows.at(-1)?.id as number
  }
  const { user, system } = process.cpuUsage(cpu)
  return [name, (user + system) / total]
}

const parts = Object.fromEntries([
  await pass('read_us', () => {}),
  await pass('envelope_us', (value) => decodeEnvelope(value)),
  await pass('decode_us', (value) => decodeEvent(value, true)),
])

/** A thread whose life is over is let go of, as any reader of a long log must. */
async function replay() {
  const threads = new Map<StreamKey, Folded>()
  const cpu = process.cpuUsage()
  const begun = now()
  const stop = new AbortController()
  let seen = 0
  let lives = 0
  for await (const records of backend.events.follow({ from: new Map([[0, 1n]]), signal: stop.signal })) {
    for (const record of records) {
      const folded = foldRecord(threads.get(record.stream) ?? emptyFold, record)
      if (record.version < perThread || folded.quarantine) threads.set(record.stream, folded)
      else {
        threads.delete(record.stream)
        lives++
      }
    }
    if ((seen += records.length) >= total) break
  }
  stop.abort()
  const seconds = (now() - begun) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  const broken = [...threads.values()].find((folded) => folded.quarantine)
  if (broken || seen !== total || lives !== count) throw new Error(`The replay failed: ${broken?.quarantine?.code ?? seen}`)
  return { wall: total / seconds, cpu: total / ((user + system) / 1e6) }
}

await replay()
const { wall, cpu } = await replay()
await backend.close()
process.send?.({
  per_second: wall,
  p50_ms: null,
  p99_ms: null,
  rows_per_second: wall,
  details: { events: total, threads: count, per_cpu_second: cpu, ...parts },
})
process.disconnect()
