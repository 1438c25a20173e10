import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

const SUFFIXES = ['', '-wal', '-shm']

/** Addresses of new logs, one for each measurement, beside the given one. Only files made here are removed. */
export class Logs {
  readonly kind: 'sqlite' | 'memory'
  readonly #file: string
  readonly #made = new Set<string>()
  #count = 0

  /** @param address `memory`, or `sqlite:` and the path the names are made from */
  constructor(address: string) {
    const [, file] = /^sqlite:(.+)$/.exec(address) ?? []
    if (file === undefined && address !== 'memory') throw new Error(`--log ${address}: expected memory or sqlite:<path>`)
    this.kind = file === undefined ? 'memory' : 'sqlite'
    this.#file = file ?? ''
    if (file !== undefined) mkdirSync(dirname(file), { recursive: true })
  }

  /** The folder of the logs; undefined in memory. */
  get folder(): string | undefined {
    return this.kind === 'memory' ? undefined : dirname(this.#file)
  }

  /** Path of a file that does not exist yet; `:memory:` in memory. */
  newFile(): string {
    if (this.kind === 'memory') return ':memory:'
    for (;;) {
      const file = `${this.#file.replace(/\.db$/, '')}-${process.pid}-${++this.#count}.db`
      if (existsSync(file)) continue
      this.#made.add(file)
      return file
    }
  }

  /** Address of a log that does not exist yet. */
  next(): string {
    return this.kind === 'memory' ? 'memory' : `sqlite:${this.newFile()}`
  }

  newFolder(name: string): string {
    const folder = join(dirname(this.#file || join(process.cwd(), '.tmp/bench/x')), `${name}-${process.pid}-${++this.#count}`)
    mkdirSync(folder, { recursive: true })
    this.#made.add(folder)
    return folder
  }

  remove(): void {
    for (const file of this.#made) for (const suffix of SUFFIXES) rmSync(file + suffix, { force: true, recursive: true })
    this.#made.clear()
  }
}
