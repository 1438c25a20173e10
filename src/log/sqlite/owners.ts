import { type Clock, isThreadlogError, systemIds } from '../../base/index.ts'
import type { Owners } from '../ports.ts'
import { type Connection, isGone, thisProcess, type Writer } from '../store/index.ts'

const RENEW_MS = 2_000
const EXPIRE_MS = 10_000
/** Rows of owners long gone are removed by the next one that registers. */
const FORGET_MS = 86_400_000

interface OwnerRow {
  pid: number
  host: string
  start_time: string
  expires_at: number
}

/** Owners of a log in memory: this process, and nobody else. */
export const soleOwner = (self = systemIds.token()): Owners => ({
  self,
  isDead: async (owner) => owner !== self,
  isProvenDead: async (owner) => owner !== self,
})

/** Owners of a file: one row per open log, renewed every 2 s, expired after 10 s (design §7 "Owners"). */
export class FileOwners implements Owners {
  readonly self = systemIds.token()
  readonly #connection: Connection
  readonly #writer: Writer
  readonly #clock: Clock
  readonly #process = thisProcess()
  #timer: NodeJS.Timeout | undefined

  constructor(connection: Connection, writer: Writer, clock: Clock) {
    this.#connection = connection
    this.#writer = writer
    this.#clock = clock
  }

  /** Registers this process and keeps it alive. A file that cannot be written has no owners; on a full disk the next renewal registers. */
  async register(): Promise<void> {
    try {
      await this.#writer.submit(() => {
        this.#connection.run('DELETE FROM owners WHERE expires_at < ?', this.#clock.now() - FORGET_MS)
        this.#renew()
      })
    } catch (error) {
      if (isThreadlogError(error, 'log_read_only')) return
      if (!isThreadlogError(error, 'log_full')) throw error
    }
    // A renewal that fails is made good by the next; five in a row let the row expire, as they should.
    this.#timer = setInterval(() => this.#writer.submit(() => this.#renew()).catch(() => {}), RENEW_MS).unref()
  }

  /** Stops renewing and takes the row away: work of this owner is free at once. */
  async release(): Promise<void> {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    await this.#writer.submit(() => this.#connection.run('DELETE FROM owners WHERE owner_id = ?', this.self)).catch(() => {})
  }

  async isDead(owner: string): Promise<boolean> {
    if (owner === this.self) return false
    const row = await this.#find(owner)
    return row === undefined || row.expires_at <= this.#clock.now() || isGone(identityOf(row))
  }

  async isProvenDead(owner: string): Promise<boolean> {
    if (owner === this.self) return false
    const row = await this.#find(owner)
    return row !== undefined && isGone(identityOf(row))
  }

  #find(owner: string): Promise<OwnerRow | undefined> {
    const sql = 'SELECT pid, host, start_time, expires_at FROM owners WHERE owner_id = ?'
    return this.#connection.query(() => this.#connection.get<OwnerRow>(sql, owner))
  }

  #renew(): void {
    const { pid, host, startTime } = this.#process
    this.#connection.run(
      `INSERT INTO owners(owner_id, pid, host, start_time, expires_at) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET expires_at = excluded.expires_at`,
      this.self,
      pid,
      host,
      startTime,
      this.#clock.now() + EXPIRE_MS,
    )
  }
}

const identityOf = (row: OwnerRow) => ({ pid: row.pid, host: row.host, startTime: row.start_time })
