import type { StreamKey } from '../../events/index.ts'
import type { Projector, ProjectorTx, RecordedEvent, SqlValue, TopicName, TopicRecord } from '../ports.ts'
import type { Connection, EventStore, Participant } from '../store/index.ts'

/** Records that follow from events of one partition, and where to go on behind those. */
export interface Outgoing {
  readonly publish: Partial<Record<TopicName, TopicRecord[]>>
  readonly next: bigint
  /** What comes later goes with it if it is asked for again. */
  readonly more?: boolean
}

/** What follows from the accepted commits of one partition, from one place on without a hole. */
interface Kept {
  from: bigint
  readonly commits: (Outgoing & { readonly first: bigint })[]
}

/** Commits kept of a partition whose publisher does not keep up; it reads the others from the table. */
const MAX_COMMITS = 1_000
/** Commits of one transaction. */
const BATCH = 100

/**
 * What is to be published of accepted events, made while they are stored, when the fold of their thread is at hand. Publishers take it
 * from here as far as it goes, and read and fold anew what is older or was accepted by another process.
 */
export class Outbox implements Participant {
  readonly #connection: Connection
  readonly #store: EventStore
  readonly #kept = new Map<number, Kept>()
  /** Commits of the open transaction. */
  readonly #accepted: { partition: number; first: bigint; made: Outgoing }[] = []
  #projectors: readonly Projector[] = []
  #partitions: ReadonlySet<number> = new Set()
  #dataVersion = -1

  constructor(connection: Connection, store: EventStore) {
    this.#connection = connection
    this.#store = store
  }

  /** Those that publish from now on. */
  install(projectors: readonly Projector[]): void {
    this.#projectors = projectors
    this.#kept.clear()
  }

  /** The partitions this process publishes from now on. */
  assign(partitions: ReadonlySet<number>): void {
    this.#partitions = partitions
    for (const partition of this.#kept.keys()) if (!partitions.has(partition)) this.#kept.delete(partition)
  }

  begin(dataVersion: number): void {
    // Another process has written: events were stored that have not been seen here.
    if (dataVersion !== this.#dataVersion) this.#kept.clear()
    this.#dataVersion = dataVersion
  }

  /** The events of an accepted commit have been stored. Inside the writer's transaction. */
  accepted(events: readonly RecordedEvent[]): void {
    const { partition, offset: first } = (events[0] as RecordedEvent).position
    if (this.#projectors.length === 0 || !this.#partitions.has(partition)) return
    try {
      this.#accepted.push({ partition, first, made: this.derive(events) })
    } catch {
      // Storing goes on. The publisher meets the same error, and tells it.
      this.#kept.delete(partition)
    }
  }

  committed(): void {
    for (const { partition, first, made } of this.#accepted.splice(0)) {
      const kept = this.#kept.get(partition) ?? { from: first, commits: [] }
      this.#kept.set(partition, kept)
      kept.commits.push({ ...made, first })
      if (kept.commits.length <= MAX_COMMITS) continue
      kept.commits.splice(0, MAX_COMMITS / 2)
      kept.from = kept.commits[0]!.first
    }
  }

  rolledBack(): void {
    this.#accepted.length = 0
  }

  /** What to publish of a partition from `next` on, if anything; undefined when that is not known here. */
  take(partition: number, next: bigint): Outgoing | undefined {
    const kept = this.#kept.get(partition)
    if (!kept || kept.from > next) return undefined
    // Another process has stored events since.
    if (this.#connection.dataVersion() !== this.#dataVersion) return undefined
    const publish: Outgoing['publish'] = {}
    let behind = next
    const commits = kept.commits.filter(({ first }) => first >= next).slice(0, BATCH)
    for (const commit of commits) {
      for (const [topic, records] of Object.entries(commit.publish)) (publish[topic as TopicName] ??= []).push(...records)
      behind = commit.next
    }
    return { publish, next: behind, more: commits.length < BATCH }
  }

  /** Everything before `next` is published. */
  done(partition: number, next: bigint): void {
    const kept = this.#kept.get(partition)
    if (!kept || kept.from > next) return
    const left = kept.commits.findIndex(({ first }) => first >= next)
    kept.commits.splice(0, left < 0 ? kept.commits.length : left)
    kept.from = next
  }

  /** What follows from whole commits of one partition. */
  derive(events: readonly RecordedEvent[]): Outgoing {
    const publish: Outgoing['publish'] = {}
    const tx = this.#transaction((topic, record) => void (publish[topic] ??= []).push(record))
    for (const projector of this.#projectors) for (const commit of byCommit(events)) projector.apply(tx, commit)
    return { publish, next: (events.at(-1) as RecordedEvent).position.offset + 1n }
  }

  #transaction(publish: ProjectorTx['publish']): ProjectorTx {
    const connection = this.#connection
    return {
      run() {
        throw new Error('a publisher keeps no rows')
      },
      all: <Row>(sql: string, ...values: SqlValue[]) => connection.look(() => connection.all<Row>(sql, ...values)),
      get: <Row>(sql: string, ...values: SqlValue[]) => connection.look(() => connection.get<Row>(sql, ...values)),
      publish,
      read: (stream: StreamKey, after = 0) => connection.look(() => this.#store.page(stream, after, Number.MAX_SAFE_INTEGER)),
    }
  }
}

function byCommit(events: readonly RecordedEvent[]): RecordedEvent[][] {
  const commits: RecordedEvent[][] = []
  let id: string | undefined
  for (const record of events) {
    const commit = record.event?.commit.id
    if (commit !== undefined && commit === id) commits.at(-1)?.push(record)
    else commits.push([record])
    id = commit
  }
  return commits
}
