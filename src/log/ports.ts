import type { ContentRef } from '../base/index.ts'
import type { Commit, EventHash, LogEvent, StreamKey } from '../events/index.ts'

/** Where a record stands. Offsets rise within a partition; holes are legal. */
export interface Position {
  partition: number
  offset: bigint
}
/** Next offset to read, per partition. */
export type Positions = ReadonlyMap<number, bigint>

/** The newest accepted event of a stream. */
export interface StreamHead {
  version: number
  hash: EventHash
  position: Position
}

/** An accepted record. `event` is absent when this build cannot decode it; `defect` then says why (R7). */
export interface RecordedEvent {
  readonly stream: StreamKey
  readonly version: number
  readonly hash: EventHash
  readonly position: Position
  readonly bytes: Uint8Array
  readonly event?: LogEvent
  readonly defect?: { code: string; message: string }
}

/** The fate of a commit, decided by the log. When refused, `head` is what the stream has now. */
export interface Appended {
  accepted: boolean
  head: StreamHead | undefined
}

/** The log of events: the only truth. */
export interface EventLog {
  /** Identity of this log: the cluster id, or the id made when the file was created. */
  readonly id: string
  readonly partitions: number
  /** Partition of a stream: murmur2 of its key as in Kafka's Java client. */
  partitionOf(stream: StreamKey): number
  /** Resolves when the commit is durable *and* its fate is decided (R8). */
  append(commit: Commit): Promise<Appended>
  /** Accepted events of one stream with version greater than `after` (default 0), oldest first, in batches. */
  read(stream: StreamKey, after?: number): AsyncIterable<RecordedEvent[]>
  head(stream: StreamKey): Promise<StreamHead | undefined>
  /** Accepted events of all streams in log order, from `from` (default: from now on), then as they come, until `signal` aborts. */
  follow(options: { from?: Positions; partitions?: number[]; signal?: AbortSignal }): AsyncIterable<RecordedEvent[]>
  /** Resolves once everything in the log at the time of the call has been read; the end positions (R15). */
  barrier(partition?: number): Promise<Positions>
  close(): Promise<void>
}

/** The edges other systems see. */
export type TopicName = 'requests' | 'results' | 'receipts' | 'checkpoints'

/** A record to publish. `key` groups and orders; `value` is UTF-8 JSON unless the topic says otherwise. */
export interface TopicRecord {
  key: string
  value: Uint8Array
  headers?: Record<string, string>
}

/** A record as read. */
export interface Delivery extends TopicRecord {
  topic: TopicName
  position: Position
  /** Epoch milliseconds the log recorded it. */
  time: number
}

export interface Topics {
  /** Resolves when the records are durable, with the positions behind them. */
  publish(topic: TopicName, records: readonly TopicRecord[]): Promise<Positions>
  /** Records of a topic in order, from `from` or from the group's saved progress, then as they come, until `signal` aborts. */
  subscribe(topic: TopicName, options: { group?: string; from?: Positions; signal?: AbortSignal }): AsyncIterable<Delivery[]>
  /** Records that exist now, in order, without waiting. */
  scan(topic: TopicName, options?: { from?: Positions; limit?: number }): AsyncIterable<Delivery[]>
  /**
   * Records out and a group's progress, all or nothing. `next` is the next position to read. With `expect`, nothing is written unless
   * that is the saved progress (a group without one stands at its first record): of two members that handled the same records, one
   * gets `progress_moved` (retry). `next` names one partition: each has a progress of its own.
   */
  transact(o: {
    publish: Partial<Record<TopicName, readonly TopicRecord[]>>
    progress?: { topic: TopicName; group: string; next: Positions; expect?: Positions }
  }): Promise<void>
  /** A group's saved progress. */
  progress(topic: TopicName, group: string): Promise<Positions>
  /** What others call a topic, where that is not its name here. */
  nameOf?(topic: TopicName): string
}

/** Where values stand that are too large for events (R17). */
export interface ContentStore {
  /** Resolves when the content is durable. The same bytes give the same digest, and are kept once. */
  put(bytes: Uint8Array, mediaType: string): Promise<ContentRef>
  /** Undefined when it is not there, or not what the reference says. */
  get(ref: ContentRef): Promise<Uint8Array | undefined>
}

/** Read and write access to the projection tables, inside or outside a transaction. SQLite on every adapter (design §4). */
export interface Sql {
  /** Answers how many rows it changed. */
  run(sql: string, ...values: SqlValue[]): number
  all<Row = Record<string, SqlValue>>(sql: string, ...values: SqlValue[]): Row[]
  get<Row = Record<string, SqlValue>>(sql: string, ...values: SqlValue[]): Row | undefined
}
export type SqlValue = null | number | bigint | string | Uint8Array

/**
 * What follows from the log, kept in tables. `apply` runs in the transaction that accepts the events. What it throws refuses that
 * commit with `projector_failed`, so it must decide about every event, also one with a `defect`. It may run again after a rollback.
 */
export interface Projector {
  readonly name: string
  /** Raised when tables or meaning change: the tables are dropped and rebuilt from the log. What was published stays; it is not repeated. */
  readonly version: number
  /** Creates the tables; statements are idempotent. */
  readonly schema: string
  /** Drops them. */
  readonly drop: string
  /** Makes records of the edges and keeps no rows of its own: where a log is shared in partitions, the owner of each runs it. */
  readonly publishes?: true
  apply(tx: ProjectorTx, events: readonly RecordedEvent[]): void
}

/** The transaction a projector writes in; `publish` appends to an edge topic in the same transaction. */
export interface ProjectorTx extends Sql {
  publish(topic: TopicName, record: TopicRecord): void
  /** Accepted events of a stream up to now, this transaction's included. */
  read(stream: StreamKey, after?: number): RecordedEvent[]
}

/** One process's view of who is alive (design §7 "Owners"). */
export interface Owners {
  /** Registers this process and keeps it alive until `close`. */
  readonly self: string
  /** True if that owner is certainly dead: expired, or gone on this host. */
  isDead(owner: string): Promise<boolean>
  /** True only if its process is known to be gone on this host: then no effect of it can still start (R20). */
  isProvenDead(owner: string): Promise<boolean>
}

/** How the processes of one log share its work, where a log is worked on in partitions. */
export interface Assignment {
  /** Takes part from now on. Resolves once this process has its share. Each `join` is taken back by one `leave`. */
  join(): Promise<void>
  /** Gives its share to the others, once nobody here takes part any more. */
  leave(): Promise<void>
  /** Partitions of this process; undefined while it takes no part. */
  readonly share: ReadonlySet<number> | undefined
  /**
   * True while this process is the one to work on the stream, and has been for `ms`. Liveness only: what keeps two from harm is the log.
   */
  owns(stream: StreamKey, ms?: number): boolean
  /** Calls `listener` after each change of the share. The answer takes it back. */
  onChange(listener: () => void): () => void
}

export interface LogBackend extends AsyncDisposable {
  readonly events: EventLog
  readonly topics: Topics
  /** What events refer to. It is written before them. */
  readonly content: ContentStore
  /** Projection tables, for reading. */
  readonly tables: Sql
  readonly owners: Owners
  /** Void records read so far, by partition (R5): in the log, never folded. Absent where a log keeps none. */
  voids?(): ReadonlyMap<number, number>
  /** Absent: whoever has the log open works on all of it. */
  readonly assignment?: Assignment
  /**
   * Installs projectors, each brought up to the end of the log before this resolves.
   * @throws ThreadlogError `projector_failed`, `projector_newer` (the tables are of a later version), `log_read_only`
   */
  install(projectors: readonly Projector[]): Promise<void>
  /** Runs `change` in one transaction with the tables (snapshots, caches: nothing that is truth). It may run again after a rollback. */
  cache(change: (tx: Sql) => void): Promise<void>
  close(): Promise<void>
}
