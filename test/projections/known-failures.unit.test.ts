import { copyFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { countingIds, systemClock } from '../../src/base/index.ts'
import { defineTool, externalTool, openThreadlog, type Threadlog } from '../../src/index.ts'
import { openMemoryLog, openSqliteLog, type TopicName } from '../../src/log/index.ts'
import { foldStream, stateHash, ThreadStore, verifyRecords } from '../../src/projections/index.ts'
import { temporaryFolder } from '../log/support/sqlite-place.ts'
import { agentOf, calls, eventsOf, says } from '../support/agents.ts'
import { commitsOf, readLogs } from '../support/recorded/recorded-log.ts'

// What broke in comparable systems, by its row in the list of known failures: each test covers the class, not the one case.

const folder = temporaryFolder()
const opened: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close()
})
afterAll(() => folder.remove())

let files = 0
const newFile = () => `${folder.path}/${++files}.db`
const openOn = async (file: string): Promise<Threadlog> => {
  const threads = await openThreadlog({ log: `sqlite:${file}` })
  opened.push(threads)
  return threads
}
const sql = (file: string, ...statements: string[]): void => {
  const database = new DatabaseSync(file)
  for (const statement of statements) database.exec(statement)
  database.close()
}
const recorded = (name: string) => readLogs().find(({ manifest }) => manifest.name === name)!
const input = z.object({ n: z.int() })

// An archived log was opened again with its writer at index 1, because only what was hot was asked for its end.
// Here the next version is the log's own: whatever caches, snapshots and tables are gone, a commit stands on the last event.
test.each<[string, string[]]>([
  ['nothing', []],
  ['the snapshots', ['DELETE FROM snapshots']],
  ['the tables that follow from the log', ['DELETE FROM threads', 'DELETE FROM waits', 'DELETE FROM snapshots']],
  ['the tables, to be built again', ['DELETE FROM projectors', 'DROP TABLE threads', 'DROP TABLE waits', 'DROP TABLE snapshots']],
])('row 61: opened again without %s, a thread goes on with the next version', async (_, losses) => {
  const file = newFile()
  const agent = () => agentOf(() => says('yes'), [])
  for (let round = 1; round <= 3; round++) {
    const threads = await openOn(file)
    const before = round === 1 ? 0 : (await threads.store.load(threads.thread('cold_1').stream)).version
    const result = await threads.run(agent(), { thread: 'cold_1', input: `round ${round}` })
    await threads.store.snapshot(threads.thread('cold_1').stream, true)
    const records = await eventsOf(threads, 'cold_1')
    expect(records.map(({ version }) => version)).toEqual(Array.from({ length: result.version }, (_, i) => i + 1))
    expect(records[before]?.event).toMatchObject({ version: before + 1, commit: { base: before, index: 0 } })
    expect(verifyRecords(threads.thread('cold_1').stream, records).damage).toBeUndefined()
    await threads.close()
    sql(file, ...losses)
  }
})

// Ids were drawn anew while a log was read again, so nothing of before the crash could be looked up after it.
// Here ids are recorded, or made of what is: two readers of one log publish the same records and hand out the same keys.
test('row 75: a log built up twice gives the same requests, checkpoints and waits, byte for byte', async () => {
  for (const log of readLogs()) {
    const seen = []
    for (const ids of [countingIds(), countingIds(1000)]) {
      const backend = await openMemoryLog()
      for (const commit of commitsOf(log.records)) await backend.events.append(commit)
      const threads = await openThreadlog({ log: backend, application: 'recorded', ids })
      opened.push(backend, threads)
      const published: Record<string, unknown[]> = {}
      for (const topic of ['requests', 'checkpoints'] satisfies TopicName[]) {
        published[topic] = []
        for await (const batch of backend.topics.scan(topic))
          published[topic].push(...batch.map(({ key, value, headers }) => [key, Buffer.from(value).toString(), headers]))
      }
      const waits = []
      for await (const wait of threads.waits()) waits.push(wait)
      const { state } = await threads.store.fold(log.manifest.stream)
      seen.push({ published, waits, state: stateHash(state), closed: [...state.closedWaits].map(([id]) => id) })
    }
    expect(seen[1]).toEqual(seen[0])
  }
})

test('row 75: two recoveries of one log hand the same key to a call that is repeated, the one it was given at first', async () => {
  const log = recorded('recovery')
  const crash = log.records.findIndex(({ event }) => event?.type === 'run.recovered/1')
  const keys: string[] = []
  for (const ids of [countingIds(), countingIds(5000)]) {
    const backend = await openMemoryLog()
    for (const commit of commitsOf(log.records.slice(0, crash))) await backend.events.append(commit)
    const threads = await openThreadlog({ log: backend, application: 'recorded', ids })
    opened.push(backend, threads)
    const execute = (_: unknown, { idempotencyKey }: { idempotencyKey: string }) => void keys.push(idempotencyKey)
    const tools = [
      defineTool({ name: 'once', description: 'Not to be repeated', input, execute }),
      defineTool({ name: 'safe', description: 'May be repeated', input, recovery: 'retryable', execute }),
    ]
    const result = await threads.run(agentOf([says('again')], tools), { thread: 'recorded_recovery' })
    expect(result).toMatchObject({ status: 'completed', output: 'again' })
  }
  const given = log.records.flatMap(({ event }) =>
    event?.type === 'tool.dispatched/1' && event.data.call_id === 'c2' ? event.data.idempotency_key : [],
  )
  expect(new Set([...keys, ...given]).size).toBe(1)
  expect(keys).toHaveLength(2)
})

test('row 75: two copies of a file judge the same results with the same receipts', async () => {
  const file = newFile()
  const far = externalTool({
    name: 'far',
    description: 'Elsewhere',
    provider: 'outside',
    input,
    result: z.object({ ok: z.boolean() }),
  })
  const agent = () =>
    agentOf((prompt) => (prompt.some(({ role }) => role === 'tool') ? says('done') : calls(['c1', 'far', { n: 1 }])), [far])
  const threads = await openThreadlog({ log: `sqlite:${file}` })
  const { waits } = await threads.run(agent(), { thread: 'copy_1', input: 'go' })
  const id = waits[0]?.id ?? ''
  const results: object[] = [
    { provider: 'outside', continuation_id: id, result: { ok: 'no' } },
    { provider: 'outside', continuation_id: 'nobody', result: {} },
    { provider: 'outside', continuation_id: id, result: { ok: true } },
    { provider: 'outside', continuation_id: id, result: { ok: true } },
    { provider: 'outside', continuation_id: id, result: { ok: false } },
    { provider: 'human', continuation_id: id, result: {} },
  ]
  await threads.backend.topics.publish(
    'results',
    results.map((value) => ({ key: '', value: Buffer.from(JSON.stringify(value)) })),
  )
  await threads.close()
  const receipts: string[][] = []
  for (let copy = 0; copy < 2; copy++) {
    const own = newFile()
    copyFileSync(file, own)
    const again = await openThreadlog({ log: `sqlite:${own}`, agents: [agent()] })
    opened.push(again)
    await again.serve()
    const found: string[] = []
    for await (const batch of again.backend.topics.subscribe('receipts', { from: new Map([[0, 0n]]) })) {
      found.push(...batch.map(({ value }) => Buffer.from(value).toString()))
      if (found.length >= results.length) break
    }
    receipts.push(found)
  }
  expect(receipts[0]!.map((receipt) => JSON.parse(receipt).verdict)).toEqual([
    ...['invalid', 'unknown', 'accepted', 'duplicate', 'conflict', 'forbidden'],
  ])
  expect(receipts[1]).toEqual(receipts[0])
})

// A snapshot stood before the log began, or behind its end, and the state was made of both.
// Here a snapshot counts only if the log has its very event; what is missing in front of it or behind it is said, never bridged.
test('row 105: a log cut off behind or in front of a snapshot', async () => {
  const { records, manifest } = recorded('suspension')
  const commits = commitsOf(records)
  const cutAt = 20
  const kept = records.filter(({ event }) => event!.commit.base + event!.commit.size <= cutAt)
  const begin = async (last: number) => {
    const file = newFile()
    const log = await openSqliteLog({ file })
    for (const commit of commits) if (commit.base + commit.records.length <= last) await log.events.append(commit)
    const store = await ThreadStore.open({ backend: log, clock: systemClock, ids: countingIds() })
    await store.load(manifest.stream)
    await store.snapshot(manifest.stream, true)
    await log.close()
    return file
  }
  const load = async (file: string) => {
    const log = await openSqliteLog({ file })
    opened.push(log)
    return (await ThreadStore.open({ backend: log, clock: systemClock, ids: countingIds() })).fold(manifest.stream)
  }

  /** A snapshot in the middle, the rest of the log behind it, and then some events gone. */
  const damaged = async (statement: string) => {
    const file = await begin(cutAt)
    const log = await openSqliteLog({ file })
    for (const commit of commits) if (commit.base >= kept.length) expect((await log.events.append(commit)).accepted).toBe(true)
    await log.close()
    sql(file, statement)
    return load(file)
  }

  const shortened = await begin(records.length)
  sql(shortened, `DELETE FROM events WHERE version > ${kept.length}`)
  expect(stateHash((await load(shortened)).state)).toBe(stateHash(foldStream(kept).state))

  const at = kept.length
  const missing = (version: number) => ({ quarantine: { code: 'event_missing', version } })
  // The log begins just behind the snapshot, further behind it, and with the snapshot's own event: nothing is lost only then.
  expect(await damaged(`DELETE FROM events WHERE version <= ${at}`)).toMatchObject(missing(at + 1))
  expect(await damaged(`DELETE FROM events WHERE version <= ${at + 1}`)).toMatchObject(missing(at + 2))
  expect(stateHash((await damaged(`DELETE FROM events WHERE version < ${at}`)).state)).toBe(stateHash(foldStream(records).state))
  // A hole behind the snapshot, and one before it that the snapshot has seen.
  expect(await damaged(`DELETE FROM events WHERE version = ${at + 1}`)).toMatchObject(missing(at + 2))
  expect(stateHash((await damaged(`DELETE FROM events WHERE version = 3`)).state)).toBe(stateHash(foldStream(records).state))
})
