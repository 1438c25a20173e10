import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type LogBackend, openMemoryLog, openSqliteLog, type Projector } from '../../../src/log/index.ts'
import { commitOn, grow, newStream } from '../../../src/testing/log-conformance/writing.ts'
import { temporaryFolder } from '../support/sqlite-place.ts'

/** Rows of reasons; throws at events whose reason is `throw`. */
const reasons = (version = 1, name = 'reasons'): Projector => ({
  name,
  version,
  schema: `CREATE TABLE ${name}(stream TEXT, version INTEGER, PRIMARY KEY(stream, version))`,
  drop: `DROP TABLE ${name}`,
  apply(tx, events) {
    for (const { stream, version: at, event } of events) {
      if (event?.type === 'thread.repaired/1' && event.data.reason === 'throw') throw new Error('cannot')
      tx.run(`INSERT INTO ${name} VALUES (?, ?)`, stream, at)
    }
  },
})

const count = (log: LogBackend, name = 'reasons') => log.tables.get<{ n: number }>(`SELECT count(*) AS n FROM ${name}`)?.n

describe('a projector that throws', () => {
  test('refuses the commit it threw at, and nothing else', async () => {
    const log = await openMemoryLog()
    await log.install([reasons()])
    const [a, b, c] = [newStream(), newStream(), newStream()]
    const bad = commitOn(b, undefined, 1, 'throw')
    const [first, second, third] = await Promise.allSettled([
      log.events.append(commitOn(a, undefined)),
      log.events.append(bad),
      log.events.append(commitOn(c, undefined)),
    ])
    expect(first).toMatchObject({ status: 'fulfilled', value: { accepted: true } })
    expect(second).toMatchObject({
      status: 'rejected',
      reason: {
        code: 'projector_failed',
        disposition: 'reject',
        details: { projector: 'reasons' },
        cause: { message: 'cannot' },
      },
    })
    expect(third).toMatchObject({ status: 'fulfilled', value: { accepted: true } })
    expect(await log.events.head(b)).toBeUndefined()
    expect(count(log)).toBe(2)
    await grow(log.events, b, 1)
    await log.close()
  })

  test('while it is installed on an old event refuses the installation, and the log goes on without it', async () => {
    const log = await openMemoryLog()
    const stream = newStream()
    await grow(log.events, stream, 1)
    await log.events.append(commitOn(stream, await log.events.head(stream), 1, 'throw'))
    const stalls: unknown[] = []
    const note = (stall: unknown) => void stalls.push(stall)
    subscribe('threadlog.projector-stalled', note)
    await expect(log.install([reasons(), reasons(1, 'others')])).rejects.toMatchObject({ code: 'projector_failed' })
    unsubscribe('threadlog.projector-stalled', note)
    expect(stalls).toMatchObject([
      { projector: 'reasons', offset: 1 },
      { projector: 'others', offset: 1 },
    ])
    await grow(log.events, stream, 1)
    expect(count(log)).toBe(0)
    const mended: Projector = {
      ...reasons(),
      apply(tx, events) {
        for (const { stream, version } of events) tx.run('INSERT INTO reasons VALUES (?, ?)', stream, version)
      },
    }
    await log.install([mended])
    expect(count(log)).toBe(3)
    await log.close()
  })
})

describe('projectors of several connections', () => {
  let folder: ReturnType<typeof temporaryFolder>
  beforeEach(() => void (folder = temporaryFolder()))
  afterEach(() => folder.remove())
  const open = (readOnly = false) => openSqliteLog({ file: join(folder.path, 'log.db'), readOnly })

  test('each notes what another has not seen, and it is caught up once', async () => {
    const [one, two, none] = [await open(), await open(), await open()]
    await one.install([reasons(1, 'left')])
    await two.install([reasons(1, 'right')])
    const streams = [newStream(), newStream(), newStream()]
    for (let i = 0; i < 4; i++) for (const [n, log] of [one, two, none].entries()) await grow(log.events, streams[n]!, 1)
    await one.events.barrier()
    await two.events.barrier()
    expect([count(one, 'left'), count(one, 'right')]).toEqual([12, 12])
    await Promise.all([one, two, none].map((log) => log.close()))
  })

  // What a transaction noted and then rolled back must be noted again by the next one.
  test('a rolled back append does not make the next one forget who has not seen it', async () => {
    const [one, none] = [await open(), await open()]
    await one.install([reasons()])
    const [a, b] = [newStream(), newStream()]
    const appending = none.events.append(commitOn(a, undefined))
    const failing = none.cache(() => {
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    await appending
    await grow(none.events, b, 1)
    await one.events.barrier()
    expect(count(one)).toBe(2)
    await Promise.all([one.close(), none.close()])
  })

  test('an older release does not write into rebuilt tables', async () => {
    const [old, young] = [await open(), await open()]
    const stream = newStream()
    await old.install([reasons(1)])
    await grow(old.events, stream, 1)
    await young.install([
      {
        ...reasons(2),
        schema: 'CREATE TABLE reasons(stream TEXT, version INTEGER, extra TEXT)',
        apply(tx, events) {
          for (const event of events) tx.run('INSERT INTO reasons VALUES (?, ?, ?)', event.stream, event.version, 'x')
        },
      },
    ])
    await grow(old.events, stream, 2)
    await young.events.barrier()
    expect(young.tables.all('SELECT version, extra FROM reasons')).toEqual([1, 2, 3].map((version) => ({ version, extra: 'x' })))
    await Promise.all([old.close(), young.close()])
  })

  test('installing again while events arrive misses none', async () => {
    const [one, two] = [await open(), await open()]
    const streams = [newStream(), newStream()]
    await grow(one.events, streams[0]!, 3, 400)
    const growing = grow(two.events, streams[1]!, 30)
    await Promise.all([one.install([reasons()]), two.install([reasons()])])
    await growing
    await one.events.barrier()
    expect(count(one)).toBe(1_230)
    await Promise.all([one.close(), two.close()])
  })

  test('read-only, complete tables are accepted and others are not', async () => {
    const writer = await open()
    await writer.install([reasons()])
    const reader = await open(true)
    await reader.install([reasons()])
    await expect(reader.install([reasons(1, 'more')])).rejects.toMatchObject({ code: 'log_read_only' })
    await expect(reader.install([reasons(2)])).rejects.toMatchObject({ code: 'log_read_only' })
    await Promise.all([reader.close(), writer.close()])
  })
})
