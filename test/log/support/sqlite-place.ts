import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openLog } from '../../../src/log/index.ts'
import type { LogPlace } from '../../../src/testing/index.ts'

/** A folder of its own, removed with everything in it. */
export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'threadlog-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** A log file that does not exist yet, with writers from outside. */
export function sqlitePlace(): LogPlace {
  const folder = temporaryFolder()
  const file = join(folder.path, 'log.db')
  const url = `sqlite:${file}`
  return {
    open: () => openLog(url),
    remove: async () => folder.remove(),
    remote: { module: new URL('../../../src/log/index.ts', import.meta.url).href, url },
    external: { python: (value) => insertWithPython(file, value), javascript: async (value) => insertWithNode(file, value) },
    damage: async (stream, version, bytes) => writeRow(file, stream, version, bytes),
  }
}

const PYTHON = `
import sqlite3, sys
file, kind = sys.argv[1:]
value = sys.stdin.buffer.read()
log = sqlite3.connect(file)
with log:
    log.execute("INSERT INTO threadlog_results(value) VALUES (?)", (value if kind == "bytes" else value.decode(),))
log.close()
`

function insertWithPython(file: string, value: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const kind = typeof value === 'string' ? 'text' : 'bytes'
    const child = execFile('python3', ['-c', PYTHON, file, kind], (error) => (error === null ? resolve() : reject(error)))
    child.stdin?.end(value)
  })
}

function insertWithNode(file: string, value: string | Uint8Array): void {
  const database = new DatabaseSync(file, { timeout: 5_000 })
  database.prepare('INSERT INTO threadlog_results(value) VALUES (?)').run(value)
  database.close()
}

/** Puts a row into the events table past every check. */
export function writeRow(file: string, stream: string, version: number, bytes: Uint8Array): void {
  const database = new DatabaseSync(file, { timeout: 5_000 })
  database
    .prepare('INSERT INTO events(stream, version, value) SELECT id, ?, ? FROM streams WHERE key = ?')
    .run(version, bytes, Buffer.from(stream, 'hex'))
  database.close()
}
