import type { LogEvent } from '../../events/index.ts'
import type { Projector, ProjectorTx } from '../../log/index.ts'
import { SNAPSHOTS } from '../snapshot-table.ts'
import { findWait, initial, type Wait } from '../state.ts'
import { Folds, type ThreadSteps } from './steps.ts'
import { UPDATE_WAIT, UPSERT_WAIT, WAITS, waitRow, waitUpdate, waitValues } from './wait-row.ts'

/** Keeps one row per wait of any status: the table `waits`. */
export function waitsIndex(folds: Folds = new Folds()): Projector {
  return {
    name: 'waits',
    version: 3,
    schema: SNAPSHOTS + WAITS,
    drop: 'DROP TABLE IF EXISTS waits;',
    apply(tx, events) {
      for (const thread of folds.steps(tx, events)) write(tx, thread)
    },
  }
}

function write(tx: ProjectorTx, thread: ThreadSteps): void {
  const { identity } = thread.after.state
  if (!identity) return
  if (thread.refolded) tx.run('DELETE FROM waits WHERE stream = ?', thread.stream)
  for (const { event } of thread.steps)
    if (event?.type === 'invocation.deleted/1')
      tx.run('DELETE FROM waits WHERE stream = ? AND run_id = ?', thread.stream, event.data.run_id)
  for (const wait of thread.refolded ? allWaits(thread) : touchedWaits(thread))
    if (isNew(thread, wait) || tx.run(UPDATE_WAIT, ...waitUpdate(identity.stream, wait)) === 0)
      tx.run(UPSERT_WAIT, ...waitValues(waitRow(identity, wait)))
}

const isNew = ({ steps, refolded }: ThreadSteps, { id }: Wait): boolean =>
  refolded || findWait(steps[0]?.before.state ?? initial, id) === undefined

const allWaits = ({ after: { state } }: ThreadSteps): Wait[] => [
  ...[...state.closedWaits].map(([, wait]) => wait),
  ...state.waits.values(),
]

function touchedWaits({ steps, after }: ThreadSteps): Wait[] {
  const ids = new Set(steps.flatMap(({ event }) => (event && continuationId(event)) ?? []))
  return [...ids].flatMap((id) => findWait(after.state, id) ?? [])
}

/** The wait a `continuation.*` event is about. */
export const continuationId = (event: LogEvent): string | undefined =>
  'continuation_id' in event.data ? event.data.continuation_id : undefined
