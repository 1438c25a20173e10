import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { countingIds, Payload, systemClock } from '../../src/base/index.ts'
import type { EventDraft } from '../../src/events/index.ts'
import { type EventLog, type LogBackend, openMemoryLog } from '../../src/log/index.ts'
import { type Decision, FOLD_VERSION, foldStream, stateHash, type ThreadState, ThreadStore } from '../../src/projections/index.ts'
import { ACTOR, encodeAt, encodeThread, recordsOf, threadOf } from '../support/legal-threads.ts'
import { json } from '../support/thread-drafts.ts'
import { ThreadScript } from '../support/thread-script.ts'

let backend: LogBackend
/** The same log without the wrapping. */
let log: EventLog
const reads: number[] = []
const appends: number[] = []
/** Runs before the next appends, one each: what another process does meanwhile. */
const meanwhile: (() => Promise<unknown>)[] = []

beforeEach(async () => {
  const inner = await openMemoryLog()
  log = inner.events
  reads.length = appends.length = meanwhile.length = 0
  const events = new Proxy(inner.events, {
    get(target, name) {
      if (name === 'read')
        return (stream: string, after = 0) => {
          reads.push(after)
          return target.read(stream, after)
        }
      if (name === 'append')
        return async (commit: Parameters<typeof target.append>[0]) => {
          appends.push(commit.base)
          await meanwhile.shift()?.()
          return target.append(commit)
        }
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  backend = new Proxy(inner, {
    get(target, name) {
      if (name === 'events') return events
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
})
afterEach(() => backend.close())

const open = () => ThreadStore.open({ backend, clock: systemClock, ids: countingIds() })

// A fixed walk of the model, long enough to suspend and resume.
const thread = threadOf(Array.from({ length: 60 }, (_, i) => [i * 37 + 11, i * 101 + 7] as const))
const { stream } = thread
const whole = foldStream(recordsOf(encodeThread(thread)))

async function fill(commits = encodeThread(thread)) {
  for (const commit of commits) await log.append(commit)
}

const note = (n: number): EventDraft => ({
  type: 'capability.written/1',
  data: { capability_id: `c-${n}`, version: '1', data: json(n) },
})
const decide =
  (...drafts: EventDraft[]) =>
  (state: ThreadState): Decision => ({
    drafts,
    context: { stream, now: 1_795_000_000_000 + state.version, actor: ACTOR, runId: null, attempt: null },
  })

/** A commit of somebody else on whatever the head is then. */
const rival = async () => {
  const head = await backend.events.head(stream)
  const commit = encodeAt(stream, head!, {
    drafts: [note(0)],
    time: 1_796_000_000_000 + head!.version,
    runId: null,
    attempt: null,
  })
  expect((await log.append(commit)).accepted).toBe(true)
}

describe('loading', () => {
  it('folds the log, and then only its tail', async () => {
    await fill()
    const store = await open()
    expect(stateHash(await store.load(stream))).toBe(stateHash(whole.state))
    expect(stateHash(await store.load(stream))).toBe(stateHash(whole.state))
    expect(reads).toEqual([0])
    await rival()
    expect((await store.load(stream)).version).toBe(whole.head.version + 1)
    expect(reads).toEqual([0, whole.head.version])
  })

  it('gives a stream without events as the initial state', async () => {
    expect((await (await open()).load(stream)).version).toBe(0)
  })

  it('tells the state at an earlier version', async () => {
    await fill()
    const { state } = await (await open()).at(stream, 5)
    expect(stateHash(state)).toBe(stateHash(foldStream(recordsOf(encodeThread(thread)).slice(0, 5)).state))
  })

  it('forgets threads beyond its capacity and folds them again', async () => {
    await fill()
    const other = new ThreadScript('other_1').open()
    await fill(other.commits)
    const store = await ThreadStore.open({ backend, clock: systemClock, ids: countingIds(), kept: { threads: 1, events: 1 } })
    for (const key of [stream, other.stream, stream]) await store.load(key)
    expect(reads).toEqual([0, 0, 0])
  })
})

describe('committing', () => {
  it('appends what was decided and gives the state behind it', async () => {
    await fill()
    const store = await open()
    const { state, commit } = await store.commit(stream, decide(note(1), note(2)))
    expect(commit?.records.length).toBe(2)
    expect(state.version).toBe(whole.head.version + 2)
    expect(stateHash(state)).toBe(stateHash(await (await open()).load(stream)))
  })

  it('appends nothing when nothing is decided', async () => {
    await fill()
    const store = await open()
    const before = appends.length
    expect((await store.commit(stream, () => undefined)).commit).toBeUndefined()
    expect((await store.commit(stream, decide())).commit).toBeUndefined()
    expect(appends.length).toBe(before)
  })

  it('keeps one commit in flight, so concurrent decisions never conflict', async () => {
    await fill()
    const store = await open()
    appends.length = 0
    await Promise.all(Array.from({ length: 20 }, (_, i) => store.commit(stream, decide(note(i)))))
    expect(appends).toEqual(Array.from({ length: 20 }, (_, i) => whole.head.version + i))
  })

  it('goes on after a decider that threw', async () => {
    await fill()
    const store = await open()
    const broken = store.commit(stream, () => {
      throw new Error('no')
    })
    const next = store.commit(stream, decide(note(1)))
    await expect(broken).rejects.toThrow('no')
    expect((await next).commit).toBeDefined()
  })

  it('decides again on what another process has appended', async () => {
    await fill()
    const store = await open()
    meanwhile.push(rival)
    const seen: number[] = []
    const { state } = await store.commit(stream, (current) => {
      seen.push(current.version)
      return decide(note(1))(current)
    })
    expect(seen).toEqual([whole.head.version, whole.head.version + 1])
    expect(state.version).toBe(whole.head.version + 2)
    expect(state.capabilities.has('c-0') && state.capabilities.has('c-1')).toBe(true)
  })

  it('gives up after as many conflicts as allowed, and says that trying again may help', async () => {
    await fill()
    const store = await open()
    meanwhile.push(rival, rival, rival)
    const seen: number[] = []
    const stubborn = (state: ThreadState) => {
      seen.push(state.version)
      return decide(note(1))(state)
    }
    const running = store.commit(stream, stubborn, 3)
    await expect(running).rejects.toMatchObject({ code: 'contention', disposition: 'retry', details: { stream } })
    expect(seen).toEqual([0, 1, 2].map((n) => whole.head.version + n))
  })
})

describe('repair', () => {
  // A claim of a wait that does not exist.
  const illegal: EventDraft = { type: 'continuation.claimed/1', data: { continuation_id: 'nobody', revision: 1 } }
  const damage = async (...drafts: EventDraft[]) => {
    const commit = encodeAt(stream, whole.head, {
      drafts: [illegal, ...drafts],
      time: 1_795_000_000_000,
      runId: null,
      attempt: null,
    })
    expect((await log.append(commit)).accepted).toBe(true)
  }
  const at = whole.head.version + 1

  it('is needed before a quarantined thread loads or takes a decision; other threads go on', async () => {
    await fill()
    await damage()
    const store = await open()
    const stopped = { code: 'thread_quarantined', disposition: 'reject', details: { version: at, code: 'event_unfoldable' } }
    await expect(store.load(stream)).rejects.toMatchObject(stopped)
    await expect(store.commit(stream, decide(note(1)))).rejects.toMatchObject(stopped)
    expect(await store.snapshot(stream, true)).toBe(false)
    const other = new ThreadScript('other_1').open()
    await fill(other.commits)
    expect((await store.load(other.stream)).version).toBe(1)
  })

  it('skips the event and keeps those behind it, in every process', async () => {
    await fill()
    await damage(note(7))
    const [store, elsewhere] = [await open(), await open()]
    await expect(elsewhere.load(stream)).rejects.toMatchObject({ code: 'thread_quarantined' })
    await store.repair(stream, at, 'tested', ACTOR)
    for (const one of [store, elsewhere]) {
      const state = await one.load(stream)
      expect(state.version).toBe(at + 2)
      expect(state.capabilities.get('c-7')?.data.value).toBe(7)
    }
    expect((await store.commit(stream, decide(note(1)))).state.version).toBe(at + 3)
  })

  it('is decided again when the thread moves meanwhile', async () => {
    await fill()
    await damage()
    const store = await open()
    meanwhile.push(rival)
    await store.repair(stream, at, 'tested', ACTOR)
    expect((await store.load(stream)).capabilities.has('c-0')).toBe(true)
  })

  it('is refused where nothing is broken', async () => {
    await fill()
    await expect((await open()).repair(stream, 1, 'tested', ACTOR)).rejects.toMatchObject({ code: 'not_quarantined' })
  })
})

describe('snapshots', () => {
  const cut = encodeThread(thread).length - 5
  const version = encodeThread(thread)
    .slice(0, cut)
    .reduce((sum, commit) => sum + commit.records.length, 0)

  /** A snapshot of the first commits, then the rest of the log. */
  async function snapshotted() {
    const commits = encodeThread(thread)
    await fill(commits.slice(0, cut))
    const store = await open()
    await store.load(stream)
    expect(await store.snapshot(stream, true)).toBe(true)
    await fill(commits.slice(cut))
    reads.length = 0
  }
  const change = (sql: string, ...values: (string | number | Uint8Array)[]) => backend.cache((tx) => tx.run(sql, ...values))

  it('shorten a load: from the snapshot’s last event on', async () => {
    await snapshotted()
    const state = await (await open()).load(stream)
    expect(stateHash(state)).toBe(stateHash(whole.state))
    expect(reads).toEqual([version - 1])
  })

  it('are written when the tail is long enough, and not again for little', async () => {
    const script = new ThreadScript('long_1').open()
    for (let i = 0; i < 62; i++) script.add(note(i % 3))
    await fill(script.commits)
    const store = await open()
    await store.load(script.stream)
    expect(await store.snapshot(script.stream)).toBe(false)
    await fill(script.add(note(1)).commits.slice(-1))
    await store.load(script.stream)
    expect(await store.snapshot(script.stream)).toBe(true)
    await fill(script.add(note(2)).commits.slice(-1))
    await store.load(script.stream)
    expect(await store.snapshot(script.stream)).toBe(false)
    expect(await store.snapshot('0'.repeat(64), true)).toBe(false)
  })

  it('are thought of once in many events, for a state is long', async () => {
    const script = new ThreadScript('long_2').open()
    const store = await open()
    const add = async (...ids: number[]) => {
      const from = script.commits.length
      for (const id of ids) script.add(note(id))
      await fill(script.commits.slice(from))
      await store.load(script.stream)
      return store.snapshot(script.stream)
    }
    await fill(script.commits)
    const many = Array.from({ length: 64 }, (_, i) => i)
    expect(await add(...many.map(() => 1))).toBe(true)
    expect(await add(...many.map(() => 1))).toBe(false)
    expect(await add(...many.slice(1))).toBe(false)
    expect(await add(1)).toBe(true)
  })

  it.each([
    ['of another fold version', () => change('UPDATE snapshots SET fold_version = ?', FOLD_VERSION + 1)],
    ['whose hash the log does not have', () => change('UPDATE snapshots SET hash = ?', 'e'.repeat(64))],
    ['whose version and hash do not belong together', () => change('UPDATE snapshots SET version = version - 1')],
    ['from beyond the end of the log', () => rewrite((state) => ({ ...state, version: 9_999 }), 9_999)],
    [
      'just beyond the end of the log',
      () => rewrite((state) => ({ ...state, version: whole.head.version + 1 }), whole.head.version + 1),
    ],
    [
      'with an id of its own that fits no event',
      () => rewrite((state) => ({ ...state, hash: 'e'.repeat(64) }), version, 'e'.repeat(64)),
    ],
    ['that is no JSON', () => change('UPDATE snapshots SET state = ?', Buffer.from('{"fold_version":'))],
    [
      'that holds something else',
      () => change('UPDATE snapshots SET state = ?', Buffer.from(JSON.stringify({ fold_version: FOLD_VERSION }))),
    ],
  ])('%s are ignored', async (_, spoil) => {
    await snapshotted()
    await spoil()
    reads.length = 0
    const state = await (await open()).load(stream)
    expect(stateHash(state)).toBe(stateHash(whole.state))
    expect(reads.at(-1)).toBe(0)
  })

  /** Replaces the snapshot by a well-formed one that says something else. */
  async function rewrite(edit: (state: { [key: string]: unknown }) => object, at: number, hash?: string) {
    const row = backend.tables.get<{ state: Uint8Array }>('SELECT state FROM snapshots')!
    const state = edit(JSON.parse(Buffer.from(row.state).toString()))
    await change('UPDATE snapshots SET state = ?, version = ?', Payload.of(JSON.parse(JSON.stringify(state))).bytes, at)
    if (hash !== undefined) await change('UPDATE snapshots SET hash = ?', hash)
  }

  it('are of no use to a repair that comes after them', async () => {
    await snapshotted()
    const commit = encodeAt(stream, whole.head, {
      ...{ drafts: [{ type: 'continuation.claimed/1', data: { continuation_id: 'nobody', revision: 1 } }] as EventDraft[] },
      ...{ time: 1_795_000_000_000, runId: null, attempt: null },
    })
    await log.append(commit)
    await (await open()).repair(stream, whole.head.version + 1, 'tested', ACTOR)
    const state = await (await open()).load(stream)
    expect(state.version).toBe(whole.head.version + 2)
  })
})
