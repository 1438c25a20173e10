import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { command } from '../../fuzz/kit/command.ts'
import { MARKER } from '../../fuzz/kit/marker.ts'
import { openShop, worker } from '../../fuzz/kit/shop.ts'
import { openLog } from '../../src/log/index.ts'
import { temporaryFolder } from '../log/support/sqlite-place.ts'

// What the fuzzers found on files and command lines: see docs/fuzzing.md.

let folder: ReturnType<typeof temporaryFolder>
let made = 0
beforeAll(() => {
  folder = temporaryFolder()
})
afterAll(() => folder.remove())

/** A log of a real run, changed past every check. */
async function changed(...statements: string[]): Promise<string> {
  const file = join(folder.path, `${made++}.db`)
  const { threads } = await openShop(`sqlite:${file}`)
  await threads.run(worker, { thread: 'thread_other', input: 'Nothing' })
  await threads.close()
  const database = new DatabaseSync(file)
  for (const sql of statements) database.exec(sql)
  database.close()
  return file
}

const verify = (file: string) => command(['verify', '--all', '--json', '--log', `sqlite:${file}`], 10_000)

describe('database', () => {
  // SQLite says what it would say of a typing error, and no caller could tell that the file was damaged.
  test.each([
    ['a table is gone', 'DROP TABLE events'],
    ['a column is gone', 'ALTER TABLE streams RENAME COLUMN key TO other'],
    [
      'a number no log writes',
      'UPDATE snapshots SET version = 9223372036854775807',
      'UPDATE events SET version = 9223372036854775807 WHERE id = 3',
    ],
  ])('%s: the log is damaged', async (_, ...statements) => {
    const ran = await verify(await changed(...statements))
    expect(ran.code).toBe(5)
    expect(JSON.parse(ran.err.trim().split('\n').at(-1) ?? '')).toMatchObject({ error: { code: 'log_damaged' } })
  })

  test('an append that meets a row that should not be there says that the log is damaged', async () => {
    const file = await changed(
      'DROP TABLE streams',
      'CREATE TABLE streams(id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE CHECK (id < 2))',
    )
    const { threads } = await openShop(`sqlite:${file}`).catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'log_damaged', disposition: 'fatal' })
      return { threads: undefined }
    })
    await threads?.close()
  })

  // The walk joins events with streams, the look-up of one thread uses the key's index: with a damaged page of streams the walk passed by
  // a thread in silence, and since its head was found, it was taken for one opened meanwhile.
  test('a thread that a walk does not come by is not passed over', async () => {
    const file = await changed()
    const database = new DatabaseSync(file)
    const { page } = database.prepare("SELECT rootpage AS page FROM sqlite_schema WHERE name = 'streams'").get() as {
      page: number
    }
    database.close()
    const bytes = readFileSync(file)
    // An empty leaf of a table; the index of its keys is as it was.
    bytes.set([0x0d, 0, 0, 0, 0, 0x10, 0, 0], (page - 1) * 4_096)
    writeFileSync(file, bytes)
    const ran = await verify(file)
    expect(ran.code).toBe(1)
    expect(JSON.parse(ran.out)).toMatchObject({ damaged: 2, threads: [{ code: 'missing' }, { code: 'missing' }] })
  })

  test('a folder or a device is no log, and trying again does not help', async () => {
    const place = join(folder.path, 'folder')
    mkdirSync(place)
    for (const path of [place, '/dev/null'])
      await expect(openLog(`sqlite:${path}`, { create: true })).rejects.toMatchObject({
        code: 'log_unavailable',
        disposition: 'reject',
      })
    await expect(openLog('sqlite:a\0b')).rejects.toMatchObject({ code: 'log_url_invalid' })
  })
})

describe('command line', () => {
  // Commander repeats arguments it did not expect: a message for the agent stood in the error, and in whatever log keeps errors.
  test.each([
    [['run', './x.ts', 'thread_1', MARKER, 'extra']],
    [['threads', `--input-json={"q":"${MARKER}"}`]],
    [['answer', 'w', '--result', `{"q":"${MARKER}"`]],
    [['approve', 'w', '--override-args', `["${MARKER}"]`, '--yes', '--digest', '0'.repeat(64)]],
  ])('what was to be said is not repeated: %j', async (args) => {
    for (const more of [[], ['-o', 'json']]) {
      const ran = await command([...args, ...more])
      expect(ran.code).toBe(2)
      expect(ran.err).not.toBe('')
      expect(ran.err + ran.out).not.toContain(MARKER)
    }
  })

  // AbortSignal.timeout takes more than 2^31 − 1 ms for one, and throws above 2^53 and for fractions: after the result was published.
  test.each(['30d', `${'9'.repeat(30)}d`])('a timeout of %s is not over at once', async (timeout) => {
    const file = await changed()
    const args = ['results', 'send', '--provider', 'payouts', '--external-id', 'x', '--result', '1', '--timeout', timeout]
    const ran = await command([...args, '--log', `sqlite:${file}`], 200)
    expect({ code: ran.code, err: ran.err }).toEqual({ code: 0, err: '' })
  })

  test('a fraction of a millisecond is a timeout', async () => {
    const file = await changed()
    const args = [
      'results',
      'send',
      '--provider',
      'payouts',
      '--external-id',
      'x',
      '--result',
      '1',
      '--timeout',
      '0.5ms',
      '--json',
    ]
    const ran = await command([...args, '--log', `sqlite:${file}`])
    expect(ran.code).toBe(3)
    expect(JSON.parse(ran.err)).toMatchObject({ error: { code: 'timeout' } })
  })

  test('a module that is none is refused without its text', async () => {
    const module = join(folder.path, 'broken.ts')
    writeFileSync(module, `throw new Error('${MARKER}')`)
    const ran = await command(['run', module, 'thread_1', 'x', '--log', `sqlite:${join(folder.path, 'new.db')}`])
    expect(ran.code).toBe(2)
  })
})
