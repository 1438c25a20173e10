import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sha256Hex } from '../../../src/base/index.ts'
import {
  countWaits,
  findThread,
  listThreads,
  listWaits,
  type ThreadRow,
  type WaitRow,
  waitByExternalId,
  waitById,
} from '../../../src/projections/index.ts'
import { type IndexLog, openIndexLog } from '../../support/index-log.ts'
import { ThreadScript } from '../../support/thread-script.ts'

let log: IndexLog
const idle = new ThreadScript('idle_1', { time: 1000 }).open()
const failed = new ThreadScript('failed_1', { time: 2000, user: 'u-2' }).open().run().end('failed')
const waiting = new ThreadScript('waiting_1', { time: 3000 })
  .open()
  .run({ calls: ['a', 'b'] })
  .suspend([
    { call: 'a', wait: 'w-a', deadline: 5000 },
    { call: 'b', wait: 'w-b', provider: 'human', kind: 'approval' },
  ])
const elsewhere = new ThreadScript('waiting_1', { time: 4000, application: 'other' })
  .open()
  .run({ calls: ['a'] })
  .suspend([{ call: 'a', wait: 'w-c', externalId: 'job-9' }])
  .answer('w-c')

beforeAll(async () => {
  log = await openIndexLog()
  for (const script of [idle, failed, waiting, elsewhere]) await log.append(...script.commits)
})
afterAll(() => log[Symbol.asyncDispose]())

const names = (rows: { application: string; thread: string }[]) => rows.map((row) => `${row.application}/${row.thread}`)
const ids = (rows: { continuation_id: string }[]) => rows.map((row) => row.continuation_id)

describe('listThreads', () => {
  it('gives the newest first, page by page', () => {
    const all = listThreads(log.backend.tables)
    expect(names(all)).toEqual(['other/waiting_1', 'app/waiting_1', 'app/failed_1', 'app/idle_1'])
    const page = listThreads(log.backend.tables, { limit: 3 })
    expect(names(listThreads(log.backend.tables, { limit: 3, after: page.at(-1)!.id }))).toEqual(['app/idle_1'])
  })

  it.each([
    [{ application: 'other' }, ['other/waiting_1']],
    [{ user: 'u-2' }, ['app/failed_1']],
    [{ status: 'waiting' }, ['app/waiting_1']],
    [{ status: 'resolved' }, ['other/waiting_1']],
    [{ status: 'failed' }, ['app/failed_1']],
    [{ status: 'completed' }, []],
    [{ status: 'idle' }, ['app/failed_1', 'app/idle_1']],
    [{ since: 3000, application: 'app' }, ['app/waiting_1']],
  ] as const)('filters by %j', (filter, expected) => expect(names(listThreads(log.backend.tables, filter))).toEqual(expected))
})

describe('findThread', () => {
  const find = (reference: Parameters<typeof findThread>[1]): ThreadRow | undefined => findThread(log.backend.tables, reference)

  it('takes the three ids, the stream key, and a beginning of it', () => {
    expect(find(waiting.key)?.stream).toBe(waiting.stream)
    expect(find(waiting.stream)?.thread).toBe('waiting_1')
    expect(find(waiting.stream.slice(0, 8))?.stream).toBe(waiting.stream)
    expect(find(waiting.stream.slice(0, 40).toUpperCase())?.stream).toBe(waiting.stream)
    expect(find({ ...waiting.key, user: 'nobody' })).toBeUndefined()
    expect(find('0'.repeat(8))).toBeUndefined()
  })

  it('refuses a prefix of several threads, and what is none', async () => {
    await using other = await openIndexLog()
    const prefix = 'abcdef01'
    const row = `INSERT INTO threads(stream, application, user, thread, kind, version, status, open_waits, opened_at, updated_at)
      VALUES (?, 'a', 'u', 't', 'harness', 1, 'idle', 0, 0, 0)`
    await other.backend.cache((tx) => {
      for (const end of ['0', '1']) tx.run(row, prefix + end.repeat(56))
    })
    expect(() => findThread(other.backend.tables, prefix)).toThrow(
      expect.objectContaining({ code: 'ambiguous_prefix', disposition: 'reject' }),
    )
    expect(findThread(other.backend.tables, `${prefix}1`)?.stream).toBe(prefix + '1'.repeat(56))
    for (const text of ['abcdef0', 'app/u-1/idle_1', '', `${prefix}%`])
      expect(() => find(text)).toThrow(expect.objectContaining({ code: 'thread_reference_invalid' }))
  })
})

describe('listWaits', () => {
  it('gives pending waits in the order of the log, page by page', () => {
    expect(ids(listWaits(log.backend.tables))).toEqual(['w-a', 'w-b'])
    expect(ids(listWaits(log.backend.tables, { limit: 1 }))).toEqual(['w-a'])
    const [first] = listWaits(log.backend.tables, { limit: 1 })
    expect(ids(listWaits(log.backend.tables, { after: first! }))).toEqual(['w-b'])
  })

  it('gives the oldest first, whatever the ids', async () => {
    await using other = await openIndexLog()
    for (const n of [7, 9, 1])
      await other.append(
        ...new ThreadScript(`waiting_${n}`)
          .open()
          .run({ calls: ['a', 'b'] })
          .suspend([
            { call: 'a', wait: `w-${n}b` },
            { call: 'b', wait: `w-${n}a` },
          ]).commits,
      )
    const found: string[] = []
    for (let after: WaitRow | undefined; ; ) {
      const page = listWaits(other.backend.tables, { application: 'app', limit: 2, after })
      if (page.length === 0) break
      found.push(...ids(page))
      after = page.at(-1)
    }
    expect(found).toEqual(['w-7b', 'w-7a', 'w-9b', 'w-9a', 'w-1b', 'w-1a'])
  })

  it.each([
    [{ application: 'other' }, []],
    [{ application: 'other', status: 'completed' }, ['w-c']],
    [{ status: 'any' }, ['w-a', 'w-b', 'w-c']],
    [{ continuationId: 'w-b' }, ['w-b']],
    [{ continuationId: 'w-b', kind: 'external' }, []],
    [{ continuationId: 'w-c' }, []],
    [{ provider: 'human' }, ['w-b']],
    [{ kind: 'external' }, ['w-a']],
    [{ dueBefore: 4999 }, []],
    [{ dueBefore: 5000 }, ['w-a']],
    [{ dueBefore: 5000, application: 'app', provider: 'payouts', kind: 'external' }, ['w-a']],
    [{ dueBefore: 5000, provider: 'human' }, []],
    [{ createdBefore: 2999 }, []],
    [{ createdBefore: 4000, provider: 'human', application: 'app' }, ['w-b']],
    [{ stream: waiting.stream }, ['w-a', 'w-b']],
    [{ application: 'app', user: 'u-1', thread: 'waiting_1' }, ['w-a', 'w-b']],
    [{ thread: 'waiting_1', status: 'any' }, ['w-a', 'w-b', 'w-c']],
  ] as const)('filters by %j', (filter, expected) => expect(ids(listWaits(log.backend.tables, filter))).toEqual(expected))
})

describe('listWaits and countWaits', () => {
  const APPS = ['app', 'b', 'zz']
  const PROVIDERS = ['human', 'jobs', 'payouts']
  const rows = fc.array(
    fc.record({
      ...{ application: fc.constantFrom(...APPS), provider: fc.constantFrom(...PROVIDERS), user: fc.constantFrom('u-1', 'u-2') },
      ...{
        kind: fc.constantFrom('external', 'approval', 'question'),
        status: fc.constantFrom('pending', 'pending', 'completed'),
      },
      ...{ created_at: fc.nat(6), deadline: fc.option(fc.nat(6)) },
    }),
    { maxLength: 40 },
  )
  const maybe = <T>(values: readonly T[]) => fc.option(fc.constantFrom(...values), { nil: undefined })
  const filters = fc.record({
    ...{ application: maybe(APPS), provider: maybe(PROVIDERS), kind: maybe(['external', 'approval', 'question'] as const) },
    ...{ user: maybe(['u-1']), createdBefore: maybe([0, 3, 5]), dueBefore: maybe([2, 4]) },
  })

  it('agree with a plain filter and sort, whatever the pages', async () => {
    await fc.assert(
      fc.asyncProperty(rows, filters, fc.integer({ min: 1, max: 7 }), async (made, filter, limit) => {
        await using log = await openIndexLog()
        const { tables } = log.backend
        await log.backend.cache((tx) => {
          for (const [i, row] of made.entries())
            tx.run(INSERT, `w${i}`, row.application, row.user, row.provider, row.kind, row.status, row.deadline, row.created_at)
        })
        const { createdBefore = 9, dueBefore, ...equal } = filter
        const meant = made.map((row, i) => ({ ...row, id: i + 1 })).filter((row) => row.status === 'pending')
        const wanted = meant
          .filter((row) => Object.entries(equal).every(([name, value]) => value === undefined || row[name as 'user'] === value))
          .filter((row) => row.created_at <= createdBefore && (dueBefore === undefined || (row.deadline ?? 9) <= dueBefore))
          .sort((a, b) => a.created_at - b.created_at || a.id - b.id)
        const listed: number[] = []
        for (let after: WaitRow | undefined; ; ) {
          const page = listWaits(tables, { ...filter, limit, after })
          listed.push(...page.map(({ id }) => id))
          if (page.length < limit) break
          after = page.at(-1)
        }
        expect(listed).toEqual(wanted.map(({ id }) => id))

        const { application, provider, kind } = filter
        const counts = countWaits(tables, { application, provider, kind })
        const counted = meant.filter(
          (row) => (application ?? row.application) === row.application && (provider ?? row.provider) === row.provider,
        )
        const groups = Map.groupBy(
          counted.filter((row) => (kind ?? row.kind) === row.kind),
          (row) => `${row.application} ${row.provider} ${row.kind}`,
        )
        expect(counts.map((row) => [`${row.application} ${row.provider} ${row.kind}`, row.waits, row.oldest_at])).toEqual(
          [...groups].sort().map(([name, own]) => [name, own.length, Math.min(...own.map((row) => row.created_at))]),
        )
      }),
      { numRuns: 60 },
    )
  })
})

const INSERT = `INSERT INTO waits(stream, thread, capability, schema_id, external_id, external_id_key, tool_name, call_id, ready, revision, run_id,
  invocation_id, proposal_digest, updated_at, continuation_id, application, user, provider, kind, status, deadline, created_at)
  VALUES ('s', 't', '', '', '', '', '', '', 1, 1, '', '', '', 0, ?, ?, ?, ?, ?, ?, ?, ?)`

describe('one wait', () => {
  it('is found by its id, with what answered it', () => {
    expect(waitById(log.backend.tables, 'w-c')).toMatchObject({
      ...{
        stream: elsewhere.stream,
        application: 'other',
        user: 'u-1',
        thread: 'waiting_1',
        provider: 'payouts',
        capability: 'tool.call',
      },
      ...{ status: 'completed', ready: 1, revision: 2, kind: 'external', tool_name: 'pay', call_id: 'a', external_id: 'job-9' },
      ...{
        run_id: elsewhere.runId,
        invocation_id: elsewhere.runId,
        result_id: 'result of w-c',
        digest: sha256Hex('result of w-c'),
      },
      ...{ deadline: null, schema_id: 'schema/1', proposal_digest: sha256Hex('a') },
    })
    expect(waitById(log.backend.tables, 'w-z')).toBeUndefined()
  })

  it('is found by its external id within application and provider; of two the older', async () => {
    const { tables } = log.backend
    expect(waitByExternalId(tables, 'other', 'payouts', sha256Hex('job-9'))?.continuation_id).toBe('w-c')
    expect(waitByExternalId(tables, 'app', 'payouts', sha256Hex('job-9'))).toBeUndefined()
    expect(waitByExternalId(tables, 'other', 'human', sha256Hex('job-9'))).toBeUndefined()
    await using twice = await openIndexLog()
    for (const [thread, wait] of [
      ['a_1', 'w-z'],
      ['a_2', 'w-b'],
    ] as const) {
      const script = new ThreadScript(thread)
        .open()
        .run({ calls: ['a'] })
        .suspend([{ call: 'a', wait, externalId: 'job-1' }])
      await twice.append(...script.commits)
    }
    expect(waitByExternalId(twice.backend.tables, 'app', 'payouts', sha256Hex('job-1'))?.continuation_id).toBe('w-z')
  })

  it('keeps the first of two threads that claim one continuation id', async () => {
    await using log = await openIndexLog()
    const [first, second] = ['a_1', 'a_2'].map((thread) =>
      new ThreadScript(thread)
        .open()
        .run({ calls: ['a'] })
        .suspend([{ call: 'a', wait: 'w-same' }]),
    )
    await log.append(...first!.commits, ...second!.commits, ...second!.answer('w-same').commits.slice(-1))
    expect(waitById(log.backend.tables, 'w-same')).toMatchObject({ stream: first!.stream, status: 'pending', revision: 1 })
  })
})
