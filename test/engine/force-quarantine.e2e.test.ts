import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { stateHash } from '../../src/projections/index.ts'
import { writeRow } from '../log/support/sqlite-place.ts'
import { checkReceipts, checkStream, codeOf } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { effects } from '../support/processes/ledger.ts'
import { outsider, places } from '../support/processes/place.ts'
import { script, workerAgent } from '../support/processes/worker.ts'

const place = places()
const OPERATOR = { kind: 'operator', id: 'on-call', source: 'test' }

test('a record nobody can read stops its thread only; results for it are told so, and a repair revives it', async () => {
  const files = place()
  await using threads = await openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })
  await using engine = await Child.start('client.ts', files)
  await engine.must('serve')
  const input = script([{ id: 'c1', name: 'ask' }], [{ id: 'c2', name: 'note' }], 'done')
  const runs = await Promise.all(['ill_1', 'well_1', 'well_2'].map((thread) => threads.start({ agent: 'worker', thread, input })))
  const waits = new Map<string, string>()
  for await (const wait of threads.waits({ follow: true })) if (waits.set(wait.thread.thread, wait.id).size === runs.length) break

  const { stream } = threads.thread('ill_1')
  const healthy = await threads.store.load(stream)
  const bad = healthy.version + 1
  writeRow(files.file, stream, bad, Buffer.from('no record of any kind'))
  const database = outsider(files.file)
  const submit = (thread: string) =>
    database
      .prepare('INSERT INTO threadlog_results(value) VALUES (?)')
      .run(JSON.stringify({ provider: 'desk', continuation_id: waits.get(thread), result: { said: 'yes' } }))
  for (const thread of waits.keys()) submit(thread)
  for (const run of runs.slice(1)) expect((await run.result()).status).toBe('completed')
  const left = () =>
    threads.backend.tables.get<{ n: number }>('SELECT max(offset) + 1 - (SELECT next FROM progress) AS n FROM results')?.n
  while (left() !== 0) await delay(10)
  const receipts = () =>
    threads.backend.tables.all<{ verdict: string }>(
      'SELECT verdict FROM threadlog_receipts WHERE continuation_id = ? ORDER BY offset',
      waits.get('ill_1') ?? '',
    )
  expect(receipts()).toEqual([{ verdict: 'quarantined' }])
  expect(
    await threads.submit({ provider: 'desk', continuation_id: waits.get('ill_1') ?? '', result: { said: 'yes' } }),
  ).toMatchObject({ verdict: 'quarantined' })
  for (const refused of [
    () => threads.thread('ill_1').state(),
    () => threads.run('worker', { thread: 'ill_1' }),
    () => threads.start({ agent: 'worker', thread: 'ill_1' }),
  ])
    expect(await codeOf(refused)).toBe('thread_quarantined')
  expect(await codeOf(() => threads.store.repair(stream, bad + 1, 'no such record', OPERATOR))).toBe('not_quarantined')

  await threads.store.repair(stream, bad, 'written by hand', OPERATOR)
  expect((await threads.store.load(stream)).waits.get(waits.get('ill_1') ?? '')).toEqual(
    healthy.waits.get(waits.get('ill_1') ?? ''),
  )
  submit('ill_1')
  expect(await runs[0]?.result()).toMatchObject({ status: 'completed', output: 'done' })
  expect(receipts().map(({ verdict }) => verdict)).toEqual(['quarantined', 'quarantined', 'accepted'])
  database.close()
  for (const run of runs) await checkStream(threads.store, threads.thread(run.thread).stream)
  checkReceipts(threads.backend)
  expect(effects(files.ledger)).toHaveLength(3)
  // A process that has never seen the thread folds it to the same state.
  await using fresh = await openThreadlog({ log: files.log, application: 'shop' })
  expect(stateHash(await fresh.store.load(stream))).toBe(stateHash(await threads.store.load(stream)))
}, 60_000)
