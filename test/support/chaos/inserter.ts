import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { outsider } from '../processes/place.ts'

/** Writes results as another program does. */
export interface Producer {
  readonly language: string
  /** Each insert makes exactly one record. */
  readonly once: boolean
  insert(key: string, value: Uint8Array): Promise<void>
  close(): Promise<void>
}

/** Through the SQL view: Python if there is one, else plain SQL from here. */
export function startInserter(file: string): Producer {
  const python = spawnSync('python3', ['-c', 'import sqlite3'])
  return python.status === 0 ? new Python(file) : new Plain(file)
}

class Python implements Producer {
  readonly language = 'python'
  readonly once = true
  readonly #process: ChildProcess
  readonly #waiting = new Map<string, () => void>()
  readonly #exited: Promise<void>

  constructor(file: string) {
    const script = fileURLToPath(new URL('insert.py', import.meta.url))
    this.#process = spawn('python3', [script, file], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#exited = new Promise((resolve) => this.#process.once('exit', () => resolve()))
    createInterface({ input: this.#process.stdout! }).on('line', (key) => {
      this.#waiting.get(key)?.()
      this.#waiting.delete(key)
    })
  }

  insert(key: string, value: Uint8Array): Promise<void> {
    this.#process.stdin!.write(`${JSON.stringify({ key, value: Buffer.from(value).toString('base64') })}\n`)
    const done = new Promise<void>((resolve) => this.#waiting.set(key, resolve))
    const gone = this.#exited.then(() => {
      throw new Error('The Python producer has ended.')
    })
    return Promise.race([done, gone])
  }

  async close(): Promise<void> {
    this.#process.stdin!.end()
    await this.#exited
  }
}

class Plain implements Producer {
  readonly language = 'node'
  readonly once = true
  readonly #database: DatabaseSync

  constructor(file: string) {
    this.#database = outsider(file)
    this.#database.exec('PRAGMA busy_timeout = 0')
  }

  async insert(key: string, value: Uint8Array): Promise<void> {
    for (;;)
      try {
        this.#database.prepare('INSERT INTO threadlog_results(key, value) VALUES (?, ?)').run(key, value)
        return
      } catch (error) {
        if ((error as { errcode?: number }).errcode !== 5) throw error
        await delay(2)
      }
  }

  async close(): Promise<void> {
    this.#database.close()
  }
}
