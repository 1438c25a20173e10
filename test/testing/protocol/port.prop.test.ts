import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Appended, EventLog } from '../../../src/log/index.ts'
import { openLog, openMemoryLog } from '../../../src/log/index.ts'
import { runPortModel } from '../../../src/testing/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadlog-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const seeds = [1, 2, 3, 4]

describe('the protocol model on a real log', () => {
  test.each(seeds)('memory, seed %i', async (seed) => {
    await using log = await openMemoryLog()
    const report = await runPortModel({ open: () => log.events, seed, steps: 1_000 })
    expect(report.answers['accepted']).toBeGreaterThan(100)
    expect(report.commits.refused).toBeGreaterThan(20)
    expect(Object.keys(report.faults)).toHaveLength(5)
  })

  test.each(seeds)('file, seed %i', async (seed) => {
    await using log = await openLog(`sqlite:${join(folder, `${seed}.db`)}`)
    await runPortModel({ open: () => log.events, seed, steps: 400 })
  })

  test('one file through two connections', async () => {
    const url = `sqlite:${join(folder, 'two.db')}`
    await using one = await openLog(url)
    await using two = await openLog(url)
    await runPortModel({ open: () => alternating(one.events, two.events), seed: 5, steps: 600 })
  })
})

/** Every call goes to the other log than the one before. */
function alternating(...logs: [EventLog, EventLog]): EventLog {
  let turn = 0
  return new Proxy(logs[0], {
    get(_, name: keyof EventLog) {
      const log = logs[turn++ % 2] as EventLog
      const value = log[name]
      return typeof value === 'function' ? value.bind(log) : value
    },
  })
}

/** The log with one of its methods replaced. */
const spoilt = (log: EventLog, change: (log: EventLog) => Partial<EventLog>): EventLog => {
  const changed = change(log)
  return new Proxy(log, {
    get(_, name: keyof EventLog) {
      const value = changed[name] ?? log[name]
      return typeof value === 'function' ? value.bind(log) : value
    },
  })
}

const run = async (change: (log: EventLog) => Partial<EventLog>) => {
  await using log = await openMemoryLog()
  await runPortModel({ open: () => spoilt(log.events, change), seed: 1, steps: 300, patience: 300 })
}

describe('a fault planted in a log is found', () => {
  test('the second copy of an accepted commit is called refused', async () => {
    const once = (log: EventLog) => {
      const sent = new Set<string>()
      const append: EventLog['append'] = async (commit) => {
        const answer: Appended = await log.append(commit)
        return sent.size === sent.add(commit.id).size ? { ...answer, accepted: false } : answer
      }
      return { append }
    }
    await expect(run(once)).rejects.toThrow(/answer-contradicted|applied-twice/)
  })

  test('an acknowledged commit is called accepted', async () => {
    const all = (log: EventLog) => ({
      append: async (commit: Parameters<EventLog['append']>[0]) => ({ ...(await log.append(commit)), accepted: true }),
    })
    await expect(run(all)).rejects.toThrow('answer-contradicted')
  })

  test('the barrier does not move', async () => {
    const still = (log: EventLog) => {
      let first: Awaited<ReturnType<EventLog['barrier']>> | undefined
      return { barrier: async () => (first ??= await log.barrier()) }
    }
    await expect(run(still)).rejects.toThrow('negative-untrue')
  })

  test('a follower that starts again misses a record', async () => {
    const late = (log: EventLog) => ({
      follow: (options: Parameters<EventLog['follow']>[0]) => {
        const from = new Map(
          [...(options.from ?? [])].map(([partition, offset]) => [partition, offset > 5n ? offset + 1n : offset]),
        )
        return log.follow({ ...options, from })
      },
    })
    await expect(run(late)).rejects.toThrow('readers-differ')
  })
})
