import type { Clock } from '../../../src/base/index.ts'
import { type Commit, decodeEvent, type StreamKey } from '../../../src/events/index.ts'
import { type ArbitrationRecord, arbitrate, type OpenCommit } from '../../../src/log/arbitration.ts'
import type { Appended, EventLog, LogBackend, Owners, RecordedEvent, Sql, SqlValue, StreamHead } from '../../../src/log/index.ts'

const NEVER = new Promise<never>(() => {})

/** Time that moves only when it is told to. */
export class ManualClock implements Clock {
  #now = 1_790_000_000_000
  #sleeping: { until: number; wake: () => void }[] = []

  now = (): number => this.#now
  monotonic = (): number => this.#now

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted || ms <= 0) return Promise.resolve()
    return new Promise((wake) => {
      this.#sleeping.push({ until: this.#now + ms, wake })
      signal?.addEventListener('abort', () => wake(), { once: true })
    })
  }

  pass(ms: number): void {
    this.#now += ms
    const due = this.#sleeping.filter(({ until }) => until <= this.#now)
    this.#sleeping = this.#sleeping.filter(({ until }) => until > this.#now)
    for (const { wake } of due) wake()
  }
}

interface Sent extends ArbitrationRecord {
  readonly bytes: Uint8Array
}

/** One stream in one partition, in memory. It cannot refuse an append: the reducer decides, as on every log. */
export class SharedLog {
  /** Accepted records, decoded from their bytes as another process would read them. */
  readonly records: RecordedEvent[] = []
  /** Ids of commits of which something is void. */
  readonly voided = new Set<string>()
  /** The row of the snapshot table, for all processes. */
  snapshot: SqlValue[] | undefined
  #open: OpenCommit<Sent> | undefined
  #offset = 0

  get head(): StreamHead | undefined {
    return this.records.at(-1)
  }

  /** Writes the first `count` records of a commit; fewer than all of them is what a crash in the middle leaves. */
  take(commit: Commit, count = commit.records.length): Appended {
    let accepted = false
    for (const { version, hash, bytes, event } of commit.records.slice(0, count)) {
      const offset = ++this.#offset
      const sent = { stream: commit.stream, version, hash, bytes, commit: event.commit, previous: event.previous, offset }
      const step = arbitrate(this.#open, sent, () => this.head)
      this.#open = step.open
      for (const group of step.voids ?? []) for (const { commit } of group.records) this.voided.add(commit.id)
      if (step.accepted) {
        accepted = true
        this.records.push(...step.accepted.map(recorded))
      }
    }
    return { accepted, head: this.head }
  }
}

const recorded = ({ stream, version, hash, bytes, offset }: Sent): RecordedEvent => {
  const position = { partition: 0, offset: BigInt(offset) }
  return { stream, version, hash, bytes, position, event: decodeEvent(bytes) }
}

/** An append on its way. */
export interface Held {
  readonly commit: Commit
  /** Set once the log has taken it; the answer has not come back. */
  taken: Appended | undefined
  readonly answer: (appended: Appended) => void
}

/** What the owners of a world know of each other. */
export interface Liveness {
  readonly killed: ReadonlySet<string>
  readonly suspected: ReadonlySet<string>
}

/** The log as one process sees it. Appends may be held, the tail lags until it is told to go on, and a dead process gets no answers. */
export class LogView {
  alive = true
  /** The next append is held. */
  holding = false
  held: Held | undefined
  /** Records the wait index of this process has seen. */
  indexed = 0
  readonly log: SharedLog
  readonly backend: LogBackend
  #delivered: number
  #wake = () => {}

  constructor(log: SharedLog, self: string, liveness: Liveness) {
    this.log = log
    this.#delivered = log.records.length
    const owners: Owners = {
      self,
      isDead: async (owner) => liveness.killed.has(owner) || liveness.suspected.has(owner),
      isProvenDead: async (owner) => liveness.killed.has(owner),
    }
    const tables = this.#tables()
    const unused = () => Promise.reject(new Error('not part of this world'))
    this.backend = {
      events: this.#events(),
      topics: {} as LogBackend['topics'],
      content: {} as LogBackend['content'],
      tables,
      owners,
      install: unused,
      cache: async (change) => change(tables),
      close: async () => {},
      [Symbol.asyncDispose]: async () => {},
    }
  }

  get lag(): number {
    return this.log.records.length - this.#delivered
  }

  deliver(): void {
    this.#delivered = this.log.records.length
    this.#wake()
  }

  #events(): EventLog {
    return {
      id: 'simulated',
      partitions: 1,
      partitionOf: () => 0,
      append: (commit) => this.#append(commit),
      read: (_: StreamKey, after = 0) => this.#read(after),
      head: async () => (this.alive ? this.log.head : NEVER),
      follow: ({ signal }) => this.#follow(signal),
      barrier: async () => {
        if (!this.alive) return NEVER
        this.indexed = this.log.records.length
        return new Map([[0, BigInt(this.indexed)]])
      },
      close: async () => {},
    }
  }

  #append(commit: Commit): Promise<Appended> {
    if (!this.alive) return NEVER
    if (!this.holding) return Promise.resolve(this.log.take(commit))
    this.holding = false
    return new Promise((answer) => {
      this.held = { commit, taken: undefined, answer }
    })
  }

  async *#read(after: number): AsyncGenerator<RecordedEvent[]> {
    if (!this.alive) await NEVER
    const records = this.log.records.slice(after)
    if (records.length > 0) yield records
  }

  async *#follow(signal: AbortSignal | undefined): AsyncGenerator<RecordedEvent[]> {
    let at = this.#delivered
    signal?.addEventListener('abort', () => this.#wake(), { once: true })
    while (!signal?.aborted && this.alive) {
      if (at < this.#delivered) {
        const records = this.log.records.slice(at, this.#delivered)
        at = this.#delivered
        yield records
      } else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Knows the snapshot table only. */
  #tables(): Sql {
    return {
      run: (sql, ...values) => {
        if (sql.startsWith('INSERT')) this.log.snapshot = values
        return 1
      },
      all: () => [],
      get: <Row>() => {
        const [, version, hash, , state] = this.log.snapshot ?? []
        return state === undefined ? undefined : ({ version, hash, state } as Row)
      },
    }
  }
}
