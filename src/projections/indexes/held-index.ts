import type { Projector, Sql } from '../../log/index.ts'
import { SNAPSHOTS } from '../snapshot-table.ts'
import type { HeldResult } from '../state.ts'
import { Folds } from './steps.ts'

/** A row of `held_results`: a result that came before its wait and has no final verdict. Times are epoch milliseconds. */
export interface HeldRow {
  /** Counts up in the order of the log. */
  readonly id: number
  /** The reservation's stream, and the version of the event that holds it. */
  readonly stream: string
  readonly version: number
  readonly application: string
  readonly provider: string
  readonly external_id_key: string
  readonly expires_at: number
}

const TABLE = `
CREATE TABLE IF NOT EXISTS held_results(
  id INTEGER PRIMARY KEY,
  stream TEXT NOT NULL,
  version INTEGER NOT NULL,
  application TEXT NOT NULL,
  provider TEXT NOT NULL,
  external_id_key TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  UNIQUE(stream, version)
);
CREATE INDEX IF NOT EXISTS held_of_provider ON held_results(application, provider);
CREATE INDEX IF NOT EXISTS held_until ON held_results(application, expires_at);`

const INSERT = `
INSERT OR IGNORE INTO held_results(stream, version, application, provider, external_id_key, expires_at) VALUES (?, ?, ?, ?, ?, ?)`

/** Keeps one row per held result: the table `held_results`. */
export function heldIndex(folds: Folds = new Folds()): Projector {
  return {
    name: 'held',
    version: 1,
    schema: SNAPSHOTS + TABLE,
    drop: 'DROP TABLE IF EXISTS held_results;',
    apply(tx, events) {
      for (const { stream, steps, after, refolded } of folds.steps(tx, events)) {
        const add = (held: HeldResult) =>
          tx.run(INSERT, stream, held.version, held.application, held.provider, held.externalIdKey, held.expiresAt)
        const held = after.state.early?.held ?? []
        if (refolded) {
          tx.run('DELETE FROM held_results WHERE stream = ?', stream)
          held.forEach(add)
        } else
          for (const { event } of steps) {
            if (event?.type === 'reservation.held/1') held.filter(({ version }) => version === event.version).forEach(add)
            if (event?.type === 'reservation.settled/1')
              tx.run('DELETE FROM held_results WHERE stream = ? AND version = ?', stream, event.data.held)
          }
      }
    },
  }
}

/** How many results of a provider are held, counted up to `limit`. */
export const countHeld = (sql: Sql, o: { application: string; provider: string; limit: number }): number =>
  sql.all<{ n: number }>(
    'SELECT count(*) AS n FROM (SELECT 1 FROM held_results WHERE application = ? AND provider = ? LIMIT ?)',
    o.application,
    o.provider,
    o.limit,
  )[0]?.n ?? 0

/** Held results whose time is over, longest first. */
export const expiredHeld = (sql: Sql, o: { application: string; now: number; limit: number }): HeldRow[] =>
  sql.all<HeldRow>(
    'SELECT * FROM held_results WHERE application = ? AND expires_at <= ? ORDER BY expires_at, id LIMIT ?',
    o.application,
    o.now,
    o.limit,
  )

const ANSWERABLE = `
SELECT page.*, EXISTS (
  SELECT 1 FROM waits WHERE waits.application = page.application AND waits.provider = page.provider
    AND waits.external_id_key = page.external_id_key
) AS answers
FROM (SELECT * FROM held_results WHERE id > ? ORDER BY id LIMIT ?) AS page ORDER BY page.id`

/** A page of held results, each with whether its wait is there now. */
export const heldPage = (sql: Sql, o: { after: number; limit: number }): (HeldRow & { readonly answers: 0 | 1 })[] =>
  sql.all<HeldRow & { answers: 0 | 1 }>(ANSWERABLE, o.after, o.limit)
