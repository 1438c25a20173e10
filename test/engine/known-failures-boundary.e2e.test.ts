import { expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { type LogBackend, openMemoryLog, type RecordedEvent, type TopicName } from '../../src/log/index.ts'
import type { Side } from '../support/chaos/boundary.ts'
import { live, THREAD } from '../support/chaos/life.ts'
import { checkStream, dispatchedCalls } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { effects } from '../support/processes/ledger.ts'
import { type Place, places } from '../support/processes/place.ts'
import { eventsOf, recordsOf } from '../support/processes/streams.ts'
import { workerAgent } from '../support/processes/worker.ts'
import { commitsOf } from '../support/recorded/recorded-log.ts'

// As known-failures.e2e.test.ts: a process that dies at every place where one can.

const place = places()
const SIDES: readonly Side[] = ['before', 'within', 'after']
/** Deaths at a time. */
const LANES = 6

type Records = readonly RecordedEvent[]

const open = (files: Place) => openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })

async function published(backend: LogBackend): Promise<unknown[]> {
  const records: unknown[] = []
  for (const topic of ['requests', 'checkpoints'] satisfies TopicName[])
    for await (const batch of backend.topics.scan(topic))
      records.push(...batch.map(({ key, value, headers }) => [topic, key, Buffer.from(value).toString(), headers]))
  return records
}

/** What the topics hold of a log that has never seen a crash. */
async function publishedFrom(records: Records): Promise<unknown[]> {
  await using backend = await openMemoryLog()
  await using _ = await openThreadlog({ log: backend, application: 'shop' })
  for (const commit of commitsOf(records)) expect((await backend.events.append(commit)).accepted).toBe(true)
  return published(backend)
}

/** Number of events if the last commit is there as a whole. */
const endOf = (records: Records): number => {
  const commit = records.at(-1)?.event?.commit
  return commit ? commit.base + commit.size : 0
}

/** Lives in a process that dies at its n-th commit; answers how that ended. */
async function lived(files: Place, side: Side, commit: number): Promise<unknown> {
  await using child = await Child.start('../chaos/boundary.ts', { ...files, side, commit })
  const answer = await child.ask('live')
  return 'value' in answer ? answer.value : answer.code
}

/** Lives, dies at the commit, is found as it must be, and lives to the end; answers how its effect was settled. */
async function diesAndGoesOn(files: Place, side: Side, commit: number): Promise<unknown> {
  expect(await lived(files, side, commit)).toBe('exited')
  await using threads = await open(files)
  const { stream } = threads.thread(THREAD)
  const before = await recordsOf(threads.backend, stream)
  expect(commitsOf(before)).toHaveLength(side === 'after' ? commit : commit - 1)
  expect(before).toHaveLength(endOf(before))
  if (before.length > 0) await checkStream(threads.store, stream)
  expect(await published(threads.backend)).toEqual(await publishedFrom(before))

  expect(await live(threads)).toMatchObject({ status: 'completed', output: 'done' })
  const after = await recordsOf(threads.backend, stream)
  expect(after.slice(0, before.length).map(({ hash }) => hash)).toEqual(before.map(({ hash }) => hash))
  await checkStream(threads.store, stream)
  expect(await published(threads.backend)).toEqual(await publishedFrom(after))

  const [note, ...more] = dispatchedCalls(await eventsOf(threads.backend, stream))
  expect(more).toEqual([])
  const done = effects(files.ledger)
  if (note?.settlement === 'returned') expect(done).toMatchObject([{ tool: 'note', key: note.key }])
  else {
    expect(note).toMatchObject({ settlement: 'unknown', reason: 'interrupted', dispatches: 1 })
    expect(done.length).toBeLessThanOrEqual(1)
  }
  return note?.settlement
}

// A crash between the writes of a step and its checkpoint left one without the other, and which one decided whether work was done again.
// Here a step is one commit, tables and topics included: what is found after any death is a fold of whole commits, and nothing beside it.
test('row 7: killed at every append boundary, a thread is what its committed prefix folds to, and goes on from there', async () => {
  const unharmed = place()
  expect(await lived(unharmed, 'before', 0)).toBe('completed')
  const whole = await open(unharmed)
  const commits = commitsOf(await recordsOf(whole.backend, whole.thread(THREAD).stream)).length
  await whole.close()
  expect(commits).toBeGreaterThanOrEqual(5)

  const deaths = Array.from({ length: commits }, (_, i) => SIDES.map((side) => ({ side, commit: i + 1 }))).flat()
  const settlements = new Set<unknown>()
  const lane = async () => {
    for (let death = deaths.shift(); death; death = deaths.shift())
      settlements.add(await diesAndGoesOn(place(), death.side, death.commit))
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  // Between dispatch and return nobody knows whether the effect was done; behind the return it is never done again.
  expect(settlements).toEqual(new Set(['returned', 'unknown']))
}, 60_000)
