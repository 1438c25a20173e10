import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sha256Hex } from '../../../src/base/index.ts'
import { findThread, listThreads, listWaits, type ThreadRow, waitByExternalId, waitById } from '../../../src/projections/index.ts'
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
    expect(ids(listWaits(log.backend.tables, { after: first!.id }))).toEqual(['w-b'])
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
    for (let after = 0; ; ) {
      const page = listWaits(other.backend.tables, { application: 'app', limit: 2, after })
      if (page.length === 0) break
      found.push(...ids(page))
      after = page.at(-1)!.id
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
    [{ stream: waiting.stream }, ['w-a', 'w-b']],
    [{ application: 'app', user: 'u-1', thread: 'waiting_1' }, ['w-a', 'w-b']],
    [{ thread: 'waiting_1', status: 'any' }, ['w-a', 'w-b', 'w-c']],
  ] as const)('filters by %j', (filter, expected) => expect(ids(listWaits(log.backend.tables, filter))).toEqual(expected))
})

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
