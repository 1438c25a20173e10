import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { support } from './support/agents.ts'
import { AGENTS, collected, normalised, records, cli as run, says, start } from './support/cli.ts'
import { type Shop, shopLog } from './support/shop.ts'

let shop: Shop
let stream = ''
let copies = 0
beforeAll(async () => {
  shop = await shopLog()
  sql(shop.log, 'PRAGMA wal_checkpoint(TRUNCATE)')
  stream = sql<{ stream: string }>(shop.log, "SELECT stream FROM threads WHERE thread = 'order_991'")[0]?.stream ?? ''
})
afterAll(() => shop.remove())

function sql<Row>(file: string, ...statements: string[]): Row[] {
  const database = new DatabaseSync(file)
  try {
    return statements.map((statement) => database.prepare(statement).all() as Row[]).at(-1) ?? []
  } finally {
    database.close()
  }
}

/** A copy of the log that somebody has changed past every check. */
function changed(...statements: string[]): string {
  const file = join(shop.folder, `copy-${++copies}.db`)
  copyFileSync(shop.log, file)
  sql(file, ...statements)
  return file
}

const EVENT = (version: number) => `stream = (SELECT id FROM streams WHERE key = x'${stream}') AND version = ${version}`

/** Replaces the byte before the last `back` ones of an event's value. */
const flip = (version: number, back: number) =>
  `UPDATE events SET value = substr(value, 1, length(value) - ${back + 1}) || x'2a' || substr(value, length(value) - ${back} + 1) WHERE ${EVENT(version)}`

/** Runs `verify --all` and gives the record of the damaged thread, if there is one. */
async function verify(log: string) {
  const { code, out } = await run(['verify', '--all', '-o', 'jsonl'], { log })
  const found = records(out)
  expect(found.every((line) => line['schema'] === 'threadlog.cli/1')).toBe(true)
  const damaged = found.filter((line) => line['ok'] === false)
  expect(code).toBe(damaged.length > 0 ? 1 : 0)
  return { threads: found.length, damaged: damaged.map(({ code, version, offset }) => ({ code, version, offset })) }
}

describe('an intact log', () => {
  test('may have streams that are no threads: what is reserved, and what came before its wait', async () => {
    const file = join(shop.folder, 'reserved.db')
    const threads = await openThreadlog({ log: `sqlite:${file}`, earlyResults: { providers: ['bank'] } })
    const store = threads.continuationStore()
    const own = { userId: 'ann', sessionId: 'one', runId: 'run-1' }
    await store.beginRun({ scope: { applicationId: 'default', ...own }, framework: 'adk' })
    const bank = threads.continuations('bank')
    await bank.suspend({ ...own, externalId: 'job-1', capability: 'pay', schemaId: 'pay/v1' })
    expect((await threads.submit({ provider: 'bank', external_id: 'job-2', result: 1 })).verdict).toBe('held')
    await threads.close()
    expect(await verify(file)).toMatchObject({ damaged: [] })
    expect(sql(file, 'SELECT thread FROM threads')).toEqual([{ thread: 'one' }])
  })

  test('is told so, thread by thread and as a whole', async () => {
    const all = await run(['verify', '--all'], { log: shop.log })
    expect(all).toEqual({ code: 0, out: '6 threads, 56 events: intact\n', err: '' })
    const one = await run(['verify', 'shop/u-17/order_991', '-o', 'json'], { log: shop.log })
    expect(JSON.parse(normalised(one.out))).toMatchInlineSnapshot(`
      {
        "schema": "threadlog.cli/1",
        "threads": [
          {
            "events": 12,
            "head": {
              "hash": "<hash>",
              "version": 12,
            },
            "ok": true,
            "stream": "<hash>",
            "thread": "shop/u-17/order_991",
          },
        ],
      }
    `)
    expect((await run(['verify', stream.slice(0, 8)], { log: shop.log })).out).toMatch(
      /^ok +12 +[0-9a-f]{12} +shop\/u-17\/order_991$/m,
    )
    expect(await run(['verify'], { log: shop.log })).toMatchObject({ code: 2 })
  })

  test('stays intact under an engine', async () => {
    const log = changed()
    const engine = start(['engine', AGENTS, '--app', 'shop'], { log })
    const ended = collected(engine)
    await says(engine, 'stderr', /^ready: /)
    const [, found] = await Promise.all([
      run(['start', 'support', 'shop/u-17/order_more', 'Hello 7', '--wait'], { log }),
      verify(log),
    ])
    engine.kill('SIGTERM')
    expect(found.damaged).toEqual([])
    expect((await ended).code).toBe(143)
  })
})

describe('damage', () => {
  test('a changed byte: the record and its offset are named', async () => {
    const log = changed(flip(7, 20))
    expect(await verify(log)).toEqual({ threads: 6, damaged: [{ code: 'hash-mismatch', version: 7, offset: '7' }] })
    const { out, code } = await run(['verify', '--all'], { log })
    expect(out).toMatch(/^damaged +12 +[0-9a-f]{12} +hash-mismatch +7 +0@7 +shop\/u-17\/order_991 +The record is not/m)
    expect(out).toMatch(/^6 threads, 56 events: 1 damaged\n/m)
    expect(code).toBe(1)
    expect((await run(['show', 'shop/u-17/order_991'], { log })).out).toMatch(/damaged at version 7 \(hash-mismatch\)\n$/)
  })

  test('a changed byte of the newest event, of which a checkpoint was published', async () => {
    expect((await verify(changed(flip(12, 40)))).damaged).toMatchObject([{ version: 12, offset: '12' }])
  })

  test('a deleted record', async () => {
    expect((await verify(changed(`DELETE FROM events WHERE ${EVENT(5)}`))).damaged).toEqual([
      { code: 'missing', version: 5, offset: '6' },
    ])
    expect((await verify(changed(`DELETE FROM events WHERE ${EVENT(12)}`))).damaged).toEqual([
      { code: 'commit-incomplete', version: 12, offset: null },
    ])
    const commit = `DELETE FROM events WHERE ${EVENT(0).replace('version = 0', 'version > 8')}`
    expect((await verify(changed(commit))).damaged).toEqual([{ code: 'missing', version: 9, offset: null }])
  })

  test('a deleted thread, which its index still has', async () => {
    const log = changed(`DELETE FROM events WHERE ${EVENT(0).replace('version = 0', 'version > 0')}`)
    expect(await verify(log)).toEqual({ threads: 6, damaged: [{ code: 'missing', version: 1, offset: null }] })
    expect(await run(['verify', stream], { log })).toMatchObject({ code: 4, err: expect.stringContaining('thread_unknown') })
  })

  test('an index that has lost a thread, or says something else', async () => {
    const index = [{ code: 'index-mismatch', version: 12, offset: null }]
    expect(await verify(changed(`DELETE FROM threads WHERE stream = '${stream}'`))).toEqual({ threads: 6, damaged: index })
    expect((await verify(changed(`UPDATE threads SET status = 'idle' WHERE stream = '${stream}'`))).damaged).toEqual(index)
    expect((await verify(changed(`UPDATE waits SET status = 'claimed' WHERE stream = '${stream}'`))).damaged).toEqual(index)
    const { out } = await run(['verify', stream], {
      log: changed(`UPDATE threads SET open_waits = 3 WHERE stream = '${stream}'`),
    })
    expect(out).toContain('The index differs from the log: threads.open_waits.')
  })

  test('records of a commit that another record parts', async () => {
    const log = changed(`UPDATE events SET id = 100 + id WHERE ${EVENT(12)}`)
    expect((await verify(log)).damaged).toEqual([{ code: 'not-accepted', version: 9, offset: '9' }])
  })

  test('a snapshot that is not the fold', async () => {
    const log = join(shop.folder, 'snapshot.db')
    const threads = await openThreadlog({ log: `sqlite:${log}`, application: 'shop', agents: [support] })
    for (let i = 0; i < 14; i++) await threads.run(support, { thread: 'order_long', input: `Hello ${i}` })
    await threads.close()
    const [row] = sql<{ count: number }>(log, 'SELECT count(*) AS count FROM snapshots')
    expect(row?.count).toBe(1)
    expect((await verify(log)).damaged).toEqual([])
    sql(log, "UPDATE snapshots SET state = CAST(replace(CAST(state AS TEXT), 'Hello 1', 'Hallo 1') AS BLOB)")
    expect((await verify(log)).damaged).toMatchObject([{ code: 'state-mismatch' }])
  })

  test('tables that are not there are not checked', async () => {
    const log = changed("DELETE FROM projectors WHERE name = 'threads'", 'DROP TABLE threads')
    const { code, out, err } = await run(['verify', '--all'], { log })
    expect({ code, out, err }).toEqual({
      code: 0,
      out: '6 threads, 56 events: intact\n',
      err: 'The index tables are missing or behind: they are not checked.\n',
    })
    // A command that needs them makes them anew.
    expect(JSON.parse((await run(['threads', '--json'], { log })).out).threads).toHaveLength(6)
  })

  test('a file that is no log', async () => {
    const log = join(shop.folder, 'other.db')
    sql(log, 'CREATE TABLE t(x)')
    expect(await run(['verify', '--all'], { log })).toMatchObject({ code: 4, err: expect.stringContaining('log_foreign') })
    expect(await run(['verify', '--all', '--json'], { log: new URL(import.meta.url).pathname })).toMatchObject({
      code: 5,
      err: expect.stringContaining('log_damaged'),
    })
  })
})
