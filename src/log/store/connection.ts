import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import type { Sql, SqlValue } from '../ports.ts'
import { closed, isBusy, translate } from './errors.ts'

/** Statements kept prepared; texts are literals of this package and of projectors, so the bound is only a net. */
const MAX_STATEMENTS = 512

/** Milliseconds between two looks at a locked file; the spread keeps two waiters from meeting again and again. */
export const busyPause = (): number => 0.5 + Math.random() * 2

/** One database handle with its prepared statements. Errors come out as SQLite's own; see {@link translate}. */
export class Connection implements Sql {
  readonly file: string
  readonly busyTimeoutMs: number
  readonly #db: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  #closed = false
  /** The data version while nothing else was read; see {@link dataVersion}. */
  #version: number | undefined

  constructor(db: DatabaseSync, file: string, busyTimeoutMs: number) {
    this.#db = db
    this.file = file
    this.busyTimeoutMs = busyTimeoutMs
  }

  get closed(): boolean {
    return this.#closed
  }

  get inTransaction(): boolean {
    return this.#db.isTransaction
  }

  exec(sql: string): void {
    this.#version = undefined
    this.#db.exec(sql)
  }

  prepare(sql: string): StatementSync {
    this.#version = undefined
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      if (this.#statements.size >= MAX_STATEMENTS) this.#statements.delete(this.#statements.keys().next().value as string)
      this.#statements.set(sql, (statement = this.#db.prepare(sql)))
    }
    return statement
  }

  run(sql: string, ...values: SqlValue[]): number {
    return Number(this.prepare(sql).run(...values).changes)
  }

  all<Row = Record<string, SqlValue>>(sql: string, ...values: SqlValue[]): Row[] {
    return this.prepare(sql).all(...values) as Row[]
  }

  /** As {@link all}, each row a list of its columns: half the cost where rows are many. A text asked this way is asked no other way. */
  lists<Row extends unknown[]>(sql: string, ...values: SqlValue[]): Row[] {
    const statement = this.prepare(sql)
    statement.setReturnArrays(true)
    return statement.all(...values) as unknown[] as Row[]
  }

  get<Row = Record<string, SqlValue>>(sql: string, ...values: SqlValue[]): Row | undefined {
    return this.prepare(sql).get(...values) as Row | undefined
  }

  /**
   * Changes whenever another connection, of any process, has committed; own commits do not change it. Who asks in the same stretch of
   * microtasks gets the same answer, for they were all waiting when the file was asked, until this connection reads anything else: what
   * that shows may be newer, and nobody who has seen it may be told that nothing has changed.
   */
  dataVersion(): number {
    if (this.#version !== undefined) return this.#version
    const { data_version: version } = this.prepare('PRAGMA data_version').get() as { data_version: number }
    queueMicrotask(this.#forget)
    return (this.#version = version)
  }

  readonly #forget = () => {
    this.#version = undefined
  }

  /** Reads at once. @throws ThreadlogError `log_busy`, `log_closed`, … */
  look<T>(read: () => T): T {
    if (this.#closed) throw closed()
    try {
      return read()
    } catch (error) {
      throw translate(error, this.file)
    }
  }

  /** Reads, and waits without blocking the event loop while the file is locked (SQLite recovers after a crash, for instance). */
  async query<T>(read: () => T): Promise<T> {
    const deadline = performance.now() + this.busyTimeoutMs
    for (;;) {
      if (this.#closed) throw closed()
      try {
        return read()
      } catch (error) {
        if (!isBusy(error) || performance.now() >= deadline) throw translate(error, this.file)
      }
      await delay(busyPause())
    }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#statements.clear()
    this.#db.close()
  }
}
