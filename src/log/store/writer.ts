import type { Connection } from './connection.ts'
import { busyPause } from './connection.ts'
import { closed, isBusy, isEnvironment, translate } from './errors.ts'

/** State in memory that follows the transaction. */
export interface Participant {
  /** The write lock is held; `dataVersion` differs from the last one when another connection has written in between. */
  begin(dataVersion: number): void
  committed(): void
  rolledBack(): void
}

interface Job {
  run(): unknown
  resolve(value: unknown): void
  reject(error: unknown): void
  /** Monotonic milliseconds after which a locked file is no longer waited for; set when it was first found locked. */
  deadline?: number
  /** Runs in a transaction of its own: another job of its batch failed. */
  alone: boolean
}

/** Jobs of one transaction; beyond it the event loop gets a turn. */
const MAX_BATCH = 512

/** Milliseconds for which a locked file is tried again each turn: about one commit of another process. After that, in pauses. */
const EAGER_MS = 0.5

/**
 * Group commit: everything submitted in one turn of the event loop runs in one `BEGIN IMMEDIATE`. A locked file is waited for
 * without blocking the loop. A job that throws is refused alone: its batch is rolled back and the others run again, one by one,
 * so a job must be repeatable. A condition of the file (full, read-only, damaged) refuses the whole batch.
 */
export class Writer {
  readonly #connection: Connection
  readonly #participants: readonly Participant[]
  /** Work that goes before any job; true while there is more of it. */
  readonly #prepare: () => boolean
  #queue: Job[] = []
  #scheduled = false
  #closing = false
  #stopped: unknown
  #idle: (() => void)[] = []
  /** Monotonic milliseconds since when the file has been found locked. */
  #lockedSince: number | undefined

  constructor(connection: Connection, participants: readonly Participant[], prepare: () => boolean) {
    this.#connection = connection
    this.#participants = participants
    this.#prepare = prepare
  }

  /** Runs `run` inside the next transaction and resolves with its value once that is durable. */
  submit<T>(run: () => T): Promise<T> {
    if (this.#closing) return Promise.reject(closed())
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped)
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ run, resolve: resolve as (value: unknown) => void, reject, alone: false })
      this.#schedule()
    })
  }

  /** Refuses with `error` whatever is not yet decided and whatever comes. */
  stop(error: unknown): void {
    this.#stopped = error
    for (const job of this.#queue.splice(0)) job.reject(error)
  }

  /** Accepts nothing more and resolves once everything submitted is decided. */
  async close(): Promise<void> {
    this.#closing = true
    if (this.#scheduled) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    const batch = this.#take()
    const pause = this.#attempt(batch)
    if (this.#queue.length === 0) {
      this.#scheduled = false
      for (const resolve of this.#idle.splice(0)) resolve()
    } else if (pause > 0) setTimeout(() => this.#flush(), pause)
    else setImmediate(() => this.#flush())
  }

  #take(): Job[] {
    const alone = this.#queue.findIndex((job) => job.alone)
    const size = alone === 0 ? 1 : Math.min(alone < 0 ? this.#queue.length : alone, MAX_BATCH)
    return this.#queue.splice(0, size)
  }

  /** One transaction. Returns the milliseconds to wait before the next. */
  #attempt(batch: Job[]): number {
    const done: [Job, unknown][] = []
    let current: Job | undefined
    try {
      this.#connection.run('BEGIN IMMEDIATE')
      this.#lockedSince = undefined
      const dataVersion = this.#connection.dataVersion()
      for (const participant of this.#participants) participant.begin(dataVersion)
      const ready = !this.#prepare()
      if (ready) {
        for (current of batch) done.push([current, current.run()])
        current = undefined
      }
      this.#connection.run('COMMIT')
      if (!ready) this.#queue.unshift(...batch)
    } catch (error) {
      return this.#failed(batch, current, error)
    }
    for (const participant of this.#participants) participant.committed()
    for (const [job, value] of done) job.resolve(value)
    return 0
  }

  #failed(batch: Job[], culprit: Job | undefined, error: unknown): number {
    this.#rollBack()
    if (isBusy(error)) return this.#wait(batch, error)
    if (culprit === undefined || isEnvironment(error)) {
      const coded = translate(error, this.#connection.file)
      for (const job of batch) job.reject(coded)
      return 0
    }
    culprit.reject(translate(error, this.#connection.file))
    const others = batch.filter((job) => job !== culprit)
    for (const job of others) job.alone = true
    this.#queue.unshift(...others)
    return 0
  }

  #wait(batch: Job[], error: unknown): number {
    const now = performance.now()
    const waiting: Job[] = []
    for (const job of batch) {
      job.deadline ??= now + this.#connection.busyTimeoutMs
      if (job.deadline > now) waiting.push(job)
      else job.reject(translate(error, this.#connection.file))
    }
    this.#queue.unshift(...waiting)
    this.#lockedSince ??= now
    return now - this.#lockedSince < EAGER_MS ? 0 : busyPause()
  }

  #rollBack(): void {
    for (const participant of this.#participants) participant.rolledBack()
    try {
      if (this.#connection.inTransaction) this.#connection.exec('ROLLBACK')
    } catch {
      // SQLite has already rolled back on its own (full disk, I/O error).
    }
  }
}
