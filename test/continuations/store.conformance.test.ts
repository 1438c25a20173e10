import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { type LogBackend, openLog } from '../../src/log/index.ts'
import { type ContinuationPlace, continuationCases, continuationConformance } from '../../src/testing/index.ts'
import { FAULTS, spoilt } from '../support/continuation-faults.ts'

const opened = async (log: `sqlite:${string}` | LogBackend) => {
  const threads = await openThreadlog({ log })
  return { store: threads.continuationStore(), close: () => threads.close() }
}

const memoryPlace = async (): Promise<ContinuationPlace & { log: LogBackend }> => {
  const log = await openLog('memory')
  return { log, open: () => opened(log), remove: () => log.close() }
}

const sqlitePlace = async (): Promise<ContinuationPlace> => {
  const folder = mkdtempSync(join(tmpdir(), 'threadlog-'))
  return { open: () => opened(`sqlite:${join(folder, 'log.db')}`), remove: async () => rmSync(folder, { recursive: true }) }
}

const api = { describe, test }
continuationConformance(api, { name: 'memory', traits: ['replicas', 'reasons', 'guarded', 'leases'], create: memoryPlace })
continuationConformance(api, {
  name: 'sqlite',
  traits: ['replicas', 'durable', 'reasons', 'guarded', 'leases'],
  create: sqlitePlace,
})

describe('the suite', () => {
  it('has cases for every trait; all of them apply to SQLite, all but those of durability to memory', () => {
    const needs = Object.values(continuationCases).flatMap((cases) => cases.map((entry) => entry.needs))
    expect(new Set(needs)).toEqual(new Set([undefined, 'replicas', 'durable', 'reasons', 'guarded', 'leases']))
    expect(needs.filter((trait) => trait === 'durable')).toHaveLength(1)
  })

  it.each(Object.entries(FAULTS))('fails, if %s', async (_, spoil) => {
    const bodies: (() => Promise<void>)[] = []
    const collect = {
      describe: (_name: string, body: () => void) => body(),
      test: (_name: string, body: () => Promise<void>) => bodies.push(body),
    }
    const create = async (): Promise<ContinuationPlace> => {
      const place = await memoryPlace()
      const open = async () => {
        const { store, close } = await opened(place.log)
        return { store: spoilt(store, spoil(store)), close }
      }
      return { ...place, open }
    }
    continuationConformance(collect, { name: 'spoilt', traits: ['replicas', 'reasons', 'guarded', 'leases'], create })
    const outcomes = await Promise.allSettled(bodies.map((body) => body()))
    expect(outcomes.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0)
  })
})
