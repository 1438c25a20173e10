import type { Projector, ProjectorTx } from '../../log/index.ts'
import { SNAPSHOTS } from '../snapshot-table.ts'
import { isReservation } from '../state.ts'
import { Folds, type ThreadSteps } from './steps.ts'
import {
  INSERT_THREAD,
  MOVE_THREAD,
  movingOf,
  movingValues,
  openingOf,
  openingValues,
  REOPEN_THREAD,
  THREADS,
  type ThreadRow,
  UPDATE_THREAD,
} from './thread-row.ts'

/** Keeps one row per thread that says what its fold says: the table `threads`. */
export function threadsIndex(folds: Folds = new Folds()): Projector {
  return {
    name: 'threads',
    version: 2,
    schema: SNAPSHOTS + THREADS,
    drop: 'DROP TABLE IF EXISTS threads;',
    apply(tx, events) {
      for (const thread of folds.steps(tx, events)) write(tx, thread)
    },
  }
}

type Standing = Pick<ThreadRow, 'id' | 'version' | 'last_end' | 'updated_at' | 'application'>

function write(tx: ProjectorTx, thread: ThreadSteps): void {
  const { stream, steps, after, refolded } = thread
  if (isReservation(after.state)) return
  const now = movingOf(thread)
  const goesOn = steps[0]?.before.head.version !== 0 && !refolded
  if (goesOn && tx.run(MOVE_THREAD, ...movingValues(now), stream, after.head.version) > 0) return
  const old = tx.get<Standing>('SELECT id, version, last_end, updated_at, application FROM threads WHERE stream = ?', stream)
  const row = { ...now, last_end: now.last_end ?? old?.last_end ?? null, updated_at: now.updated_at ?? old?.updated_at ?? 0 }
  if (!old) tx.run(INSERT_THREAD, ...openingValues(openingOf(thread)), ...movingValues(row))
  else if (after.head.version > old.version || refolded) {
    tx.run(UPDATE_THREAD, ...movingValues(row), old.id)
    if (old.application === '' && after.state.identity) tx.run(REOPEN_THREAD, ...openingValues(openingOf(thread)), old.id)
  }
}
