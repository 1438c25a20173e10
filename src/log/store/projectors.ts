import { channel } from 'node:diagnostics_channel'
import { reject } from '../../base/index.ts'
import type { StreamKey } from '../../events/index.ts'
import type { Projector, ProjectorTx, RecordedEvent, SqlValue, TopicName, TopicRecord } from '../ports.ts'
import type { Connection } from './connection.ts'
import { isEnvironment } from './errors.ts'
import type { EventStore } from './event-store.ts'
import type { Participant, Writer } from './writer.ts'

/** Events applied in one transaction while catching up. */
const SLICE = 500

/** Published as `{ projector, offset, error }` when a projector cannot catch up; its rows stay behind until it is installed again. */
const stalls = channel('threadlog.projector-stalled')

interface ProjectorRow {
  name: string
  version: number
  /** First event not applied; null when none is missing. */
  next: number | null
  /** Last event whose publications are out: a rebuild does not repeat them. */
  published: number
}

/**
 * Runs projectors in the accepting transaction. Several processes share a file, and not each has every projector: who appends
 * without one notes in `projectors.next` what that one has not seen, and the next transaction of a process that has it catches up first.
 */
export class Projectors implements Participant {
  readonly #connection: Connection
  readonly #events: EventStore
  readonly #publishing: ProjectorTx
  /** For events whose publications are out. */
  readonly #quiet: ProjectorTx
  readonly #installed = new Map<string, Projector>()
  readonly #stalled = new Map<string, unknown>()
  #rows: ProjectorRow[] = []
  #dataVersion = -1

  constructor(connection: Connection, events: EventStore, publish: (topic: TopicName, record: TopicRecord) => void) {
    this.#connection = connection
    this.#events = events
    this.#publishing = this.#transaction(publish)
    this.#quiet = this.#transaction(() => {})
  }

  begin(dataVersion: number): void {
    if (dataVersion === this.#dataVersion) return
    this.#rows = this.#connection.all<ProjectorRow>('SELECT name, version, next, published FROM projectors')
    this.#dataVersion = dataVersion
  }

  committed(): void {}

  rolledBack(): void {
    this.#dataVersion = -1
  }

  /** True when a projector of this process has events to catch up with; looks outside of any transaction. */
  isBehind(): boolean {
    if (this.#installed.size === 0) return false
    this.begin(this.#connection.dataVersion())
    return this.#rows.some((row) => this.#lagging(row))
  }

  /**
   * Creates or rebuilds the tables, and runs the projectors from now on. Inside the writer's transaction.
   * @throws ThreadlogError `projector_newer` when the file holds the tables of a later version
   */
  installAll(projectors: readonly Projector[]): void {
    for (const projector of projectors) this.#install(projector)
  }

  #install(projector: Projector): void {
    const { name, version } = projector
    const row = this.#rows.find((candidate) => candidate.name === name)
    if (row !== undefined && row.version > version)
      throw reject('projector_newer', 'A newer release has rebuilt these tables.', {
        path: name,
        hint: 'Use that release for every process of this log.',
        details: { installed: row.version, wanted: version },
      })
    if (row?.version !== version) this.#create(projector, row)
    this.#installed.set(name, projector)
    this.#stalled.delete(name)
  }

  #create({ name, version, schema, drop }: Projector, old: ProjectorRow | undefined): void {
    const end = this.#events.end()
    const published = old === undefined ? 0 : Math.max(old.published, (old.next ?? end) - 1)
    if (old !== undefined) this.#connection.exec(drop)
    this.#connection.exec(schema)
    const next = end === 1 ? null : 1
    this.#connection.run(
      'INSERT OR REPLACE INTO projectors(name, version, next, published) VALUES (?, ?, ?, ?)',
      name,
      version,
      next,
      published,
    )
    this.#rows = [...this.#rows.filter((row) => row.name !== name), { name, version, next, published }]
  }

  /** Checks, for a log opened read-only, that the tables are there and complete. */
  isComplete({ name, version }: Projector): boolean {
    this.begin(this.#connection.dataVersion())
    return this.#rows.some((row) => row.name === name && row.version === version && row.next === null)
  }

  /** Why a projector of this process stopped following, if it did. */
  stallOf(name: string): unknown {
    return this.#stalled.get(name)
  }

  /**
   * Applies events accepted in this transaction.
   * @throws ThreadlogError `projector_failed`; the transaction must roll back
   */
  apply(events: readonly RecordedEvent[]): void {
    const first = this.#events.next - events.length
    for (const row of this.#rows) {
      if (row.next !== null) continue
      const projector = this.#mine(row)
      if (projector === undefined) this.#setNext(row, first)
      else this.#run(projector, events, true)
    }
  }

  /** One slice of what the projectors of this process have missed. True while there is more. Inside the writer's transaction. */
  catchUp(): boolean {
    for (const row of this.#rows) if (this.#lagging(row)) this.#slice(row, this.#mine(row)!)
    return this.#rows.some((row) => this.#lagging(row))
  }

  #slice(row: ProjectorRow, projector: Projector): void {
    const from = row.next as number
    const quiet = from <= row.published
    const { events, next } = this.#events.slice(from, quiet ? Math.min(SLICE, row.published - from + 1) : SLICE)
    this.#connection.run('SAVEPOINT slice')
    try {
      if (events.length > 0) this.#run(projector, events, !quiet)
      this.#setNext(row, events.length === 0 ? null : next)
    } catch (error) {
      if (isEnvironment(error)) throw error
      this.#connection.run('ROLLBACK TO slice')
      this.#stalled.set(row.name, error)
      stalls.publish({ projector: row.name, offset: from, error })
    }
    this.#connection.run('RELEASE slice')
  }

  #run(projector: Projector, events: readonly RecordedEvent[], publishing: boolean): void {
    try {
      projector.apply(publishing ? this.#publishing : this.#quiet, events)
    } catch (error) {
      if (isEnvironment(error)) throw error
      throw reject('projector_failed', 'A projector could not apply an event; nothing was written.', {
        path: projector.name,
        hint: 'The projector must decide what to do with every event, also with one it does not understand.',
        details: { projector: projector.name, offset: Number(events[0]!.position.offset) },
        cause: error,
      })
    }
  }

  #transaction(publish: ProjectorTx['publish']): ProjectorTx {
    const connection = this.#connection
    const events = this.#events
    return {
      run: (sql: string, ...values: SqlValue[]) => connection.run(sql, ...values),
      all: <Row>(sql: string, ...values: SqlValue[]) => connection.all<Row>(sql, ...values),
      get: <Row>(sql: string, ...values: SqlValue[]) => connection.get<Row>(sql, ...values),
      publish,
      read: (stream: StreamKey, after = 0) => events.page(stream, after, Number.MAX_SAFE_INTEGER),
    }
  }

  #setNext(row: ProjectorRow, next: number | null): void {
    this.#connection.run('UPDATE projectors SET next = ? WHERE name = ?', next, row.name)
    row.next = next
  }

  #mine(row: ProjectorRow): Projector | undefined {
    const projector = this.#installed.get(row.name)
    return projector?.version === row.version && !this.#stalled.has(row.name) ? projector : undefined
  }

  #lagging(row: ProjectorRow): boolean {
    return row.next !== null && this.#mine(row) !== undefined
  }
}

/** Installs projectors and brings them up to the end. @throws why one of them could not follow */
export async function install(wanted: readonly Projector[], projectors: Projectors, writer: Writer): Promise<void> {
  await writer.submit(() => projectors.installAll(wanted))
  // Catching up goes before any job, so this one runs when it is done.
  await writer.submit(() => {})
  for (const { name } of wanted) if (projectors.stallOf(name) !== undefined) throw projectors.stallOf(name)
}
