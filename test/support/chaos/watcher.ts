import { setTimeout as delay } from 'node:timers/promises'
import { decodeReceipt } from '../../../src/continuations/index.ts'
import { isThreadlogError, type LogBackend } from '../../../src/index.ts'
import type { Delivery, Positions, RecordedEvent } from '../../../src/log/index.ts'

/** Something that happens once, and who waits for it. */
class Once<T> {
  readonly #values = new Map<string, T>()
  readonly #waiting = new Map<string, ((value: T) => void)[]>()

  happened(key: string, value: T): void {
    this.#values.set(key, value)
    for (const resolve of this.#waiting.get(key) ?? []) resolve(value)
    this.#waiting.delete(key)
  }

  get(key: string): T | undefined {
    return this.#values.get(key)
  }

  when(key: string): Promise<T> {
    const value = this.#values.get(key)
    if (value !== undefined) return Promise.resolve(value)
    return new Promise((resolve) => this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), resolve]))
  }
}

/** Coordinate of a record of `results`. */
export const placeText = ({ partition, offset }: { partition: number; offset: number | bigint }): string =>
  `${partition}:${offset}`

export interface Request {
  continuation_id: string
  external_id: string
  provider: string
  arguments: { order: string; part?: number }
  proposal_digest: string
  cancelled?: true
}

/** Follows a log and its topics from outside of every engine, and tells what happened. */
export class Watcher {
  /** How an invocation ended, by its id. */
  readonly ends = new Once<string>()
  /** That a wait ended without having been claimed, by its id. */
  readonly withdrawn = new Once<true>()
  /** Verdict of a record of `results`, by the record's key. */
  readonly verdicts = new Once<string>()
  readonly seen = { events: 0, recoveries: 0, lastEventAt: Date.now() }
  readonly #backend: LogBackend
  readonly #stop = new AbortController()
  readonly #invocations = new Map<string, string>()
  readonly #keys = new Once<string>()
  readonly #done: Promise<unknown>

  constructor(backend: LogBackend, onRequest: (request: Request) => void) {
    this.#backend = backend
    const events = this.#following<RecordedEvent>(
      (from) => backend.events.follow({ from, signal: this.#stop.signal }),
      (record) => this.#event(record),
    )
    const topic = (name: 'requests' | 'results' | 'receipts', tell: (delivery: Delivery) => void) =>
      this.#following<Delivery>((from) => backend.topics.subscribe(name, { from, signal: this.#stop.signal }), tell)
    this.#done = Promise.all([
      events,
      topic('results', ({ position, key }) => this.#keys.happened(placeText(position), key)),
      topic('receipts', (delivery) => this.#receipt(delivery)),
      topic('requests', ({ value }) => {
        const request = JSON.parse(Buffer.from(value).toString()) as Request
        if (request.cancelled) this.withdrawn.happened(request.continuation_id, true)
        else onRequest(request)
      }),
    ])
  }

  /** From the first record on; after a condition that passes, from where it was. */
  async #following<T extends { position: { partition: number; offset: bigint } }>(
    open: (from: Positions) => AsyncIterable<T[]>,
    tell: (item: T) => void,
  ): Promise<void> {
    let from: Positions = new Map(Array.from({ length: this.#backend.events.partitions }, (_, i) => [i, 0n]))
    while (!this.#stop.signal.aborted)
      try {
        for await (const items of open(from))
          for (const item of items) {
            tell(item)
            from = new Map(from).set(item.position.partition, item.position.offset + 1n)
          }
      } catch (error) {
        if (!isThreadlogError(error) || error.disposition !== 'retry') throw error
        await delay(50)
      }
  }

  #event({ event }: RecordedEvent): void {
    this.seen.events++
    this.seen.lastEventAt = Date.now()
    if (event?.type === 'run.started/1') this.#invocations.set(event.data.run_id, event.data.invocation_id)
    if (event?.type === 'run.recovered/1') this.seen.recoveries++
    if (event?.type !== 'run.completed/1' && event?.type !== 'run.failed/1' && event?.type !== 'run.cancelled/1') return
    const { run_id } = event.data
    this.ends.happened(this.#invocations.get(run_id) ?? run_id, event.type.slice('run.'.length, -'/1'.length))
  }

  #receipt({ value }: Delivery): void {
    const { source, verdict } = decodeReceipt(value)
    if ('offset' in source) void this.#keys.when(placeText(source)).then((key) => this.verdicts.happened(key, verdict))
  }

  /** Rejects when following has failed for good. */
  get done(): Promise<unknown> {
    return this.#done
  }

  /** Resolves once everything in the log now has been told. */
  async caughtUp(): Promise<void> {
    await this.#backend.events.barrier()
    const { n } = this.#backend.tables.get<{ n: number }>('SELECT count(*) AS n FROM events')!
    while (this.seen.events < n) await delay(5)
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#done
  }
}
