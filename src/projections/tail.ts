import type { StreamKey } from '../events/index.ts'
import type { EventLog, RecordedEvent } from '../log/index.ts'

type Listener = (record: RecordedEvent) => void

/** One follower of the log for a whole process: tells who asked about a stream, or about all, of each accepted event. */
export class Tail {
  readonly #stop = new AbortController()
  readonly #streams = new Map<StreamKey, Set<Listener>>()
  readonly #all = new Set<Listener>()
  readonly #done: Promise<void>

  constructor(log: EventLog) {
    this.#done = this.#follow(log)
  }

  async #follow(log: EventLog): Promise<void> {
    for await (const records of log.follow({ signal: this.#stop.signal })) {
      for (const record of records) {
        for (const listener of this.#all) listener(record)
        for (const listener of this.#streams.get(record.stream) ?? []) listener(record)
      }
    }
  }

  get closed(): boolean {
    return this.#stop.signal.aborted
  }

  /** Resolves when following has ended, by `close` or because the log failed. */
  get ended(): Promise<void> {
    return this.#done.catch(() => {})
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
    await this.#done.catch(() => {})
  }
}
