import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { jsonDigest } from '../../src/base/index.ts'
import { eventTypes } from '../../src/events/index.ts'
import { openThreadlog } from '../../src/index.ts'
import { openMemoryLog } from '../../src/log/index.ts'
import { FOLD_VERSION, stateHash, type ThreadState, verifyRecords } from '../../src/projections/index.ts'
import { commitsOf, expected, outcomeOf, print, readLogs, recordedLogs, writeLogs } from '../support/recorded/recorded-log.ts'
import { scenarios } from '../support/recorded/scenarios.ts'

// Known failures, row 104: a released rule of the fold was changed in place, and logs that had been folded with it came out as something
// else. Here what every recorded log folds to, after each of its events, is recorded with it: a fold that says otherwise needs a
// FOLD_VERSION of its own, and what the old logs fold to under that is recorded too.

const logs = readLogs()
const HOW = 'raise FOLD_VERSION and run node scripts/record-log.ts'

test('every scenario is recorded for this fold version, and together they hold every type of event', () => {
  const here = logs.filter(({ manifest }) => manifest.fold_version === FOLD_VERSION)
  expect(here.map(({ manifest }) => manifest.name).sort(), HOW).toEqual(Object.keys(scenarios).sort())
  const types = new Set(here.flatMap(({ records }) => records.map((record) => record.event?.type as string)))
  expect([...types].sort(), 'add a scenario that leads to it').toEqual([...eventTypes].sort())
})

describe.each(logs)('$id', (log) => {
  const { records, manifest } = log
  test('folds to the recorded states', () => {
    expect(outcomeOf(records), HOW).toEqual(expected(log))
  })

  test('is whole', () => {
    const { damage, events, head } = verifyRecords(manifest.stream, records)
    expect({ damage, events, head: head.hash }).toEqual({ damage: undefined, events: manifest.events, head: manifest.head })
  })

  test('opens as a log, and its thread is what it was', async () => {
    const backend = await openMemoryLog()
    for (const commit of commitsOf(records)) expect((await backend.events.append(commit)).accepted).toBe(true)
    const threads = await openThreadlog({ log: backend, application: 'recorded' })
    const { state } = await threads.store.fold(manifest.stream)
    expect(stateHash(state)).toBe(expected(log)?.state)
    if (state.identity) {
      const harness = await threads.thread(state.identity.thread).state()
      expect(jsonDigest(harness.toJSON() as never)).toBe(expected(log)?.harness_state)
    } else expect(state.reservation ?? state.early).toBeDefined()
    await threads.close()
    await backend.close()
  })
})

describe('the recorder', () => {
  const folder = mkdtempSync(join(tmpdir(), 'threadlog-recorded-'))
  const directory = new URL(`${pathToFileURL(folder).href}/`)
  afterEach(() => rmSync(folder, { recursive: true, force: true }))
  const file = new URL(`${FOLD_VERSION}/text.ndjson`, directory)

  test('gives back what it wrote, and never writes over it unless nothing was released', () => {
    const { records } = logs.find(({ manifest }) => manifest.name === 'text')!
    const content = print('text', records, '9.9.9')
    expect(writeLogs(new Map([['text', content]]), { directory })).toEqual({ written: ['text'], kept: [] })
    expect(readLogs(directory)[0]!.records).toEqual(records)
    expect(readLogs(directory)[0]!.manifest).toMatchObject({ package: '9.9.9', fold_version: FOLD_VERSION })
    expect(writeLogs(new Map([['text', 'other']]), { directory })).toEqual({ written: [], kept: ['text'] })
    expect(readFileSync(file, 'utf8')).toBe(content)
    writeLogs(new Map([['text', 'other']]), { directory, unreleased: true })
    expect(readFileSync(file, 'utf8')).toBe('other')
  })
})

describe('a change of the fold', () => {
  afterEach(() => {
    vi.doUnmock('../../src/projections/evolve.ts')
    vi.doUnmock('../../src/projections/state.ts')
    vi.resetModules()
  })

  type Change = (state: ThreadState, initial: ThreadState) => ThreadState

  /** The recorded logs as a build folds them that differs in `change` and has this fold version. */
  async function otherBuild(change: Change, foldVersion = FOLD_VERSION) {
    vi.resetModules()
    vi.doMock('../../src/projections/state.ts', async (original) => ({
      ...(await original<object>()),
      FOLD_VERSION: foldVersion,
    }))
    vi.doMock('../../src/projections/evolve.ts', async (original) => {
      const { evolve } = await original<typeof import('../../src/projections/evolve.ts')>()
      const { initial } = await import('../../src/projections/state.ts')
      return { evolve: (...args: Parameters<typeof evolve>) => change(evolve(...args), initial) }
    })
    return import('../support/recorded/recorded-log.ts')
  }
  const changes: [string, Change][] = [
    [
      'in the count of failed requests',
      (s) => (s.run?.modelFailures ? { ...s, run: { ...s.run, modelFailures: 1 + s.run.modelFailures } } : s),
    ],
    ['in commands', (s, initial) => ({ ...s, commands: initial.commands })],
    ['in ended runs', (s, initial) => ({ ...s, runs: initial.runs })],
    [
      'in waits while they are open',
      (s) => ({ ...s, waits: new Map([...s.waits].map(([id, wait]) => [id, { ...wait, ready: false }])) }),
    ],
    ['in waits that ended', (s, initial) => ({ ...s, closedWaits: initial.closedWaits })],
    ['in the open calls', (s) => (s.batch ? { ...s, batch: { ...s.batch, origin: '' } } : s)],
    ['in capabilities', (s) => ({ ...s, capabilities: new Map() })],
    ['in the order of keys', (s) => ({ ...s, capabilities: new Map([...s.capabilities].reverse()) })],
    ['in a time', (s) => (s.run ? { ...s, run: { ...s.run, updatedAt: 0 } } : s)],
    ['in what is queued', (s) => ({ ...s, requested: s.requested.map((run) => ({ ...run, commandId: null })) })],
    ['in a field it adds', (s) => ({ ...s, note: 1 }) as ThreadState],
  ]

  test.each(changes)('%s is noticed', async (_, change) => {
    const build = await otherBuild(change)
    const differing = build.readLogs().filter((log) => {
      return JSON.stringify(build.outcomeOf(log.records)) !== JSON.stringify(build.expected(log))
    })
    expect(differing.length).toBeGreaterThan(0)
  })

  test('nothing is noticed of a build that folds alike', async () => {
    const build = await otherBuild((state) => ({ ...state }))
    for (const log of build.readLogs()) expect(build.outcomeOf(log.records)).toEqual(build.expected(log))
  })

  test('with a fold version of its own asks for what old logs fold to under it, once', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'threadlog-recorded-'))
    const directory = new URL(`${pathToFileURL(folder).href}/`)
    const old = logs.filter(({ id }) => ['cancel', 'text'].some((name) => id === `${FOLD_VERSION}/${name}`))
    writeLogs(
      new Map(old.map(({ id, manifest }) => [manifest.name, readFileSync(new URL(`${id}.ndjson`, recordedLogs), 'utf8')])),
      { directory },
    )
    const next = await otherBuild((state, initial) => ({ ...state, runs: initial.runs }), FOLD_VERSION + 1)
    for (const log of next.readLogs(directory)) expect(next.expected(log, directory)).toBeUndefined()
    const fresh = new Map([['text', next.print('text', next.readLogs(directory)[0]!.records, '9.9.9')]])
    expect(next.writeLogs(fresh, { directory }).written).toEqual(['text', ...old.map(({ id }) => id)])
    for (const log of next.readLogs(directory)) expect(next.outcomeOf(log.records)).toEqual(next.expected(log, directory))
    const file = new URL(`${FOLD_VERSION + 1}/refolded.json`, directory)
    const before = readFileSync(file, 'utf8')
    expect(next.writeLogs(fresh, { directory })).toEqual({ written: [], kept: ['text'] })
    expect(readFileSync(file, 'utf8')).toBe(before)
    writeFileSync(file, before.replace(/"state": "./, '"state": "x'))
    const wrong = next
      .readLogs(directory)
      .filter((log) => next.outcomeOf(log.records).state !== next.expected(log, directory)?.state)
    expect(wrong).toHaveLength(1)
    rmSync(folder, { recursive: true, force: true })
  })
})
