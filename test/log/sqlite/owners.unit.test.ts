import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type LogBackend, openMemoryLog, openSqliteLog } from '../../../src/log/index.ts'
import { temporaryFolder } from '../support/sqlite-place.ts'

describe('owners of a file', () => {
  let folder: ReturnType<typeof temporaryFolder>
  let log: LogBackend
  let now = 1_000_000
  const clock = { now: () => now, monotonic: () => now, sleep: async () => {} }
  beforeEach(async () => {
    folder = temporaryFolder()
    log = await openSqliteLog({ file: join(folder.path, 'log.db'), clock })
  })
  afterEach(async () => {
    await log.close()
    folder.remove()
  })

  /** A row of another owner; by default this very process, expiring in five seconds. */
  function register(owner: string, changes: Record<string, string | number> = {}): void {
    const database = new DatabaseSync(join(folder.path, 'log.db'))
    const self = database.prepare('SELECT * FROM owners WHERE owner_id = ?').get(log.owners.self)
    const row = { ...self, owner_id: owner, expires_at: now + 5_000, ...changes }
    const columns = Object.keys(row)
    database.prepare(`INSERT INTO owners(${columns}) VALUES (${columns.map(() => '?')})`).run(...(Object.values(row) as string[]))
    database.close()
  }
  const verdicts = async (owner: string) => [await log.owners.isDead(owner), await log.owners.isProvenDead(owner)]

  test('a living process is alive until it expires, and then dead without proof', async () => {
    register('other')
    expect(await verdicts('other')).toEqual([false, false])
    now += 5_000
    expect(await verdicts('other')).toEqual([true, false])
  })

  test('a process gone from this host is proven dead at once', async () => {
    register('other', { pid: 2 ** 22 + 1 })
    expect(await verdicts('other')).toEqual([true, true])
  })

  test('a process id given to another process does not keep its owner alive', async () => {
    register('other', { start_time: '1' })
    expect(await verdicts('other')).toEqual([true, true])
  })

  test('of another host, boot or pid namespace only expiry is believed', async () => {
    register('other', { host: 'another', pid: 2 ** 22 + 1 })
    expect(await verdicts('other')).toEqual([false, false])
    now += 5_000
    expect(await verdicts('other')).toEqual([true, false])
  })

  test('this process renews its row', async () => {
    const expiry = () =>
      log.tables.get<{ at: number }>('SELECT expires_at AS at FROM owners WHERE owner_id = ?', log.owners.self)?.at
    const first = expiry()
    expect(first).toBe(now + 10_000)
    now += 7_000
    await expect.poll(expiry, { timeout: 4_000 }).toBe(now + 10_000)
    expect(await log.owners.isDead(log.owners.self)).toBe(false)
  })

  test('row 138: an owner that closes late, after its row has expired and another has come, takes away its own row only', async () => {
    const late = await openSqliteLog({ file: join(folder.path, 'log.db'), clock })
    now += 20_000
    register('successor')
    await late.close()
    expect(await verdicts('successor')).toEqual([false, false])
    expect(await verdicts(late.owners.self)).toEqual([true, false])
  })

  test('a closed log leaves no row, and rows long expired are forgotten', async () => {
    register('ancient', { expires_at: now - 90_000_000 })
    const second = await openSqliteLog({ file: join(folder.path, 'log.db'), clock })
    const rows = () => log.tables.all<{ id: string }>('SELECT owner_id AS id FROM owners').map((row) => row.id)
    expect(rows().sort()).toEqual([log.owners.self, second.owners.self].sort())
    await second.close()
    expect(rows()).toEqual([log.owners.self])
    expect(await verdicts(second.owners.self)).toEqual([true, false])
  })
})

test('in memory there is one owner, and every other is proven dead', async () => {
  const log = await openMemoryLog()
  expect(await log.owners.isProvenDead(log.owners.self)).toBe(false)
  expect([await log.owners.isDead('other'), await log.owners.isProvenDead('other')]).toEqual([true, true])
  await log.close()
})
