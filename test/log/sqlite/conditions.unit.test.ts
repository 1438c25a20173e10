import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type EventLog, openSqliteLog } from '../../../src/log/index.ts'
import { after, assertUnbroken, commitOn, grow, newStream, readStream } from '../../../src/testing/log-conformance/writing.ts'
import { temporaryFolder } from '../support/sqlite-place.ts'

let folder: ReturnType<typeof temporaryFolder>
let file: string
beforeEach(() => {
  folder = temporaryFolder()
  file = join(folder.path, 'log.db')
})
afterEach(() => folder.remove())

/** Appends commits of 40 kB until one is refused; the error. */
async function fill(events: EventLog, stream: string): Promise<unknown> {
  for (;;) {
    const commit = commitOn(stream, await events.head(stream), 1, 'x'.repeat(40_000))
    try {
      await events.append(commit)
    } catch (error) {
      return error
    }
  }
}

describe('a locked file', () => {
  test('is waited for without blocking the event loop', async () => {
    const log = await openSqliteLog({ file })
    const lock = new DatabaseSync(file)
    lock.exec('BEGIN IMMEDIATE')
    const stream = newStream()
    let turns = 0
    const turning = setInterval(() => turns++, 1)
    const appending = grow(log.events, stream, 1)
    // A loop that is blocked does not get there.
    while (turns < 20) await new Promise((resolve) => setTimeout(resolve, 1))
    lock.exec('COMMIT')
    lock.close()
    await appending
    clearInterval(turning)
    await log.close()
  })

  test('for too long is busy, and later appends work', async () => {
    const log = await openSqliteLog({ file, busyTimeoutMs: 60 })
    const lock = new DatabaseSync(file)
    lock.exec('BEGIN IMMEDIATE')
    const stream = newStream()
    const commit = commitOn(stream, undefined)
    await expect(log.events.append(commit)).rejects.toMatchObject({ code: 'log_busy', disposition: 'retry' })
    expect(await log.events.head(stream)).toBeUndefined()
    lock.exec('COMMIT')
    lock.close()
    expect((await log.events.append(commit)).accepted).toBe(true)
    await log.close()
  })

  test('at opening is waited for too', async () => {
    const lock = new DatabaseSync(file)
    lock.exec('CREATE TABLE other(x); BEGIN EXCLUSIVE')
    await expect(openSqliteLog({ file, busyTimeoutMs: 30 })).rejects.toMatchObject({ code: 'log_busy' })
    const opening = openSqliteLog({ file })
    lock.exec('DROP TABLE other; COMMIT')
    lock.close()
    await (await opening).close()
  })
})

describe('a full log', () => {
  test('refuses the commit and keeps everything before it; with room it goes on', async () => {
    const log = await openSqliteLog({ file, maxBytes: 600_000 })
    const stream = newStream()
    expect(await fill(log.events, stream)).toMatchObject({ code: 'log_full', disposition: 'retry' })
    const kept = await readStream(log.events, stream)
    assertUnbroken(kept)
    expect((await log.events.head(stream))?.version).toBe(kept.length)
    const both = [newStream(), newStream()].map((other) => log.events.append(commitOn(other, undefined, 1, 'x'.repeat(60_000))))
    for (const outcome of await Promise.allSettled(both))
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'log_full' } })
    await log.close()
    const larger = await openSqliteLog({ file, maxBytes: 5_000_000 })
    await grow(larger.events, stream, 2)
    assertUnbroken(await readStream(larger.events, stream))
    await larger.close()
  })

  // Needs the right to mount a file system; everywhere else the page limit above stands for it.
  test.skipIf(process.geteuid?.() !== 0 || !mountable())(
    'on a full disk behaves the same and recovers in place (needs the right to mount)',
    async () => {
      const disk = join(folder.path, 'disk')
      mkdirSync(disk)
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk])
      try {
        const ballast = join(disk, 'ballast')
        const log = await openSqliteLog({ file: join(disk, 'log.db') })
        const stream = newStream()
        const first = await grow(log.events, stream, 1)
        writeFileSync(ballast, Buffer.alloc(2_500_000))
        expect(await fill(log.events, stream)).toMatchObject({ code: 'log_full', disposition: 'retry' })
        const kept = await readStream(log.events, stream)
        assertUnbroken(kept)
        expect(kept[0]?.hash).toBe(first.hash)
        rmSync(ballast)
        await grow(log.events, stream, 1)
        expect((await readStream(log.events, stream)).length).toBe(kept.length + 1)
        await log.close()
      } finally {
        execFileSync('umount', [disk])
      }
    },
  )
})

function mountable(): boolean {
  const probe = temporaryFolder()
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', probe.path], { stdio: 'ignore' })
    execFileSync('umount', [probe.path])
    return true
  } catch {
    return false
  } finally {
    probe.remove()
  }
}

describe('a file that is no longer at its path', () => {
  // SQLite would go on writing into the deleted file and acknowledge what nobody can find again.
  test.each([
    ['deleted', () => rmSync(file)],
    ['replaced by a copy', replaceByCopy],
  ])('%s stops every append', async (_, move) => {
    const log = await openSqliteLog({ file })
    const stream = newStream()
    await grow(log.events, stream, 1)
    move()
    const append = () =>
      grow(log.events, newStream(), 1).then(
        () => 'accepted',
        (error) => error.code,
      )
    await expect.poll(append, { timeout: 3_000, interval: 100 }).toBe('log_moved')
    expect((await readStream(log.events, stream)).length).toBe(1)
    await log.close()
  })
})

function replaceByCopy(): void {
  copyFileSync(file, `${file}.copy`)
  renameSync(`${file}.copy`, file)
}

describe('group commit', () => {
  test('what is sent in one turn is one transaction', async () => {
    const log = await openSqliteLog({ file })
    const other = new DatabaseSync(file)
    const version = () => (other.prepare('PRAGMA data_version').get() as { data_version: number }).data_version
    const streams = Array.from({ length: 50 }, newStream)
    const begin = version()
    const appends = streams.map((stream) => log.events.append(commitOn(stream, undefined)))
    const seen = new Set<number>()
    await Promise.all(appends.map((append) => append.then(() => seen.add(version()))))
    expect(seen.size).toBe(1)
    expect(seen.has(begin)).toBe(false)
    other.close()
    await log.close()
  })

  test('a change that fails is refused alone, and what was sent with it is decided', async () => {
    const log = await openSqliteLog({ file })
    const stream = newStream()
    const first = commitOn(stream, undefined)
    const outcomes = await Promise.allSettled([
      log.events.append(first),
      log.cache(() => {
        throw new Error('one')
      }),
      log.events.append(commitOn(stream, after(first))),
      log.cache(() => {
        throw new Error('two')
      }),
      log.events.append(commitOn(stream, undefined)),
    ])
    expect(
      outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.message : (outcome.value?.accepted ?? null))),
    ).toEqual([true, 'one', true, 'two', false])
    assertUnbroken(await readStream(log.events, stream))
    await log.close()
  })
})
