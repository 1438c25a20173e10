import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { openLog } from '../../src/log/index.ts'
import { FAULTS, LEASE_FAULTS } from '../support/continuation-faults.ts'
import { hastyClock } from '../support/continuation-play.ts'
import { type Open, play } from '../support/continuation-worlds.ts'

// S11: random operations on replicas of one store, alone and at once, answer as the reference model answers, and leave what it leaves.

/** Times as many worlds. */
const MORE = Number(process.env['THREADLOG_PROP_FACTOR'] ?? 1)

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

  it.each(Object.entries(FAULTS).filter(([name]) => !LEASE_FAULTS.includes(name)))('would not be, if %s', async (_, spoil) => {
    await expect(play(memory, { worlds: 500, seed: 1, spoil })).rejects.toThrow('Property failed')
  })
})
