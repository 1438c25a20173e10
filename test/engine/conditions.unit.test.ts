import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { openSqliteLog } from '../../src/log/index.ts'
import { agentOf, calls, eventsOf, says, toolbox } from '../support/agents.ts'

// Conditions of the file, seen by somebody who runs agents (design §10): refused with a code, nothing half written, life goes on.

const place = mkdtempSync(join(tmpdir(), 'threadlog-conditions-'))
afterAll(() => rmSync(place, { recursive: true, force: true }))
let count = 0
const newFile = () => join(place, `${++count}.db`)

/** Answers by the conversation, so that a repeated request gets the same. */
const talks = () => agentOf(() => says('done'), [])

test('a database locked by somebody else is waited for; the engine goes on when it is free', async () => {
  const file = newFile()
  await using threads = await openThreadlog({ log: `sqlite:${file}`, agents: [talks()] })
  const problems: string[] = []
  await threads.serve({ onProblem: ({ code }) => problems.push(code) })
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  const starting = threads.start({ agent: 'agent', thread: 'thread_a', input: 'go' })
  await new Promise((resolve) => setTimeout(resolve, 300))
  other.exec('ROLLBACK')
  other.close()
  expect((await (await starting).result()).status).toBe('completed')
  expect(problems).toEqual([])
})

test('a database that stays locked is refused with log_busy, and nothing was written', async () => {
  const file = newFile()
  await using backend = await openSqliteLog({ file, busyTimeoutMs: 50 })
  await using threads = await openThreadlog({ log: backend })
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  const refused = threads.run(talks(), { thread: 'thread_a', input: 'go' })
  await expect(refused).rejects.toMatchObject({ code: 'log_busy', disposition: 'retry' })
  other.exec('ROLLBACK')
  other.close()
  expect(await eventsOf(threads, 'thread_a')).toEqual([])
  expect((await threads.run(talks(), { thread: 'thread_a', input: 'go' })).status).toBe('completed')
})

test('a full disk refuses the run with log_full; what was acknowledged stays, and an engine finishes it once there is room', async () => {
  const file = newFile()
  const { tools } = toolbox()
  const agent = agentOf(
    (prompt: readonly { role: string }[]) =>
      prompt.some((m) => m.role === 'tool') ? says('done') : calls(['c1', 'safe', { n: 1 }]),
    [tools.safe],
  )
  let version = 0
  {
    await using backend = await openSqliteLog({ file, maxBytes: 400_000 })
    await using threads = await openThreadlog({ log: backend, agents: [agent] })
    let failure: unknown
    for (let i = 0; failure === undefined; i++)
      await threads.start({ agent: 'agent', thread: `thread_${i}`, input: 'x'.repeat(20_000) }).then(
        () => version++,
        (error: unknown) => (failure = error),
      )
    expect(failure).toMatchObject({ code: 'log_full', disposition: 'retry' })
    expect(await eventsOf(threads, `thread_${version}`)).toEqual([])
  }
  await using threads = await openThreadlog({ log: `sqlite:${file}`, agents: [agent] })
  await threads.serve()
  for (let i = 0; i < version; i++) {
    const state = async () => (await threads.store.load(threads.thread(`thread_${i}`).stream)).invocations.size
    while ((await state()) === 0) await new Promise((resolve) => setTimeout(resolve, 10))
  }
  expect(version).toBeGreaterThan(0)
})

test('a file that may not be written can be read, and refuses a run with log_read_only', async () => {
  const file = newFile()
  {
    await using threads = await openThreadlog({ log: `sqlite:${file}` })
    await threads.run(talks(), { thread: 'thread_a', input: 'go' })
  }
  chmodSync(file, 0o444)
  await using backend = await openSqliteLog({ file, readOnly: true })
  await using threads = await openThreadlog({ log: backend })
  expect((await threads.thread('thread_a').state()).messageHistory).toHaveLength(2)
  await expect(threads.run(talks(), { thread: 'thread_b', input: 'go' })).rejects.toMatchObject({ code: 'log_read_only' })
})

test('a log of a newer format is not opened', async () => {
  const file = newFile()
  await (await openThreadlog({ log: `sqlite:${file}` })).close()
  const db = new DatabaseSync(file)
  db.exec('PRAGMA user_version = 99')
  db.close()
  await expect(openThreadlog({ log: `sqlite:${file}` })).rejects.toMatchObject({ code: 'log_format_newer', disposition: 'fatal' })
})

test.each([
  ['of a newer version', "CAST(x'00000003e7' || substr(value, 6) AS BLOB)"],
  ['that is text', "'not an event'"],
])('an event %s stops its thread only', async (_, value) => {
  const file = newFile()
  await using threads = await openThreadlog({ log: `sqlite:${file}`, agents: [talks()] })
  await threads.run(talks(), { thread: 'thread_a', input: 'go' })
  const db = new DatabaseSync(file)
  db.exec(`INSERT INTO events(stream, version, value) SELECT stream, 7, ${value} FROM events WHERE version = 6`)
  db.close()
  await expect(threads.run(talks(), { thread: 'thread_a', input: 'more' })).rejects.toMatchObject({ code: 'thread_quarantined' })
  expect((await threads.run(talks(), { thread: 'thread_b', input: 'go' })).status).toBe('completed')
})
