import { type Clock, countingIds } from '../../../src/base/index.ts'
import { type EventDraft, threadStream } from '../../../src/events/index.ts'
import { openThreadlog, type Threadlog } from '../../../src/index.ts'
import { type LogBackend, openMemoryLog, type RecordedEvent } from '../../../src/log/index.ts'

const START = Date.UTC(2026, 0, 1)

/** Time that moves when it is told to, or slept. */
class StageClock implements Clock {
  #at = START
  now = () => this.#at
  monotonic = () => this.#at - START
  async sleep(ms: number): Promise<void> {
    this.#at += ms
  }
}

/** A memory log on which the same script leaves the same bytes: counted ids, a clock of its own, named owners. */
export class Stage {
  readonly thread: string
  readonly #backend: LogBackend
  readonly #clock = new StageClock()
  readonly #ids = countingIds()
  readonly #open = new Set<Threadlog>()
  #processes = 0

  private constructor(backend: LogBackend, thread: string) {
    this.#backend = backend
    this.thread = thread
  }

  static open = async (thread: string): Promise<Stage> => new Stage(await openMemoryLog(), thread)

  get stream(): string {
    return threadStream({ application: 'recorded', user: 'default', thread: this.thread })
  }

  /** Another process on the same log; the ones before count as dead once they are closed. */
  async process(): Promise<Threadlog> {
    const self = `process-${++this.#processes}`
    const owners = {
      self,
      isDead: async (owner: string) => owner !== self,
      isProvenDead: async (owner: string) => owner !== self,
    }
    const events = shadow(this.#backend.events, { id: 'recorded-log' })
    const log = shadow(this.#backend, { owners, events })
    const threads = await openThreadlog({ log, application: 'recorded', clock: this.#clock, ids: this.#ids })
    this.#open.add(threads)
    return threads
  }

  /** Time passes between the acts of a story. */
  later = (ms = 1000): Promise<void> => this.#clock.sleep(ms)

  now = (): number => this.#clock.now()

  /** Appends events past every decider. */
  async append(threads: Threadlog, ...drafts: EventDraft[]): Promise<void> {
    const actor = { kind: 'operator', id: 'recorder', source: 'record-log' }
    const context = { stream: this.stream, now: this.#clock.now(), actor, runId: null, attempt: null }
    await threads.store
      .commit(this.stream, () => ({ drafts, context }))
      .catch((error: { code?: string }) => {
        if (error.code !== 'thread_quarantined') throw error
      })
  }

  /** What stands in the log of the thread. */
  async records(): Promise<RecordedEvent[]> {
    const records: RecordedEvent[] = []
    for await (const batch of this.#backend.events.read(this.stream)) records.push(...batch)
    return records
  }

  async close(): Promise<void> {
    for (const threads of this.#open) await threads.close()
    await this.#backend.close()
  }
}

/** The object with some properties of its own. */
const shadow = <T extends object>(target: T, own: Partial<T>): T =>
  new Proxy(target, {
    get(of, name) {
      if (Object.hasOwn(own, name)) return Reflect.get(own, name)
      const value = Reflect.get(of, name, of)
      return typeof value === 'function' ? value.bind(of) : value
    },
  })
