import { describe, expect, it } from 'vitest'
import type { Sql, SqlValue } from '../../../src/log/index.ts'
import {
  countWaits,
  dueWaits,
  listWaits,
  pendingOfProvider,
  requestedThreads,
  resolvedThreads,
  runningThreads,
  waitByExternalId,
} from '../../../src/projections/index.ts'
import { openIndexLog } from '../../support/index-log.ts'
import { ThreadScript } from '../../support/thread-script.ts'

const names = (rows: { thread: string }[]) => rows.map((row) => row.thread)
const suspended = (thread: string, o: { agent?: string } = {}) =>
  new ThreadScript(thread)
    .open()
    .run({ ...o, calls: ['a'] })
    .suspend([{ call: 'a', wait: `wait of ${thread}` }])
const resolved = (thread: string, o: { agent?: string } = {}) => suspended(thread, o).answer(`wait of ${thread}`)

async function logOf(...scripts: ThreadScript[]) {
  const log = await openIndexLog()
  for (const script of scripts) await log.append(...script.commits)
  return log
}

describe('requestedThreads', () => {
  it('finds what may begin: asked for, known agent, nothing running', async () => {
    await using log = await logOf(
      new ThreadScript('alpha_1').open().request('alpha'),
      new ThreadScript('beta_1').open().request('beta'),
      new ThreadScript('gamma_1').open().request('gamma'),
      new ThreadScript('running_1').open().run().request('alpha'),
      new ThreadScript('idle_1').open(),
      suspended('waiting_1').request('alpha'),
      new ThreadScript('refused_1').open().request('alpha', 'r').end('failed', 'r'),
      new ThreadScript('second_1').open().request('gamma').request('alpha', 'r-2'),
    )
    const { tables } = log.backend
    expect(names(requestedThreads(tables, ['alpha', 'beta'], { limit: 10 }))).toEqual(['alpha_1', 'beta_1', 'waiting_1'])
    const [first] = requestedThreads(tables, ['alpha', 'beta'], { limit: 1 })
    expect(names(requestedThreads(tables, ['alpha', 'beta'], { limit: 1, after: first!.id }))).toEqual(['beta_1'])
    expect(requestedThreads(tables, [], { limit: 10 })).toEqual([])
  })
})

describe('resolvedThreads', () => {
  it('finds suspended threads with nothing left to answer', async () => {
    await using log = await logOf(
      resolved('one_1'),
      suspended('waiting_1'),
      resolved('beta_1', { agent: 'beta' }),
      resolved('ended_1').end('cancelled'),
    )
    expect(names(resolvedThreads(log.backend.tables, [['alpha', '1']], { limit: 10 }))).toEqual(['one_1'])
    const both = [
      ['beta', '1'],
      ['alpha', '7'],
    ] as const
    expect(names(resolvedThreads(log.backend.tables, both, { limit: 10 }))).toEqual(['one_1', 'beta_1'])
    expect(names(resolvedThreads(log.backend.tables, both, { limit: 10, after: 1 }))).toEqual(['beta_1'])
  })

  it('leaves a batch alone that this revision has refused, until another comes', async () => {
    await using log = await logOf(resolved('one_1').refuse('wait of one_1', '2'))
    const { tables } = log.backend
    expect(names(resolvedThreads(tables, [['alpha', '2']], { limit: 10 }))).toEqual([])
    expect(names(resolvedThreads(tables, [['alpha', '3']], { limit: 10 }))).toEqual(['one_1'])
    expect(log.thread(resolved('one_1').stream)).toMatchObject({ status: 'resolved', blocked_revision: '2', last_end: null })
  })
})

describe('runningThreads', () => {
  it('says who owns each', async () => {
    await using log = await logOf(
      new ThreadScript('one_1').open().run({ owner: 'o-1' }),
      new ThreadScript('two_1').open().run({ owner: 'o-2' }).end('completed'),
      new ThreadScript('three_1').open().run({ owner: 'o-3' }),
    )
    const rows = runningThreads(log.backend.tables, { limit: 10 })
    expect(rows.map((row) => [row.thread, row.owner_id, row.owner_kind, row.attempt])).toEqual([
      ['one_1', 'o-1', 'engine', 1],
      ['three_1', 'o-3', 'engine', 1],
    ])
    expect(names(runningThreads(log.backend.tables, { limit: 10, after: rows[0]!.id }))).toEqual(['three_1'])
  })
})

describe('dueWaits', () => {
  it('gives pending waits whose deadline has come, longest overdue first', async () => {
    const calls = ['a', 'b', 'c', 'd']
    const deadlines = [300, 100, undefined, 200]
    const waits = calls.map((call, i) => ({ call, wait: `w-${call}`, deadline: deadlines[i] }))
    await using log = await logOf(new ThreadScript('one_1').open().run({ calls }).suspend(waits).answer('w-d'))
    const due = (now: number, limit = 10) =>
      dueWaits(log.backend.tables, { application: 'app', now, limit }).map((row) => row.continuation_id)
    expect(due(99)).toEqual([])
    expect(due(100)).toEqual(['w-b'])
    expect(due(1000)).toEqual(['w-b', 'w-a'])
    expect(due(1000, 1)).toEqual(['w-b'])
    const [first] = dueWaits(log.backend.tables, { application: 'app', now: 1000, limit: 1 })
    const after = { deadline: first!.deadline!, id: first!.id }
    const rest = dueWaits(log.backend.tables, { application: 'app', now: 1000, limit: 10, after })
    expect(rest.map((row) => row.continuation_id)).toEqual(['w-a'])
    expect(dueWaits(log.backend.tables, { application: 'another', now: 1000, limit: 10 })).toEqual([])
  })
})

describe('the plans', () => {
  it.each([
    ['threads_requested', (sql: Sql) => requestedThreads(sql, ['alpha'], { limit: 10 })],
    ['threads_resolved', (sql: Sql) => resolvedThreads(sql, [['alpha', '1']], { limit: 10 })],
    ['threads_running', (sql: Sql) => runningThreads(sql, { limit: 10 })],
    ['waits_due', (sql: Sql) => dueWaits(sql, { application: 'app', now: 0, limit: 10, after: { deadline: 0, id: 1 } })],
    ['waits_pending', (sql: Sql) => listWaits(sql)],
    ['waits_pending', (sql: Sql) => listWaits(sql, { application: 'app', after: { created_at: 1, id: 1 } })],
    ['waits_pending', (sql: Sql) => listWaits(sql, { application: 'app', provider: 'payouts', createdBefore: 9 })],
    ['waits_pending', (sql: Sql) => countWaits(sql)],
    ['waits_pending', (sql: Sql) => countWaits(sql, { application: 'app', provider: 'payouts' })],
    ['waits_due', (sql: Sql) => listWaits(sql, { application: 'app', provider: 'payouts', dueBefore: 9 })],
    ['waits_provider', (sql: Sql) => pendingOfProvider(sql, { application: 'app', provider: 'payouts', after: 'a', limit: 9 })],
    ['waits_thread', (sql: Sql) => listWaits(sql, { stream: 's' })],
    ['waits_external', (sql: Sql) => waitByExternalId(sql, 'app', 'payouts', 'k')],
  ])('use the index %s and never scan a table', async (index, query) => {
    const two = [
      { call: 'a', wait: 'w-a' },
      { call: 'b', wait: 'w-b', provider: 'human', kind: 'approval' as const },
    ]
    await using log = await logOf(
      new ThreadScript('one_1')
        .open()
        .run({ calls: ['a', 'b'] })
        .suspend(two),
    )
    const { tables } = log.backend
    const plans: string[] = []
    const explaining: Sql = {
      ...tables,
      all: <Row>(sql: string, ...values: SqlValue[]) => {
        plans.push(...tables.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...values).map((row) => row.detail))
        return tables.all<Row>(sql, ...values)
      },
      get: <Row>(sql: string, ...values: SqlValue[]) => explaining.all<Row>(sql, ...values)[0],
    }
    query(explaining)
    expect(plans.join('\n')).toContain(`INDEX ${index}`)
    expect(plans.filter((plan) => /SCAN (threads|waits)(?! USING)/.test(plan))).toEqual([])
    // What is listed by the page stands in its index in the order it is listed in.
    if (index === 'waits_pending' || index === 'waits_provider') expect(plans.join('\n')).not.toContain('TEMP B-TREE')
  })
})
