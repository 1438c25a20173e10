import { chmodSync, existsSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openLog, openSqliteLog } from '../../../src/log/index.ts'
import { after, commitOn, grow, newStream, readStream } from '../../../src/testing/log-conformance/writing.ts'
import { temporaryFolder } from '../support/sqlite-place.ts'

let folder: ReturnType<typeof temporaryFolder>
let file: string
beforeEach(() => {
  folder = temporaryFolder()
  file = join(folder.path, 'log.db')
})
afterEach(() => folder.remove())

/** Runs SQL on the file behind the log's back. */
function sql(text: string): void {
  const database = new DatabaseSync(file)
  database.exec(text)
  database.close()
}

/** Runs `body` as a user who owns nothing. */
async function unprivileged(body: () => Promise<void>): Promise<void> {
  const root = process.geteuid?.() === 0
  if (root) process.seteuid?.(65_534)
  try {
    await body()
  } finally {
    if (root) process.seteuid?.(0)
  }
}

describe('opening a file', () => {
  test('a missing file is made, unless that is not wanted', async () => {
    await expect(openSqliteLog({ file, create: false })).rejects.toMatchObject({ code: 'log_missing', disposition: 'reject' })
    await expect(openSqliteLog({ file, readOnly: true })).rejects.toMatchObject({ code: 'log_missing' })
    expect(existsSync(file)).toBe(false)
    const log = await openSqliteLog({ file })
    expect(log.events.id).toMatch(/^[0-9a-f]{32}$/)
    await log.close()
    const again = await openSqliteLog({ file, create: false })
    expect(again.events.id).toBe(log.events.id)
    await again.close()
  })

  test('it says what it is: application id, format, partitions, time', async () => {
    const log = await openSqliteLog({ file, clock: { now: () => 1_700_000_000_000, monotonic: () => 0, sleep: async () => {} } })
    await log.close()
    const database = new DatabaseSync(file, { readOnly: true })
    expect(database.prepare('PRAGMA application_id').get()).toEqual({ application_id: 0x746c6f67 })
    expect(readFileSync(file).subarray(68, 72).toString()).toBe('tlog')
    expect(database.prepare('SELECT name, value FROM meta ORDER BY name').all()).toEqual([
      { name: 'created', value: 1_700_000_000_000 },
      { name: 'format', value: 1 },
      { name: 'id', value: log.events.id },
      { name: 'partitions', value: 1 },
    ])
    database.close()
  })

  test('a folder that is not there is unavailable', async () => {
    await expect(openSqliteLog({ file: join(folder.path, 'no', 'log.db') })).rejects.toMatchObject({ code: 'log_unavailable' })
  })

  test('another program’s database is left alone', async () => {
    sql('CREATE TABLE customers(id)')
    const before = readFileSync(file)
    await expect(openSqliteLog({ file })).rejects.toMatchObject({ code: 'log_foreign', disposition: 'reject' })
    expect(readFileSync(file)).toEqual(before)
  })

  test('what is not a database is damaged', async () => {
    writeFileSync(file, 'no database '.repeat(500))
    await expect(openSqliteLog({ file })).rejects.toMatchObject({ code: 'log_damaged', disposition: 'fatal' })
  })

  test('a damaged page is reported when it is met', async () => {
    const log = await openSqliteLog({ file })
    const stream = newStream()
    await grow(log.events, stream, 3, 400)
    await log.close()
    const handle = openSync(file, 'r+')
    for (let page = 40; page < statSync(file).size / 4_096; page++)
      writeSync(handle, Buffer.alloc(4_096, 0xaa), 0, 4_096, page * 4_096)
    const damaged = openSqliteLog({ file, readOnly: true })
    const reading = damaged.then((open) => readStream(open.events, stream).finally(() => open.close()))
    await expect(reading).rejects.toMatchObject({ code: 'log_damaged', disposition: 'fatal' })
  })

  test('a newer format is not touched', async () => {
    await (await openSqliteLog({ file })).close()
    sql('PRAGMA user_version = 2')
    const refused = { code: 'log_format_newer', disposition: 'fatal', details: { format: 2, supported: 1 } }
    await expect(openSqliteLog({ file })).rejects.toMatchObject(refused)
    await expect(openSqliteLog({ file, readOnly: true })).rejects.toMatchObject(refused)
  })

  test('a log opened read-only reads and refuses to append', async () => {
    const writer = await openSqliteLog({ file })
    const stream = newStream()
    const commit = commitOn(stream, undefined)
    await writer.events.append(commit)
    const reader = await openSqliteLog({ file, readOnly: true })
    const next = commitOn(stream, after(commit))
    await expect(reader.events.append(next)).rejects.toMatchObject({ code: 'log_read_only', disposition: 'reject' })
    await writer.events.append(next)
    expect((await readStream(reader.events, stream)).length).toBe(2)
    await reader.close()
    await writer.close()
  })

  test('a file this user may not write is read, and appends are refused', async () => {
    chmodSync(folder.path, 0o755)
    const owner = await openSqliteLog({ file })
    const stream = newStream()
    const commit = commitOn(stream, undefined)
    await owner.events.append(commit)
    for (const name of [file, `${file}-wal`, `${file}-shm`]) chmodSync(name, 0o444)
    await unprivileged(async () => {
      const guest = await openSqliteLog({ file })
      expect((await readStream(guest.events, stream)).length).toBe(1)
      await expect(guest.events.append(commitOn(stream, after(commit)))).rejects.toMatchObject({ code: 'log_read_only' })
      await guest.close()
    })
    await owner.close()
  })

  test('many open a new file at once and share one log', async () => {
    const logs = await Promise.all(Array.from({ length: 8 }, () => openSqliteLog({ file })))
    expect(new Set(logs.map((log) => log.events.id)).size).toBe(1)
    await Promise.all(logs.map((log) => log.close()))
  })
})

describe('openLog', () => {
  test('knows memory and sqlite addresses', async () => {
    await (await openLog('memory')).close()
    await (await openLog(`sqlite:${file}`)).close()
    expect(existsSync(file)).toBe(true)
    await expect(openLog(`sqlite:${file}.other`, { create: false })).rejects.toMatchObject({ code: 'log_missing' })
  })

  test.each(['', 'sqlite:', 'sqlite::memory:', 'postgres://x', './log.db'])('refuses %j', async (url) => {
    await expect(openLog(url)).rejects.toMatchObject({ code: 'log_url_invalid', disposition: 'reject' })
  })
})
