import { reject } from '../../base/index.ts'
import { type Commit, type StreamKey, ZERO_HASH } from '../../events/index.ts'
import type { Fate } from '../arbitration.ts'
import { checkCommit } from '../commit-check.ts'
import { partitionOf } from '../partition.ts'
import type { Appended, EventLog, Positions, RecordedEvent, StreamHead } from '../ports.ts'
import { type Connection, type EventStore, FIRST_PAGE, live, nextLimit, placeOf, type Wakeups } from '../store/index.ts'
import type { DirectReader } from './direct.ts'
import { closed, translate } from './errors.ts'
import type { Reached } from './reached.ts'
import type { Sender } from './sender.ts'
import { range } from './topic-plan.ts'

export interface KafkaEventLogParts {
  /** Cluster id. */
  id: string
  partitions: number
  /** Full name of the topic. */
  topic: string
  connection: Connection
  store: EventStore
  wakeups: Wakeups
  sender: Sender
  reader: DirectReader
  reached: Reached
  close(): Promise<void>
}

/** Events of a topic: appended through the cluster, decided by its order, read from the replica. */
export class KafkaEventLog implements EventLog {
  readonly id: string
  readonly partitions: number
  readonly #parts: KafkaEventLogParts
  /** Commits whose fate somebody waits for. */
  readonly #pending = new Map<string, (head: StreamHead) => void>()
  /** Those of the open transaction, each with its last event. */
  readonly #settled: [id: string, head: StreamHead][] = []
  /** By stream, the commit that was handed to the cluster. */
  readonly #sent = new Map<StreamKey, Commit>()
  /** By stream, the end of the newest commit that is on its way. */
  readonly #turns = new Map<StreamKey, Promise<void>>()
  #closing = false

  constructor(parts: KafkaEventLogParts) {
    this.id = parts.id
    this.partitions = parts.partitions
    this.#parts = parts
  }

  partitionOf(stream: StreamKey): number {
    return partitionOf(stream, this.partitions)
  }

  /**
   * One commit of a stream at a time, in the order in which they came: each is decided on what the one before it left (design §4). It is
   * sent until it is acknowledged, and again if it was acknowledged and read past and still has no fate. The verdict is that of the
   * commit id. What has its fate already is not sent, nor what cannot be accepted, being ahead of its stream or on another event: a later
   * copy of it might be.
   */
  async append(commit: Commit): Promise<Appended> {
    checkCommit(commit)
    if (this.#closing || this.#parts.connection.closed) throw closed()
    const turn = (this.#turns.get(commit.stream) ?? Promise.resolve()).then(() => this.#decide(commit))
    const over = turn.then(nothing, nothing)
    this.#turns.set(commit.stream, over)
    try {
      return await turn
    } finally {
      if (this.#turns.get(commit.stream) === over) this.#turns.delete(commit.stream)
    }
  }

  async #decide(commit: Commit): Promise<Appended> {
    const { connection, reached, sender, store } = this.#parts
    const partition = this.partitionOf(commit.stream)
    const stopped = reached.stopOf(partition)
    if (stopped !== undefined) throw stopped
    let known = this.#outlook(commit)
    if (known === 'not-its-turn') {
      await this.barrier(partition)
      known = this.#outlook(commit)
    }
    if (known !== 'open') return this.#standing(commit)
    const accepted = new Promise<Appended>((resolve) => this.#pending.set(commit.id, (head) => resolve({ accepted: true, head })))
    const judged = async () => {
      for (;;) {
        await reached.wait(partition, (await sender.send(partition, commit)) + 1n)
        // Read here and stored: what it is has been told.
        if (!this.#pending.has(commit.id)) return accepted
        if (connection.look(() => store.fate(commit)) !== 'open') return this.#standing(commit)
      }
    }
    this.#sent.set(commit.stream, commit)
    try {
      return await Promise.race([accepted, judged()])
    } finally {
      this.#sent.delete(commit.stream)
      this.#pending.delete(commit.id)
    }
  }

  /** What is known here of a commit before it is sent. `not-its-turn`: its stream, as read here, could not take it. */
  #outlook(commit: Commit): Fate | 'not-its-turn' {
    const { connection, store } = this.#parts
    return connection.look(() => {
      const { version, hash } = store.head(commit.stream) ?? { version: 0, hash: ZERO_HASH }
      const fate = version > commit.base ? store.fate(commit) : 'open'
      const fits = commit.base === version && commit.previous === hash
      return fate === 'open' && !fits ? 'not-its-turn' : fate
    })
  }

  #standing(commit: Commit): Appended {
    const { connection, store } = this.#parts
    return connection.look(() => {
      // Another process may have written to the replica: this looks again at the head.
      store.head(commit.stream)
      return store.standing(commit)
    })
  }

  /** Takes no more commits; resolves once those it has are decided, or after `ms`. */
  async settle(ms: number): Promise<void> {
    this.#closing = true
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
    await Promise.race([Promise.all(this.#turns.values()), late])
    clearTimeout(timer)
  }

  /** The commit of a stream that this process has on its way. */
  sent(stream: string): Commit | undefined {
    return this.#sent.get(stream as StreamKey)
  }

  /** The events of an accepted commit have been stored. */
  accepted(events: readonly RecordedEvent[]): void {
    if (this.#pending.size === 0) return
    // A commit this build cannot read to its end is looked for in the replica.
    const { event, version, hash, position } = events.at(-1) as RecordedEvent
    if (event && event.commit.index === event.commit.size - 1) this.#settled.push([event.commit.id, { version, hash, position }])
  }

  /** The transaction that stored them is committed, or rolled back. */
  decided(committed: boolean): void {
    const settled = this.#settled.splice(0)
    if (committed)
      for (const [id, head] of settled) {
        this.#pending.get(id)?.(head)
        this.#pending.delete(id)
      }
  }

  async *read(stream: StreamKey, after = 0): AsyncGenerator<RecordedEvent[]> {
    const { connection, store } = this.#parts
    for (let limit = FIRST_PAGE; ; ) {
      const page = await connection.query(() => store.page(stream, after, limit))
      if (page.length > 0) yield page
      if (page.length < limit) return
      after = page[page.length - 1]!.version
      limit = nextLimit(page)
    }
  }

  head(stream: StreamKey): Promise<StreamHead | undefined> {
    return this.#parts.connection.query(() => this.#parts.store.head(stream))
  }

  follow(options: { from?: Positions; partitions?: number[]; signal?: AbortSignal }): AsyncGenerator<RecordedEvent[]> {
    const { connection, store, wakeups } = this.#parts
    const { from, partitions, signal } = options
    const end = connection.look(() => store.end())
    let next = from ? Math.min(end, ...[...from].map(([partition, offset]) => this.#idAt(partition, offset) ?? end)) : end
    let limit = FIRST_PAGE
    const wanted = ({ position: { partition, offset } }: RecordedEvent, id: number): boolean => {
      if (partitions && !partitions.includes(partition)) return false
      const first = from?.get(partition)
      return first === undefined ? id >= end : offset >= first
    }
    const take = (): RecordedEvent[] => {
      for (;;) {
        const slice = store.slice(next, limit)
        if (slice.events.length === 0) return []
        const id = slice.next - slice.events.length
        const found = slice.events.filter((event, i) => wanted(event, id + i))
        next = slice.next
        limit = nextLimit(slice.events)
        if (found.length > 0) return found
      }
    }
    return live(connection, wakeups, { channel: 'events', signal, take })
  }

  /** `events.id` of the first event of a partition at or behind an offset. */
  #idAt(partition: number, offset: bigint): number | undefined {
    const sql = 'SELECT min(id) AS id FROM events WHERE place >= ? AND place < ?'
    const { connection } = this.#parts
    const row = connection.look(() =>
      connection.get<{ id: number | null }>(sql, placeOf(partition, offset), placeOf(partition + 1, 0)),
    )
    return row?.id ?? undefined
  }

  async barrier(partition?: number): Promise<Positions> {
    const { connection, reached, reader, topic } = this.#parts
    if (connection.closed) throw closed()
    const partitions = partition === undefined ? range(this.partitions) : [partition]
    for (const each of partitions) this.#check(each)
    let ends: Map<number, bigint>
    try {
      ends = await reader.patiently(() => reader.offsets(topic, partitions, 'end'))
    } catch (error) {
      throw translate(error, topic)
    }
    await Promise.all([...ends].map(([each, end]) => reached.wait(each, end)))
    // A log that was cut off ends before what was read of it.
    for (const each of partitions) this.#check(each)
    return ends
  }

  /** @throws what a partition that does not exist, or is not read on, gets */
  #check(partition: number): void {
    if (!Number.isInteger(partition) || partition < 0 || partition >= this.partitions)
      throw reject('partition_unknown', 'The log has no such partition.', {
        path: this.#parts.topic,
        expected: `0 to ${this.partitions - 1}`,
        details: { partition },
      })
    const stop = this.#parts.reached.stopOf(partition)
    if (stop !== undefined) throw stop
  }

  close(): Promise<void> {
    return this.#parts.close()
  }
}

const nothing = (): void => {}
