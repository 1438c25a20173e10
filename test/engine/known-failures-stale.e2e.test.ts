import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/index.ts'
import { defineAgent, openThreadlog, type Wait } from '../../src/index.ts'
import { openSqliteLog } from '../../src/log/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { threadStatus } from '../../src/projections/index.ts'
import type { Moment } from '../support/chaos/dying.ts'
import { checkStream, codeOf, dispatchedCalls } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { effect, effects } from '../support/processes/ledger.ts'
import { outsider, type Place, places } from '../support/processes/place.ts'
import { turnOf } from '../support/processes/prompt.ts'
import { eventsOf } from '../support/processes/streams.ts'
import { script, workerAgent } from '../support/processes/worker.ts'

// As known-failures.e2e.test.ts: who is behind, and who died in between.

const place = places()

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(5)
}

const requestsOf = ({ file }: Place): { continuation_id: string }[] => {
  const database = outsider(file)
  const rows = database.prepare('SELECT continuation_id FROM threadlog_requests').all() as { continuation_id: string }[]
  database.close()
  return rows
}

// A run was suspended, its process died before the id of the wait had gone out, and nobody could ever answer it.
// Here suspension, waits and requests are one commit, so recovery finds either all of it or none, and sends what is missing once.
test.each<[Moment, number]>([
  ['id-made', 0],
  ['in-commit', 0],
  ['committed', 2],
])('row 23: killed at the moment "%s", the request goes out exactly once', async (moment, sent) => {
  const files = place()
  await using threads = await openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })
  const calls = [
    { id: 'c1', name: 'ask' },
    { id: 'c2', name: 'confirm' },
  ]
  const dying = await Child.start('../chaos/dying.ts', { ...files, moment })
  const run = await threads.start({ agent: 'worker', thread: 'sent_1', input: script(calls, 'done') })
  await dying.end()
  expect(requestsOf(files)).toHaveLength(sent)
  const { stream } = threads.thread('sent_1')
  expect(threadStatus(await threads.store.load(stream))).toBe(sent === 0 ? 'running' : 'waiting')

  await threads.serve({ sweepMs: 20 })
  await until(async () => threadStatus(await threads.store.load(stream)) === 'waiting')
  const waits: Wait[] = []
  for await (const wait of threads.waits({ thread: 'sent_1' })) waits.push(wait)
  expect(
    requestsOf(files)
      .map((request) => request.continuation_id)
      .sort(),
  ).toEqual(waits.map(({ id }) => id).sort())
  for (const wait of waits) {
    const { verdict } =
      wait.kind === 'approval'
        ? await threads.approve(wait.id, { digest: wait.digest })
        : await threads.submit({ provider: 'desk', continuation_id: wait.id, result: { said: 'yes' } })
    expect(verdict).toBe('accepted')
  }
  expect(await run.result()).toMatchObject({ status: 'completed', output: 'done' })
  await checkStream(threads.store, stream)
})

/** A worker that hears nothing of others, whose model and tool go on when they are told to. */
async function behind(files: Place) {
  const log = await openSqliteLog({ file: files.file, wakeups: { watch: false, pollMs: 3_600_000 } })
  const model = Promise.withResolvers<void>()
  const tool = Promise.withResolvers<void>()
  const { tools } = workerAgent(files)
  const note = {
    ...tools.get('note')!,
    execute: async () => {
      effect(files.ledger, { tool: 'note', call: 'c1', key: 'stale' })
      await tool.promise
      return 'noted'
    },
  }
  const stale = defineAgent({
    name: 'worker',
    revision: '1',
    tools: [note],
    model: scriptedModel(async (prompt) => {
      const { text, step } = turnOf(prompt)
      if (step === 0 && text.includes('note')) return { parts: [{ tool_call: { id: 'c1', name: 'note' } }] }
      await model.promise
      return { parts: [{ text: 'said by the stale worker' }] }
    }),
  })
  const threads = await openThreadlog({ log, application: 'shop', agents: [stale] })
  const close = async () => {
    await threads.close()
    await log.close()
  }
  return { threads, model, tool, owner: log.owners.self, close }
}

/** As if the owner had not renewed for ten seconds. */
function expire({ file }: Place, owner: string): void {
  const database = outsider(file)
  database.prepare('UPDATE owners SET expires_at = 0 WHERE owner_id = ?').run(owner)
  database.close()
}

// A worker that had been replaced sent its command with the old epoch and was told that it held, though nothing was done.
// Here the commits of a run carry its attempt and are decided on the state the log has: one of an attempt that is over is not made, and its caller is told.
test.each([
  ['response', 'say'],
  ['tool result', 'note'],
] as const)(
  'row 42: a replaced worker that comes with its %s writes nothing and is not told that it did',
  async (_name, what) => {
    const files = place()
    const worker = await behind(files)
    const running = codeOf(() =>
      worker.threads.run('worker', { thread: 'stale_1', input: script([{ id: 'c1', name: what }], 'done') }),
    )
    // A minute later, so that no effect of the replaced worker may still start. Its own model takes until the other one has come.
    const clock = { ...systemClock, now: () => Date.now() + 60_000 }
    const gate = Promise.withResolvers<void>()
    using _ = { [Symbol.dispose]: gate.resolve }
    const model = scriptedModel(async () => gate.promise.then(() => ({ parts: [{ text: 'done' }] })))
    const agents = [{ ...workerAgent(files), model }]
    await using threads = await openThreadlog({ log: files.log, application: 'shop', agents, clock })
    const { stream } = threads.thread('stale_1')
    await until(async () => {
      if (what === 'note') return effects(files.ledger).length === 1
      return (await worker.threads.store.fold(stream)).head.version >= 4
    })
    expire(files, worker.owner)
    const recovering = threads.thread('stale_1').recover()
    await until(() => model.requests.length === 1)
    const before = await eventsOf(threads.backend, stream)
    expect((await threads.store.load(stream)).run).toMatchObject({ status: 'running', attempt: 2 })

    worker.model.resolve()
    worker.tool.resolve()
    expect(await running).toBe('run_active')
    expect(await eventsOf(threads.backend, stream)).toEqual(before)
    gate.resolve()
    expect(await recovering).toMatchObject({ status: 'completed', output: 'done' })
    const events = await eventsOf(threads.backend, stream)
    const attempts = events.flatMap(({ attempt }) => attempt ?? [])
    expect(attempts).toEqual([...attempts].sort())
    if (what === 'note')
      expect(dispatchedCalls(events)).toMatchObject([{ settlement: 'unknown', reason: 'interrupted', dispatches: 1 }])
    await checkStream(threads.store, stream)
    await worker.close()
  },
)

// A replica that had not seen a wait yet answered "not found", and the result was thrown away.
// Here whoever finds no wait reads to the end of the log first, and on one file the index is written by the very commit that arms the wait.
test('row 86: a process held behind never answers a fresh wait with `unknown`', async () => {
  const files = place()
  await using threads = await openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })
  await using reader = await Child.start('client.ts', files)
  const loop = Array.from({ length: 12 }, () => [{ id: 'c1', name: 'ask' }])
  const input = script(...loop, 'done')
  let result = await threads.run('worker', { thread: 'fresh_1', input })
  for (let round = 0; result.status === 'suspended'; round++) {
    const id = result.waits[0]?.id ?? ''
    // It has the thread as it was a turn ago, and answers before it has heard of anything since.
    expect(await reader.must('submit', JSON.stringify({ provider: 'desk', continuation_id: id, result: { said: 'yes' } }))).toBe(
      'accepted',
    )
    const held = round === 3
    if (held) process.kill(reader.pid, 'SIGSTOP')
    result = await threads.run('worker', { thread: 'fresh_1' })
    if (held) {
      await delay(1_000)
      process.kill(reader.pid, 'SIGCONT')
    }
  }
  expect(result.status).toBe('completed')
  expect(await reader.must('submit', JSON.stringify({ provider: 'desk', continuation_id: 'nowhere', result: {} }))).toBe(
    'unknown',
  )
})

// As before, through the topic: producers read the request in one process, and the engine that judges has to know the wait.
test('row 86: a result sent as soon as its request can be read is never `unknown`', async () => {
  const files = place()
  await using threads = await openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })
  await using engine = await Child.start('client.ts', files)
  await engine.must('serve')
  const database = outsider(files.file)
  const runs = Array.from({ length: 8 }, (_, i) => ({ thread: `fresh_${i}`, input: script(...LOOP, 'done') }))
  const handles = await Promise.all(runs.map((run) => threads.start({ agent: 'worker', ...run })))
  const open = database.prepare('SELECT offset, continuation_id AS id FROM threadlog_requests WHERE offset > ? ORDER BY offset')
  const answer = database.prepare('INSERT INTO threadlog_results(value) VALUES (?)')
  for (let [seen, left] = [0, runs.length * LOOP.length]; left > 0; await delay(1))
    for (const { offset, id } of open.all(seen) as { offset: number; id: string }[]) {
      answer.run(JSON.stringify({ provider: 'desk', continuation_id: id, result: { said: 'yes' } }))
      seen = offset
      left--
    }
  for (const handle of handles) expect((await handle.result()).status).toBe('completed')
  const verdicts = database.prepare('SELECT verdict, count(*) AS n FROM threadlog_receipts GROUP BY verdict').all()
  expect(verdicts).toEqual([{ verdict: 'accepted', n: runs.length * LOOP.length }])
  database.close()
})

const LOOP = Array.from({ length: 4 }, () => [{ id: 'c1', name: 'ask' }])

// The log was locked when a tool had done its work; the attempt ended, and the next one had to call the outcome unknown.
// Here an engine waits until the log takes what it knows.
test('an engine whose log is locked while a tool works records what the tool did', async () => {
  const files = place()
  const log = await openSqliteLog({ file: files.file, busyTimeoutMs: 50 })
  const database = outsider(files.file)
  const worker = workerAgent(files)
  const note = {
    ...worker.tools.get('note')!,
    execute: () => {
      database.exec('BEGIN IMMEDIATE')
      return 'noted'
    },
  }
  const agent = { ...worker, tools: new Map(worker.tools).set('note', note) }
  await using threads = await openThreadlog({ log, application: 'shop', agents: [agent] })
  const told = Promise.withResolvers<string>()
  await threads.serve({ sweepMs: 20, onProblem: ({ where, code }) => where.startsWith('thread') && told.resolve(code) })
  const run = await threads.start({ agent: 'worker', thread: 'busy_1', input: script([{ id: 'c1', name: 'note' }], 'done') })
  expect(await told.promise).toBe('log_busy')
  database.exec('ROLLBACK')
  database.close()
  expect(await run.result()).toMatchObject({ status: 'completed', output: 'done' })
  const events = await eventsOf(log, threads.thread('busy_1').stream)
  expect(dispatchedCalls(events)).toMatchObject([{ settlement: 'returned', dispatches: 1 }])
  expect(events.filter(({ type }) => type === 'run.recovered/1')).toEqual([])
  await threads.close()
  await log.close()
})
