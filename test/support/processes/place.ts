import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach } from 'vitest'

/** A folder for one test: the log file, the ledger of effects, and the address of the log. */
export interface Place {
  file: string
  ledger: string
  log: `sqlite:${string}`
}

/** For the test file that calls it: places that are removed after each test, unless THREADLOG_KEEP is set. */
export function places(): () => Place {
  const folders: string[] = []
  afterEach(() => {
    if (process.env['THREADLOG_KEEP']) console.log(`kept: ${folders.join(' ')}`)
    else for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
  })
  return () => {
    const folder = mkdtempSync(join(tmpdir(), 'threadlog-'))
    folders.push(folder)
    const file = join(folder, 'log.db')
    return { file, ledger: join(folder, 'ledger.jsonl'), log: `sqlite:${file}` }
  }
}

/** The log as another program sees it: plain SQL, no part of this package. */
export function outsider(file: string): DatabaseSync {
  return new DatabaseSync(file, { timeout: 10_000 })
}

/** Numbers from 0 to 1 that follow from a seed (mulberry32). */
export function seeded(seed: number): () => number {
  let a = seed >>> 0
  return () => {
    a = (a + 0x6d2b79f5) >>> 0
    let t = Math.imul(a ^ (a >>> 15), a | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
