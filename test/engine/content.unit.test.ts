import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type ContentRef, sha256Hex } from '../../src/base/index.ts'
import { payloadsOf } from '../../src/events/index.ts'
import { type ContentStore, defineTool, externalTool, openThreadlog, type Threadlog } from '../../src/index.ts'
import { stateHash, verifyRecords } from '../../src/projections/index.ts'
import { agentOf, calls, eventsOf, says } from '../support/agents.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'threadlog-content-'))
  file = join(folder, 'log.db')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const LARGE = 300_000
const big = (letter: string) => letter.repeat(LARGE)
const input = z.object({})
const load = defineTool({ name: 'load', description: 'Loads', input, execute: () => ({ text: big('t') }) })
const ask = externalTool({ name: 'ask', description: 'Asks', provider: 'desk', input: z.object({ q: z.string() }) })
const script = () => [calls(['c1', 'load', {}], ['c2', 'ask', { q: big('q') }]), says(big('r'))]
const agent = () => agentOf(script(), [load, ask])

const open = (o: Parameters<typeof openThreadlog>[0] = {}) => openThreadlog({ log: `sqlite:${file}`, application: 'test', ...o })

/** A thread with a large input, call, tool result, result of a wait, response and output. */
async function largeThread(threads: Threadlog, thread = 'thread_a') {
  const one = agent()
  const { waits } = await threads.run(one, { thread, input: big('i') })
  const wait = waits[0]
  expect(await threads.submit({ provider: 'desk', continuation_id: wait?.id ?? '', result: big('w') })).toMatchObject({
    verdict: 'accepted',
  })
  return { wait, result: await threads.run(one, { thread }) }
}

const keptOf = async (threads: Threadlog, thread = 'thread_a') =>
  (await eventsOf(threads, thread)).flatMap(({ event, version }) =>
    event ? payloadsOf(event.type, event.data).flatMap(({ kept }) => (kept ? [{ type: event.type, version, ...kept }] : [])) : [],
  )

test('what is above 64 KiB stands once in the content store, and events are small', async () => {
  await using threads = await open()
  const { wait, result } = await largeThread(threads)
  expect(result).toMatchObject({ status: 'completed', output: big('r') })
  expect(wait?.arguments).toEqual({ q: big('q') })
  const records = await eventsOf(threads, 'thread_a')
  for (const { bytes } of records) expect(bytes.byteLength).toBeLessThan(66_000)
  const kept = await keptOf(threads)
  expect(kept.map(({ type }) => type)).toEqual([
    'run.requested/1',
    'request.composed/1',
    'model.responded/1',
    'tool.settled/1',
    'run.suspended/1',
    'continuation.completed/1',
    'model.responded/1',
    'run.completed/1',
  ])
  for (const { ref } of kept) {
    const bytes = await threads.backend.content.get(ref)
    expect(sha256Hex(bytes ?? new Uint8Array())).toBe(ref.digest)
    expect(bytes?.byteLength).toBe(ref.size)
  }
  const state = (await threads.thread('thread_a').state()).toText()
  for (const letter of ['i', 'q', 't', 'w', 'r']) expect(state).toContain(big(letter))
  expect(verifyRecords(threads.thread('thread_a').stream, records).damage).toBeUndefined()
})

test('the live state, the replayed one and the one from a snapshot are the same, and another process reads them', async () => {
  const threads = await open()
  const { stream } = threads.thread('thread_a')
  await largeThread(threads)
  const live = await threads.store.load(stream)
  const text = (await threads.thread('thread_a').state()).toText()
  expect(stateHash((await threads.store.at(stream, live.version)).state)).toBe(stateHash(live))
  expect(await threads.store.snapshot(stream, true)).toBe(true)
  const [row] = threads.backend.tables.all<{ bytes: number }>('SELECT length(state) AS bytes FROM snapshots')
  await threads.close()
  expect(row?.bytes).toBeLessThan(100_000)
  await using again = await open()
  expect(stateHash(await again.store.load(stream))).toBe(stateHash(live))
  expect((await again.thread('thread_a').state()).toText()).toBe(text)
  expect(await again.run(agentOf([says('on')], [load, ask]), { thread: 'thread_a', input: 'more' })).toMatchObject({
    output: 'on',
  })
})

test('a request of a large call names its arguments in the content store', async () => {
  await using threads = await open()
  await largeThread(threads)
  const [row] = threads.backend.tables.all<{ value: string }>('SELECT value FROM threadlog_requests')
  const { arguments: given, arguments_ref: ref } = JSON.parse(row?.value ?? '{}')
  expect(given).toBeNull()
  const bytes = await threads.backend.content.get(ref as ContentRef)
  expect(JSON.parse(Buffer.from(bytes ?? []).toString())).toEqual({ q: big('q') })
})

test('a small value that looks like a reference stays a value', async () => {
  await using threads = await open()
  const looks = { $content: { digest: 'a'.repeat(64), media_type: 'application/json', size: 5 } }
  const wait = (
    await threads.run(agentOf([calls(['c', 'ask', { q: '' }]), says('ok')], [ask]), { thread: 'thread_b', input: 'x' })
  ).waits[0]
  await threads.submit({ provider: 'desk', continuation_id: wait?.id ?? '', result: looks })
  expect(await threads.run(agentOf([says('ok')], [ask]), { thread: 'thread_b' })).toMatchObject({ status: 'completed' })
  const state = await threads.thread('thread_b').state()
  expect(state.toText()).toContain(JSON.stringify(looks))
  expect((await keptOf(threads, 'thread_b')).map(({ type }) => type)).toEqual(['continuation.completed/1'])
})

test('a result can be looked at when its log is closed', async () => {
  const threads = await open()
  const { result } = await largeThread(threads)
  await threads.close()
  const again = await open()
  const later = await again.run(agentOf([says('on')], [load, ask]), { thread: 'thread_a', input: 'more' })
  await again.close()
  // Nothing that was loaded is left in memory by chance.
  setFlagsFromString('--expose-gc')
  await new Promise((resolve) => setImmediate(resolve))
  ;(runInNewContext('gc') as () => void)()
  expect(JSON.stringify(result.allMessages())).toContain(big('w'))
  expect(later.state?.toText()).toContain(big('w'))
})

test('a large imported state stands in the store and folds to its messages', async () => {
  await using threads = await open()
  const message = (content: string) => ({
    kind: 'request',
    parts: [{ part_kind: 'user-prompt', content, timestamp: '2026-01-01T00:00:00Z' }],
    timestamp: '2026-01-01T00:00:00Z',
  })
  const state = {
    schema_version: '1',
    thread_id: 'thread_i',
    message_history: Array.from({ length: 20 }, (_, i) => message(String(i % 10).repeat(100_000))),
    agent_context_state: { entries: {} },
    environment_states: {},
  }
  await threads.run(agentOf([says('ok')], []), { thread: 'thread_i', previousState: state, input: 'go on' })
  expect((await keptOf(threads, 'thread_i')).map(({ type }) => type)).toContain('thread.opened/1')
  await using again = await open()
  const text = (await again.thread('thread_i').state()).toText()
  for (let i = 0; i < 20; i++) expect(text).toContain(String(i % 10).repeat(100_000))
})

test('small values never touch the store', async () => {
  await using threads = await open()
  await threads.run(agentOf([says('ok')], []), { thread: 'thread_c', input: 'x'.repeat(60_000) })
  expect(threads.backend.tables.all('SELECT digest FROM content')).toEqual([])
})

describe('content that is gone or wrong', () => {
  /** Spoils the content that the first event of a type refers to, behind everybody's back. */
  async function spoil(type: string, sql: string): Promise<number> {
    const threads = await open()
    await largeThread(threads)
    const found = (await keptOf(threads)).find((each) => each.type === type)
    await threads.close()
    const db = new DatabaseSync(file)
    db.prepare(sql).run(found?.ref.digest ?? '')
    db.close()
    return found?.version ?? 0
  }
  const GONE = 'DELETE FROM content WHERE digest = ?'
  const CUT = 'DELETE FROM content WHERE part = 1 AND digest = ?'
  const WRONG = 'UPDATE content SET bytes = zeroblob(length(bytes)) WHERE part = 0 AND digest = ?'

  test.each([
    [GONE, 'content_missing', 'content-missing'],
    [CUT, 'content_missing', 'content-missing'],
    [WRONG, 'content_corrupt', 'content-mismatch'],
  ])('%s: %s names thread and version, verify says so, and other threads go on', async (sql, code, damage) => {
    const version = await spoil('model.responded/1', sql)
    await using threads = await open()
    const { stream } = threads.thread('thread_a')
    await expect(threads.thread('thread_a').state()).rejects.toMatchObject({ code, details: { stream, version } })
    expect(verifyRecords(stream, await eventsOf(threads, 'thread_a')).damage).toMatchObject({ code: damage, version })
    expect(await threads.run(agentOf([says('fine')], []), { thread: 'thread_z', input: 'x' })).toMatchObject({ output: 'fine' })
    // A run that needs it ends as failed, and is not tried for ever.
    const run = () => threads.run(agentOf([says('on')], []), { thread: 'thread_a', input: 'more' })
    expect(await run()).toMatchObject({ status: 'failed', failure: { code: 'agent_run_failed' } })
    const last = (await eventsOf(threads, 'thread_a')).at(-1)?.event
    expect(last?.type === 'run.failed/1' && last.data.details.value).toMatchObject({ cause: code })
  })

  test('content brought back heals the thread', async () => {
    const threads = await open()
    await largeThread(threads)
    const text = (await threads.thread('thread_a').state()).toText()
    const saved: Uint8Array[] = []
    for (const { ref } of await keptOf(threads)) saved.push((await threads.backend.content.get(ref)) as Uint8Array)
    await threads.close()
    const db = new DatabaseSync(file)
    db.exec('DELETE FROM content WHERE part = 0')
    db.close()
    await using again = await open()
    // The fold itself needs the requests of a thread: without one, it stands still.
    await expect(again.thread('thread_a').state()).rejects.toMatchObject({
      code: 'thread_quarantined',
      details: { code: 'content_missing', version: 4 },
    })
    for (const bytes of saved) await again.backend.content.put(bytes, 'application/json')
    expect((await again.thread('thread_a').state()).toText()).toBe(text)
  })
})

describe('a content store of the host', () => {
  function hostStore(): ContentStore & { kept: Map<string, Uint8Array> } {
    const kept = new Map<string, Uint8Array>()
    return {
      kept,
      put: async (bytes, media_type) => {
        const digest = sha256Hex(bytes)
        kept.set(digest, new Uint8Array(bytes))
        return { digest, size: bytes.byteLength, media_type }
      },
      get: async ({ digest }) => kept.get(digest),
    }
  }

  test('gets every large value before its event, and gives back what the log has lost', async () => {
    const content = hostStore()
    const threads = await open({ content })
    await largeThread(threads)
    const refs = (await keptOf(threads)).map(({ ref }) => ref.digest)
    const text = (await threads.thread('thread_a').state()).toText()
    await threads.close()
    expect(new Set(content.kept.keys())).toEqual(new Set(refs))
    const db = new DatabaseSync(file)
    db.exec('DELETE FROM content')
    db.close()
    await using again = await open({ content })
    expect((await again.thread('thread_a').state()).toText()).toBe(text)
  })

  test('that fails lets no event out', async () => {
    const content = { ...hostStore(), put: () => Promise.reject(new Error('away')) }
    await using threads = await open({ content })
    await expect(threads.run(agentOf([says('no')], []), { thread: 'thread_a', input: big('i') })).rejects.toThrow('away')
    expect(await eventsOf(threads, 'thread_a')).toEqual([])
  })

  test('is given to the function that opens the log', async () => {
    await using threads = await open()
    await expect(openThreadlog({ log: threads.backend, content: hostStore() })).rejects.toMatchObject({ code: 'option_invalid' })
  })
})
