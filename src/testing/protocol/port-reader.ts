import type { StreamKey } from '../../events/index.ts'
import type { EventLog, Positions, RecordedEvent } from '../../log/index.ts'
import { emptyFold, type Folded, foldAll, foldStream } from '../../projections/index.ts'
import { check } from './failure.ts'

/** A follower of a real log that stops after some records and starts again from the next offset. */
export class PortReader {
  readonly #log: EventLog
  readonly #streams: readonly StreamKey[]
  readonly #patience: number
  readonly #records = new Map<StreamKey, RecordedEvent[]>()
  readonly #folds = new Map<StreamKey, Folded>()
  #next: Positions = new Map()
  #busy = false

  /** @param patience milliseconds after which a follower that gives nothing, though there is more, has failed */
  constructor(log: EventLog, streams: readonly StreamKey[], patience: number) {
    this.#log = log
    this.#streams = streams
    this.#patience = patience
  }

  /** Begins at the end of the log. */
  async start(): Promise<void> {
    this.#next = await this.#log.barrier()
  }

  recordsOf(stream: StreamKey): readonly RecordedEvent[] {
    return this.#records.get(stream) ?? []
  }

  foldOf(stream: StreamKey): Folded {
    return this.#folds.get(stream) ?? emptyFold
  }

  /** Whether the log has accepted something of the streams that was not read here yet. What is void is nobody's to follow. */
  async isBehind(): Promise<boolean> {
    return this.#isBehind(await this.#ends())
  }

  #isBehind(ends: Positions): boolean {
    return [...ends].some(([partition, end]) => (this.#next.get(partition) ?? 0n) < end)
  }

  /** By partition, behind the newest accepted event of the streams. */
  async #ends(): Promise<Positions> {
    await this.#log.barrier()
    const ends = new Map<number, bigint>()
    for (const stream of this.#streams) {
      const position = (await this.#log.head(stream))?.position
      if (position && (ends.get(position.partition) ?? 0n) <= position.offset) ends.set(position.partition, position.offset + 1n)
    }
    return ends
  }

  /** Reads up to `most` of the records the log has now. Keeps nothing but the next offsets and what it made of the records. */
  async read(most: number): Promise<void> {
    if (this.#busy) return
    this.#busy = true
    try {
      const ends = await this.#ends()
      if (this.#isBehind(ends)) await this.#follow(most, ends)
    } finally {
      this.#busy = false
    }
  }

  async #follow(most: number, ends: Positions): Promise<void> {
    const from = this.#next
    const stop = new AbortController()
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(this.#patience)])
    let read = 0
    for await (const page of this.#log.follow({ from, signal })) {
      for (const record of page.slice(0, most - read)) {
        this.#next = new Map(this.#next).set(record.position.partition, record.position.offset + 1n)
        this.#take(record)
        read++
      }
      if (read >= most || !this.#isBehind(ends)) break
    }
    stop.abort()
    check(read > 0, 'readers-differ', () => `A follower gives nothing from ${[...from]} on, though the log goes to ${[...ends]}.`)
  }

  #take(record: RecordedEvent): void {
    const all = this.#records.get(record.stream) ?? []
    this.#records.set(record.stream, all)
    all.push(record)
    const next = foldAll([record], this.foldOf(record.stream))
    this.#folds.set(record.stream, next === 'refold' ? foldStream(all) : next)
  }
}
