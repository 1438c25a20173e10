import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { EventDraft } from '../../src/events/index.ts'
import type { RecordedEvent } from '../../src/log/index.ts'
import {
  evolve,
  type Folded,
  foldStream,
  initial,
  stateHash,
  type ThreadState,
  threadStatus,
} from '../../src/projections/index.ts'
import {
  encodeAt,
  encodeThread,
  type LegalThread,
  legalThreads,
  recordsOf,
  threadOf,
  unreadable,
} from '../support/legal-threads.ts'
import { ProjectorTables } from '../support/projector-tables.ts'

interface Damaged {
  readonly thread: LegalThread
  readonly records: readonly RecordedEvent[]
  /** Version of the event that cannot be read. */
  readonly version: number
}

const damaged = fc.tuple(legalThreads({ maxCommits: 25 }), fc.nat()).map(([thread, at]): Damaged => {
  const records = recordsOf(encodeThread(thread))
  const victim = at % records.length
  return { thread, version: victim + 1, records: records.map((record, i) => (i === victim ? unreadable(record) : record)) }
})

const next = (records: readonly RecordedEvent[], ...drafts: EventDraft[]): RecordedEvent[] => {
  const head = records[records.length - 1]!
  return recordsOf([encodeAt(head.stream, head, { drafts, time: 1_795_000_000_000, runId: null, attempt: null })])
}
const repairOf = (records: readonly RecordedEvent[], version: number) =>
  next(records, { type: 'thread.repaired/1', data: { version, reason: 'unreadable' } })

/** The fold with one event left out, as evolve sees it; undefined when a later event does not follow then. */
function without(records: readonly RecordedEvent[], version: number): ThreadState | undefined {
  let state = initial
  try {
    for (const record of records)
      state = record.version === version ? { ...state, version, hash: record.hash } : evolve(state, record.event!)
    return state
  } catch {
    return undefined
  }
}

describe('a thread with an event nobody can read', () => {
  it('stands still there, goes on being counted, and a repair folds it without the event', () => {
    fc.assert(
      fc.property(damaged, ({ records, version }) => {
        const stopped = foldStream(records)
        expect(stopped.quarantine).toMatchObject({ version, code: 'event_undecodable' })
        expect(stopped.state.version).toBe(version - 1)
        expect(stopped.head).toEqual({ version: records.length, hash: records.at(-1)!.hash })
        const all = [...records, ...repairOf(records, version)]
        const expected = without(all, version)
        const repaired = foldStream(all)
        if (expected) expect([repaired.quarantine, stateHash(repaired.state)]).toEqual([undefined, stateHash(expected)])
        else expect(repaired.quarantine!.version).toBeGreaterThan(version)
      }),
    )
  })

  it('is marked in the index, alone, and told again as a whole by its repair', async () => {
    await fc.assert(
      fc.asyncProperty(damaged, fc.nat(), async ({ thread, records, version }, cut) => {
        await using tables = await ProjectorTables.open()
        const bystander = threadOf(
          [
            [0, 0],
            [3, 0],
            [5, 0],
          ],
          'other_1',
        )
        const others = recordsOf(encodeThread(bystander))
        const at = cut % records.length
        await tables.apply([...records.slice(0, at), ...others])
        await tables.apply(records.slice(at))
        expect(tables.thread(thread.stream)).toMatchObject({
          status: 'quarantined',
          quarantined_at: version,
          version: records.length,
        })
        expect(tables.thread(bystander.stream)).toMatchObject({
          status: bystander.commits.at(-1)!.expect.status,
          quarantined_at: null,
        })
        agree(tables, thread, foldStream(records))
        const repair = repairOf(records, version)
        await tables.apply(repair)
        agree(tables, thread, foldStream([...records, ...repair]))
      }),
      { numRuns: 60 },
    )
  })

  it('publishes nothing meanwhile, and what was missed with the repair', async () => {
    await fc.assert(
      fc.asyncProperty(damaged, async ({ thread, records, version }) => {
        await using tables = await ProjectorTables.open()
        await tables.apply(records.slice(0, version))
        const before = tables.published.length
        await tables.apply(records.slice(version))
        expect(tables.published.length).toBe(before)
        const repair = repairOf(records, version)
        await tables.apply(repair)
        const { state } = foldStream([...records, ...repair])
        const asked = tables.topic('requests').filter((record) => record['cancelled'] === undefined)
        const known = state.identity ? [...state.closedWaits].map(([id]) => id).concat([...state.waits.keys()]) : []
        // Each wait once, whether its request went out before the damage or with the repair.
        expect(asked.map((record) => record['continuation_id']).toSorted()).toEqual(
          known.filter((id) => armed(state, id)).toSorted(),
        )
        const versions = tables.topic('checkpoints').map((record) => record['version'] as number)
        expect(versions).toEqual(versions.toSorted((a, b) => a - b))
        expect(tables.thread(thread.stream)!.version).toBe(records.length + 1)
      }),
      { numRuns: 60 },
    )
  })
})

const armed = (state: ThreadState, id: string) => (state.waits.get(id) ?? state.closedWaits.get(id))!.ready

function agree(tables: ProjectorTables, thread: LegalThread, { state, head, quarantine }: Folded) {
  const row = tables.thread(thread.stream)!
  expect(row).toMatchObject({
    ...{ version: head.version, quarantined_at: quarantine?.version ?? null },
    ...{ status: quarantine ? 'quarantined' : threadStatus(state), run_id: state.run?.runId ?? null },
    ...{ application: state.identity?.application ?? '', thread: state.identity?.thread ?? '' },
  })
  // Without the opening nobody knows whose waits they are.
  const waits = state.identity ? [...state.closedWaits].map(([, wait]) => wait).concat([...state.waits.values()]) : []
  expect(tables.waits(thread.stream).map((wait) => [wait.continuation_id, wait.status, wait.revision])).toEqual(
    waits.map((wait) => [wait.id, wait.status, wait.revision]).toSorted(),
  )
}

describe('an event that does not follow', () => {
  it('quarantines its thread too, at its version', async () => {
    await fc.assert(
      fc.asyncProperty(legalThreads({ maxCommits: 15 }), async (thread) => {
        await using tables = await ProjectorTables.open()
        const records = recordsOf(encodeThread(thread))
        const illegal = next(records, { type: 'continuation.claimed/1', data: { continuation_id: 'nobody', revision: 1 } })
        await tables.apply([...records, ...illegal])
        const version = records.length + 1
        expect(tables.thread(thread.stream)).toMatchObject({ status: 'quarantined', quarantined_at: version, version })
        const repair = repairOf([...records, ...illegal], version)
        await tables.apply(repair)
        agree(tables, thread, foldStream([...records, ...illegal, ...repair]))
        expect(tables.thread(thread.stream)!.status).toBe(thread.commits.at(-1)!.expect.status)
      }),
      { numRuns: 30 },
    )
  })
})

describe('a repair of an event that was never broken', () => {
  it('is folded and indexed alike', async () => {
    await fc.assert(
      fc.asyncProperty(legalThreads({ maxCommits: 20 }), fc.nat(), async (thread, at) => {
        await using tables = await ProjectorTables.open()
        const records = recordsOf(encodeThread(thread))
        await tables.apply(records)
        // Not the opening: a row keeps the names it was opened with.
        const repair = repairOf(records, Math.max(2, (at % records.length) + 1))
        await tables.apply(repair)
        agree(tables, thread, foldStream([...records, ...repair]))
      }),
      { numRuns: 60 },
    )
  })
})

describe('a newer build', () => {
  it('goes on with a thread an older one could not read, from its next event', async () => {
    await using tables = await ProjectorTables.open()
    const thread = threadOf([
      [0, 0],
      [3, 0],
      [5, 0],
      [9, 1],
      [13, 2],
    ])
    const records = recordsOf(encodeThread(thread))
    const seen = records.slice(0, -1).map((record, i) => (i === 0 ? unreadable(record) : record))
    await tables.apply(seen)
    expect(tables.thread(thread.stream)).toMatchObject({
      status: 'quarantined',
      quarantined_at: 1,
      application: '',
      thread: '',
      kind: '',
    })
    tables.upgrade(records.slice(0, -1))
    await tables.apply(records.slice(-1))
    agree(tables, thread, foldStream(records))
    const { application, user, thread: name } = thread.key
    expect(tables.thread(thread.stream)).toMatchObject({
      application,
      user,
      thread: name,
      kind: 'harness',
      opened_at: thread.commits[0]!.time,
    })
  })
})

describe('a transaction that is rolled back', () => {
  it('leaves nothing behind in the folds that projectors keep', async () => {
    await fc.assert(
      fc.asyncProperty(
        legalThreads({ maxCommits: 15 }),
        legalThreads({ maxCommits: 15 }),
        fc.nat(),
        async (thread, lost, cut) => {
          await using tables = await ProjectorTables.open()
          const records = recordsOf(encodeThread(thread))
          const at = (cut % records.length) + 1
          await tables.apply(records.slice(0, at))
          // Another continuation of the same thread that never came to be: its own commits, or a foreign beginning.
          await tables.apply(
            next(records.slice(0, at), { type: 'capability.deleted/1', data: { capability_id: 'x' } }),
            'roll back',
          )
          if (at === 1) await tables.apply(recordsOf(encodeThread(lost)).slice(0, 1), 'roll back')
          if (at < records.length) await tables.apply(records.slice(at))
          agree(tables, thread, foldStream(records))
          await using straight = await ProjectorTables.open()
          await straight.apply(records.slice(0, at))
          if (at < records.length) await straight.apply(records.slice(at))
          expect(tables.published).toEqual(straight.published)
        },
      ),
      { numRuns: 40 },
    )
  })
})
