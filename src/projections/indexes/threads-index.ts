import type { Projector, ProjectorTx } from '../../log/index.ts'
import { SNAPSHOTS } from '../snapshot-table.ts'
import { Folds, type ThreadSteps } from './steps.ts'
import {
  INSERT_THREAD,
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
    version: 1,
    schema: SNAPSHOTS + THREADS,
    drop: 'DROP TABLE IF EXISTS threads;',
    apply(tx, events) {
      for (const thread of folds.steps(tx, events)) write(tx, thread)
    },
  }
}

type Standing = Pick<ThreadRow, 'id' | 'version' | 'last_end' | 'updated_at' | 'application'>

function write(tx: ProjectorTx, thread: ThreadSteps): void {
  if (thread.after.state.reservation) return
  const old = tx.get<Standing>(
    'SELECT id, version, last_end, updated_at, application FROM threads WHERE stream = ?',
    thread.stream,
  )
  if (!old) tx.run(INSERT_THREAD, ...openingValues(openingOf(thread)), ...movingValues(movingOf(thread, undefined)))
  else if (thread.after.head.version > old.version || thread.refolded) {
    tx.run(UPDATE_THREAD, ...movingValues(movingOf(thread, old)), old.id)
    if (old.application === '' && thread.after.state.identity) tx.run(REOPEN_THREAD, ...openingValues(openingOf(thread)), old.id)
  }
}
