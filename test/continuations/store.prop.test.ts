import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { openLog } from '../../src/log/index.ts'
import { hastyClock, Play, type Store } from '../support/continuation-play.ts'
import type { Step } from '../support/continuation-steps.ts'

// S11: random operations on replicas of one store, alone and at once, answer as the reference model answers, and leave what it leaves.

const MORE = Number(process.env['THREADLOG_PROP_FACTOR'] ?? 1)
const SEED = process.env['THREADLOG_PROP_SEED'] === undefined ? undefined : Number(process.env['THREADLOG_PROP_SEED'])
const STEPS = 40
const steps: fc.Arbitrary<Step[]> = fc.array(fc.array(fc.nat(99_999), { minLength: 40, maxLength: 40 }), {
  minLength: 10,
  maxLength: STEPS,
  size: 'max',
})

interface Ground {
  replicas: Store[]
  close(): Promise<void>
}
type Open = (onlyAwaited: boolean, haste: number) => Promise<Ground>

const threadlogs = async (logs: Parameters<typeof openThreadlog>[0][], onlyAwaited: boolean, after: () => Promise<void>) => {
  const opened: Awaited<ReturnType<typeof openThreadlog>>[] = []
  for (const o of logs) opened.push(await openThreadlog(o))
  const close = async () => {
    for (const threads of opened) await threads.close()
    await after()
  }
  return { replicas: opened.map((threads) => threads.continuationStore({ onlyAwaited })), close }
}

const memory: Open = async (onlyAwaited, haste) => {
  const log = await openLog('memory')
  const clock = hastyClock(() => haste)
  return threadlogs(
    [
      { log, clock },
      { log, clock },
    ],
    onlyAwaited,
    () => log.close(),
  )
}

const sqlite: Open = async (onlyAwaited, haste) => {
  const folder = mkdtempSync(join(tmpdir(), 'threadlog-'))
  const log = `sqlite:${join(folder, 'log.db')}` as const
  const clock = hastyClock(() => haste)
  const both = [
    { log, clock },
    { log, clock },
  ]
  return threadlogs(both, onlyAwaited, async () => rmSync(folder, { recursive: true }))
}

/** Plays worlds until one differs. @returns what happened how often */
async function play(
  open: Open,
  o: { worlds: number; seed?: number; spoil?: (store: Store) => Partial<Store> },
): Promise<Map<string, number>> {
  const seen = new Map<string, number>()
  const world = async (choices: Step[], onlyAwaited: boolean, haste: number) => {
    const ground = await open(onlyAwaited, haste)
    try {
      const replicas = ground.replicas.map((store) => spoilt(store, o.spoil?.(store) ?? {}))
      const game = new Play(replicas, onlyAwaited)
      for (const step of choices) await game.step(step)
      await game.finish()
      for (const [what, times] of game.seen) seen.set(what, (seen.get(what) ?? 0) + times)
    } finally {
      await ground.close()
    }
  }
  const property = fc.asyncProperty(steps, fc.boolean(), fc.constantFrom(1, 100, 2_500), world)
  const { worlds: numRuns, seed = SEED, spoil } = o
  // A fault that was planted need not be told briefly.
  await fc.assert(property, { numRuns, endOnFailure: spoil !== undefined, ...(seed === undefined ? {} : { seed }) })
  return seen
}

/** A store with some of its methods replaced. */
const spoilt = (store: Store, faults: Partial<Store>): Store =>
  new Proxy(store, {
    get: (target, name) => {
      const method: unknown = Reflect.get(faults, name) ?? Reflect.get(target, name, target)
      return typeof method === 'function' ? method.bind(target) : method
    },
  })

/** What a store could get wrong, each with the promise it breaks. */
const FAULTS: Record<string, (store: Store) => Partial<Store>> = {
  'a claim succeeds twice': (store) => ({
    claimContinuation: async (o) => {
      const found = await store.getProviderContinuation(o)
      return found?.record.status === 'claimed' ? found.record : store.claimContinuation(o)
    },
  }),
  'arm does not look at the revision': (store) => ({
    armContinuation: async (o) => {
      const found = await store.getProviderContinuation(o)
      return store.armContinuation({ ...o, expectedRevision: found?.record.revision ?? o.expectedRevision })
    },
  }),
  'an equal outcome is taken twice': (store) => ({
    resolveContinuation: (o) =>
      store.resolveContinuation(o).catch(async (error) => {
        const found = await store.getContinuationByExternalId({ ...o, applicationId: o.scope.applicationId })
        if (found && error.details?.same === true) return found.record
        throw error
      }),
  }),
  'an outcome of another schema is taken': (store) => ({
    resolveContinuation: async (o) => {
      const found = await store.getContinuationByExternalId({ ...o, applicationId: o.scope.applicationId })
      return store.resolveContinuation({ ...o, schemaId: found?.record.schemaId ?? o.schemaId })
    },
  }),
  'a wait is read through another user': (store) => ({
    getContinuation: async (o) =>
      (await store.getContinuation(o)) ??
      store.getContinuation({ ...o, scope: { ...o.scope, userId: o.scope.userId === 'ann' ? 'bob' : 'ann' } }),
  }),
  'a look-up does not care for the application': (store) => ({
    getContinuationByExternalId: async (o) =>
      (await store.getContinuationByExternalId(o)) ?? store.getContinuationByExternalId({ ...o, applicationId: 'shop' }),
  }),
  'the cursor of a list is part of the page': (store) => ({
    listPendingContinuations: async (o) => {
      const page = await store.listPendingContinuations(o)
      const all = await store.listPendingContinuations({ ...o, after: null, limit: 1_000 })
      return [...all.filter(({ record }) => record.continuationId === o.after), ...page].slice(0, o.limit)
    },
  }),
  'a deleted run keeps its waits and their external ids': () => ({ deleteRun: async () => {} }),
  'a replica shows what it saw first': (store) => {
    const first = new Map<string, Awaited<ReturnType<Store['getContinuation']>>>()
    return {
      getContinuation: async (o) => {
        const now = await store.getContinuation(o)
        if (now && !first.has(o.continuationId)) first.set(o.continuationId, now)
        return now && (first.get(o.continuationId) ?? null)
      },
    }
  },
}

describe('S11: a store on the log is the reference model', () => {
  it.each([
    ['two replicas on one log in memory', memory, 150],
    ['two replicas on one SQLite file', sqlite, 20],
  ] as const)(
    '%s',
    async (_, open, worlds) => {
      const seen = await play(open, { worlds: worlds * MORE })
      if (process.env['THREADLOG_PROP_CENSUS']) console.log([...seen].sort())
      // What did not happen was not compared.
      for (const what of ['claim', 'arm', 'resolve', 'suspend']) expect(seen.get(`${what} done`), what).toBeGreaterThan(0)
    },
    600_000,
  )

  it.each(Object.entries(FAULTS))('would not be, if %s', async (_, spoil) => {
    await expect(play(memory, { worlds: 500, seed: 1, spoil })).rejects.toThrow('Property failed')
  })
})
