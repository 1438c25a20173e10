import { isThreadlogError } from '../base/index.ts'
import type { StreamKey } from '../events/index.ts'
import type { EventLog, RecordedEvent } from '../log/index.ts'

type Listener = (record: RecordedEvent) => void

const PAUSE_MS = 100

/**
 * One follower of the log for a whole process: tells who asked about a stream, or about all, of each accepted event. A condition that
 * passes (a locked file) is waited out; what does not pass ends the following, and whoever waits for it is told by `ended`.
 */
export class Tail {
  readonly #stop = new AbortController()
  readonly #streams = new Map<StreamKey, Set<Listener>>()
  readonly #all = new Set<Listener>()
  readonly #ending = new Set<() => void>()
  readonly #done: Promise<void>
  /** Behind the last event told; empty before the first. */
  readonly #next = new Map<number, bigint>()
  #closed = false

  constructor(log: EventLog) {
    this.#done = this.#follow(log).finally(() => {
      this.#closed = true
      for (const listener of this.#ending) listener()
    })
  }

  async #follow(log: EventLog): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        for await (const records of log.follow({
          ...(this.#next.size > 0 ? { from: this.#next } : {}),
          signal: this.#stop.signal,
        }))
          this.#tell(records)
        return
      } catch (error) {
        if (!isThreadlogError(error) || error.disposition !== 'retry') return
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      }
    }
  }

  #tell(records: readonly RecordedEvent[]): void {
    for (const record of records) {
      const { partition, offset } = record.position
      this.#next.set(partition, offset + 1n)
      for (const listener of this.#all) listener(record)
      for (const listener of this.#streams.get(record.stream) ?? []) listener(record)
    }
  }

  get closed(): boolean {
    return this.#closed || this.#stop.signal.aborted
  }

  /** Resolves when following has ended, by `close` or because the log failed. */
  get ended(): Promise<void> {
    return this.#done
  }

  /** Calls `listener` when following ends; at once if it has. The answer takes it back. */
  onEnd(listener: () => void): () => void {
    if (this.#closed) listener()
    else this.#ending.add(listener)
    return () => this.#ending.delete(listener)
  }

  /** Listens to one stream, or to all (`undefined`), from now on. The answer stops it. Listeners must not throw. */
  on(stream: StreamKey | undefined, listener: Listener): () => void {
    const listeners = stream === undefined ? this.#all : (this.#streams.get(stream) ?? new Set<Listener>())
    if (stream !== undefined) this.#streams.set(stream, listeners)
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
      if (stream !== undefined && listeners.size === 0 && this.#streams.get(stream) === listeners) this.#streams.delete(stream)
    }
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#done
  }
}
