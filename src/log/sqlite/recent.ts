import type { RecordedEvent } from '../ports.ts'

const MAX_EVENTS = 2_048
const MAX_BYTES = 8_000_000

/** The newest accepted events of this process, without holes; emptied when another process wrote between. */
export class Recent {
  #events: RecordedEvent[] = []
  #bytes = 0

  push(events: readonly RecordedEvent[]): void {
    const first = events[0]
    if (first === undefined) return
    const last = this.#events[this.#events.length - 1]
    if (last !== undefined && last.position.offset + 1n !== first.position.offset) {
      this.#events = []
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
  }

  /** Events from `id` on, or undefined when they are not all here and the table must be asked. */
  from(id: number, limit: number): RecordedEvent[] | undefined {
    const first = this.#events[0]
    if (first === undefined) return undefined
    const at = id - Number(first.position.offset)
    // At or past the end another process may have written more.
    if (at < 0 || at >= this.#events.length) return undefined
    return this.#events.slice(at, at + limit)
  }
}
