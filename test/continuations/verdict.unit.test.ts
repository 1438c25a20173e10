import { beforeAll, describe, expect, test } from 'vitest'
import { AppendMap, Payload } from '../../src/base/index.ts'
import {
  type Authority,
  apiSource,
  type JudgedThread,
  judge,
  outcomeDigest,
  type Submission,
  topicSource,
} from '../../src/continuations/index.ts'
import type { Source } from '../../src/events/index.ts'
import {
  type RunEnd,
  STALE_BRANCH,
  type ThreadState,
  type Wait,
  type WaitOutcome,
  type WaitStatus,
} from '../../src/projections/index.ts'
import { type BuiltThread, memoryStore, suspendedThread } from '../support/threads.ts'

const source = topicSource({ cluster: 'log-1', topic: 'results', partition: 0, offset: 4n, time: 1000 })
const otherSource = topicSource({ cluster: 'log-1', topic: 'results', partition: 0, offset: 3n, time: 999 })
const result = { reference: 'r' }
const all: Authority = { allows: () => true }

interface Case {
  thread: JudgedThread | undefined
  id: string
  submission: Submission
  authority: Authority
  source: Source
}

let built: BuiltThread

beforeAll(async () => {
  const store = await memoryStore()
  built = await suspendedThread(store, [{ kind: 'external', externalId: 'job-1' }])
  await store.backend.close()
})

const fresh = (): Case => ({
  thread: { state: built.state, quarantined: false },
  id: built.waits[0]!.id,
  submission: {
    provider: 'payouts',
    address: { continuation_id: built.waits[0]!.id },
    outcome: { result },
    digest: outcomeDigest({ result }),
  },
  authority: all,
  source,
})

const verdictOf = (c: Case) => judge(c.thread, c.id, c.submission, { authority: c.authority, source: c.source })

const submit = (c: Case, change: Partial<Submission>): Case => ({ ...c, submission: { ...c.submission, ...change } })

function withState(c: Case, change: (state: ThreadState) => ThreadState): Case {
  return c.thread ? { ...c, thread: { ...c.thread, state: change(c.thread.state) } } : c
}

const OPEN: WaitStatus[] = ['pending', 'completed', 'failed']

function withWait(c: Case, change: Partial<Wait>): Case {
  const id = built.waits[0]!.id
  return withState(c, (state) => {
    const wait = { ...((state.waits.get(id) ?? state.closedWaits.get(id)) as Wait), ...change }
    return OPEN.includes(wait.status)
      ? { ...state, waits: new Map([[id, wait]]), closedWaits: AppendMap.of() }
      : { ...state, waits: new Map(), closedWaits: AppendMap.of([[id, wait]]) }
  })
}

const outcome = (change: Partial<WaitOutcome>): WaitOutcome => ({
  resultId: 'other',
  digest: 'f'.repeat(64),
  source: otherSource,
  value: Payload.of(1),
  failure: null,
  ...change,
})

interface Row {
  row: number
  verdict: string
  name: string
  make(c: Case): Case
  /** Rows that need this one's opposite. */
  excludes?: string[]
}

const ended: RunEnd = {
  runId: 'x',
  invocationId: 'x',
  status: 'cancelled',
  output: null,
  failure: null,
  details: null,
  spent: undefined,
  reason: null,
  version: 1,
  time: 1,
}

const answered = ['same source', 'same result id', 'duplicate', 'conflict']
const closed = ['cancelled', 'expired', 'abandoned']

/** In the order of the table: of two that apply, the upper one wins. */
const rows: Row[] = [
  { row: 4, verdict: 'forbidden', name: 'forbidden', make: (c) => ({ ...c, authority: { allows: () => false } }) },
  { row: 5, verdict: 'unknown', name: 'no thread', make: (c) => ({ ...c, thread: undefined }), excludes: ['quarantined before'] },
  {
    row: 5,
    verdict: 'unknown',
    name: 'no wait',
    make: (c) => ({ ...c, id: 'nowhere' }),
    excludes: ['quarantined', 'quarantined before'],
  },
  {
    row: 6,
    verdict: 'wrong-scope',
    name: 'other application',
    make: (c) => submit(c, { application_id: 'other' }),
    excludes: ['quarantined before'],
  },
  {
    row: 6,
    verdict: 'wrong-scope',
    name: 'other provider',
    make: (c) => submit(c, { provider: 'human' }),
    excludes: ['quarantined before'],
  },
  {
    row: 7,
    verdict: 'accepted',
    name: 'same source',
    make: (c) => withWait(c, { status: 'claimed', outcome: outcome({ source }) }),
    excludes: [...answered, 'cancelled', 'expired', 'quarantined before'],
  },
  {
    row: 7,
    verdict: 'accepted',
    name: 'same result id',
    make: (c) =>
      submit(withWait(c, { status: 'completed', outcome: outcome({ resultId: 'r-1', digest: c.submission.digest }) }), {
        result_id: 'r-1',
      }),
    excludes: [...answered, 'cancelled', 'expired', 'quarantined before'],
  },
  {
    row: 9,
    verdict: 'quarantined',
    name: 'quarantined',
    make: (c) => (c.thread ? { ...c, thread: { ...c.thread, quarantined: true } } : c),
  },
  {
    row: 9,
    verdict: 'quarantined',
    name: 'quarantined before',
    make: (c) => ({ ...(c.thread ? { ...c, thread: { ...c.thread, quarantined: true } } : c), id: 'nowhere' }),
    excludes: [...answered, ...closed],
  },
  { row: 10, verdict: 'schema-mismatch', name: 'other schema', make: (c) => submit(c, { schema_id: 'threadlog.approval/1' }) },
  {
    row: 11,
    verdict: 'duplicate',
    name: 'duplicate',
    make: (c) => withWait(c, { status: 'completed', outcome: outcome({ digest: c.submission.digest }) }),
    excludes: [...answered, 'cancelled', 'expired'],
  },
  {
    row: 11,
    verdict: 'conflict',
    name: 'conflict',
    make: (c) => withWait(c, { status: 'failed', outcome: outcome({}) }),
    excludes: [...answered, 'cancelled', 'expired'],
  },
  { row: 12, verdict: 'cancelled', name: 'cancelled', make: (c) => withWait(c, { status: 'cancelled' }), excludes: closed },
  { row: 12, verdict: 'expired', name: 'expired', make: (c) => withWait(c, { status: 'expired' }), excludes: closed },
  { row: 12, verdict: 'abandoned', name: 'abandoned', make: (c) => withWait(c, { status: 'abandoned' }), excludes: closed },
  {
    row: 13,
    verdict: 'stale-branch',
    name: 'stale branch',
    make: (c) => withWait(c, { status: 'abandoned', endedWith: { code: STALE_BRANCH, retryable: false } }),
    excludes: closed,
  },
  {
    row: 14,
    verdict: 'late',
    name: 'late',
    make: (c) => withState(c, (state) => ({ ...state, invocations: state.invocations.set(built.runId, ended) })),
  },
  { row: 15, verdict: 'proposal-changed', name: 'other proposal', make: (c) => submit(c, { proposal_digest: '0'.repeat(64) }) },
]

describe('the verdict table', () => {
  test('a result for a pending wait is accepted', () => expect(verdictOf(fresh())).toEqual({ verdict: 'accepted' }))

  test.each(rows)('row $row: $name → $verdict', ({ make, verdict }) => expect(verdictOf(make(fresh())).verdict).toBe(verdict))

  const pairs = rows.flatMap((upper, i) =>
    rows
      .slice(i + 1)
      .filter((lower) => !upper.excludes?.includes(lower.name) && !lower.excludes?.includes(upper.name))
      .map((lower) => ({ upper, lower })),
  )
  test.each(pairs)('$upper.name goes before $lower.name', ({ upper, lower }) => {
    expect(verdictOf(upper.make(lower.make(fresh()))).verdict).toBe(upper.verdict)
    expect(verdictOf(lower.make(upper.make(fresh()))).verdict).toBe(upper.verdict)
  })

  test('the winning digest is told on duplicate and conflict', () => {
    const digest = outcomeDigest({ result })
    const row = (name: string) => rows.find((r) => r.name === name) as Row
    expect(verdictOf(row('duplicate').make(fresh()))).toEqual({ verdict: 'duplicate', digest })
    expect(verdictOf(row('conflict').make(fresh()))).toEqual({ verdict: 'conflict', digest: 'f'.repeat(64) })
  })

  test('a wait that was abandoned with a result counts as answered, however long ago', () => {
    const c = withWait(fresh(), { status: 'abandoned', outcome: outcome({}) })
    expect(verdictOf(c).verdict).toBe('conflict')
  })
})

describe('row 7', () => {
  const answeredBy = (c: Case, change: Partial<WaitOutcome>) => withWait(c, { status: 'completed', outcome: outcome(change) })
  const digest = outcomeDigest({ result })

  test('marks the verdict as recorded, so that nothing is appended again', () => {
    expect(verdictOf(answeredBy(fresh(), { source }))).toEqual({ verdict: 'accepted', recorded: true })
  })
  test('the same result id with another value is a conflict', () => {
    expect(verdictOf(submit(answeredBy(fresh(), { resultId: 'r-1' }), { result_id: 'r-1' })).verdict).toBe('conflict')
  })
  test('the same value under another result id is a duplicate', () => {
    expect(verdictOf(submit(answeredBy(fresh(), { resultId: 'r-1', digest }), { result_id: 'r-2' })).verdict).toBe('duplicate')
  })
  test('a recreated topic counts its offsets again: the record time tells', () => {
    const again = { ...fresh(), source: { ...source, record_time: 2000 } }
    expect(verdictOf(answeredBy(again, { source })).verdict).toBe('conflict')
  })
  test('a command id that is used for another value is a conflict, for the same value the recorded verdict', () => {
    const call = { ...fresh(), source: apiSource('cli', 'cmd-1') }
    expect(verdictOf(answeredBy(call, { source: call.source })).verdict).toBe('conflict')
    expect(verdictOf(answeredBy(call, { source: call.source, digest }))).toEqual({ verdict: 'accepted', recorded: true })
  })
})
