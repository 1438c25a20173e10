import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, test } from 'vitest'
import { type LogBackend, openLog } from '../../src/log/index.ts'
import { type LogPlace, submitCases } from '../support/submit-cases.ts'

const cleanup: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanup.splice(0).reverse()) await step()
})

const opened = (log: LogBackend): LogBackend => {
  cleanup.push(() => log.close())
  return log
}

const memory: LogPlace = { fresh: async () => opened(await openLog('memory')), again: async (log) => log }

const files = new WeakMap<LogBackend, string>()
const sqlite: LogPlace = {
  fresh: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'threadlog-'))
    cleanup.push(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'log.db')
    const log = opened(await openLog(`sqlite:${file}`))
    files.set(log, file)
    return log
  },
  again: async (log) => opened(await openLog(`sqlite:${files.get(log)}`)),
}

describe.each(Object.entries({ memory, sqlite }))('a tool that submits, on %s', (_, place) => {
  test.each(Object.entries(submitCases))('%s', (_name, body) => body(place), 30_000)
})
