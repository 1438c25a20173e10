import type { RecordedEvent } from '../ports.ts'

const MAX_EVENTS = 2_048
const MAX_BYTES = 8_000_000

/** The newest accepted events of this process, without holes; emptied when another process wrote between. */
export class Recent {
  #events: RecordedEvent[] = []
  /** `events.id` of the first of them. */
  #first = 0
  #bytes = 0

  /** @param id `events.id` of the first of `events`, which have consecutive ones */
  push(id: number, events: readonly RecordedEvent[]): void {
    if (events.length === 0) return
    if (this.#first + this.#events.length !== id) {
      this.#events = []
      this.#first = id
      this.#bytes = 0
    }
    for (const event of events) {
      this.#events.push(event)
      this.#bytes += event.bytes.length
    }
    if (this.#events.length > MAX_EVENTS || this.#bytes > MAX_BYTES) this.#trim()
  }

  /** Drops to half, so that trimming is rare. */
  #trim(): void {
    let drop = 0
    while (drop < this.#events.length && (this.#events.length - drop > MAX_EVENTS / 2 || this.#bytes > MAX_BYTES / 2))
      this.#bytes -= this.#events[drop++]!.bytes.length
    this.#events = this.#events.slice(drop)
    this.#first += drop
  }

  /** Events from `id` on, or undefined when they are not all here and the table must be asked. */
  from(id: number, limit: number): RecordedEvent[] | undefined {
    const at = id - this.#first
    // At or past the end another process may have written more.
    if (at < 0 || at >= this.#events.length) return undefined
    return this.#events.slice(at, at + limit)
  }
}
