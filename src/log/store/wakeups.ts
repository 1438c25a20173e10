import { type FSWatcher, watch } from 'node:fs'
import type { Connection } from './connection.ts'

/** What an iterator waits for: new events, or new records of a topic. */
export type Channel = 'events' | 'requests' | 'results' | 'receipts' | 'checkpoints'

/** How other processes' commits are noticed. */
export interface WakeupOptions {
  /** Watch the `-wal` file (default true). */
  watch?: boolean
  /** Milliseconds between two looks at the file's data version (default 50). */
  pollMs?: number
}

/** Looks after a change of the `-wal` file, in milliseconds: the file changes before the commit is visible. */
const LOOKS = [1, 2, 4]

/** Wakes waiting iterators: at once for commits of this process, by file watch and poll for those of others. */
export class Wakeups {
  readonly #connection: Connection
  readonly #onForeign: () => void
  readonly #waiting = new Map<Channel, Set<() => void>>()
  #dataVersion: number
  #poll: NodeJS.Timeout | undefined
  #watcher: FSWatcher | undefined
  #look: NodeJS.Timeout | undefined
  #count = 0
  #closed = false

  /** @param onForeign called after another process has committed */
  constructor(connection: Connection, onForeign: () => void) {
    this.#connection = connection
    this.#onForeign = onForeign
    this.#dataVersion = -1
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Begins to notice other processes. A log in memory has none. */
  observe(options: WakeupOptions): void {
    this.#check()
    this.#poll = setInterval(() => this.#check(), options.pollMs ?? 50).unref()
    if (options.watch === false) return
    try {
      this.#watcher = watch(`${this.#connection.file}-wal`, { persistent: false }, () => this.#lookAgain(0))
      this.#watcher.on('error', () => this.#watcher?.close())
    } catch {
      // No such file yet, or a file system without watching: the poll is enough.
    }
  }

  wake(channels: Iterable<Channel>): void {
    for (const channel of channels) {
      const waiting = this.#waiting.get(channel)
      if (waiting === undefined) continue
      this.#waiting.delete(channel)
      for (const resolve of waiting) resolve()
    }
  }

  /** Resolves at the next wake-up of the channel, when `signal` aborts, and when the log closes. */
  wait(channel: Channel, signal?: AbortSignal): Promise<void> {
    if (this.#closed || signal?.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const done = () => {
        this.#waiting.get(channel)?.delete(done)
        signal?.removeEventListener('abort', done)
        if (--this.#count === 0) this.#poll?.unref()
        resolve()
      }
      const waiting = this.#waiting.get(channel)
      if (waiting === undefined) this.#waiting.set(channel, new Set([done]))
      else waiting.add(done)
      signal?.addEventListener('abort', done, { once: true })
      // Somebody waits for other processes: the poll keeps this one alive.
      if (++this.#count === 1) this.#poll?.ref()
    })
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#poll)
    clearTimeout(this.#look)
    this.#watcher?.close()
    this.wake([...this.#waiting.keys()])
  }

  #lookAgain(step: number): void {
    if (this.#closed || (step === 0 && this.#look !== undefined)) return
    this.#look = setTimeout(() => {
      this.#look = undefined
      if (!this.#check() && step + 1 < LOOKS.length) this.#lookAgain(step + 1)
    }, LOOKS[step]).unref()
  }

  /** True when another connection has committed since the last look. A file locked just now is looked at again later. */
  #check(): boolean {
    if (this.#closed || this.#connection.closed) return false
    try {
      const dataVersion = this.#connection.dataVersion()
      if (dataVersion === this.#dataVersion) return false
      const first = this.#dataVersion === -1
      if (!first) this.#onForeign()
      this.#dataVersion = dataVersion
      if (first) return false
    } catch {
      return false
    }
    this.wake([...this.#waiting.keys()])
    return true
  }
}
