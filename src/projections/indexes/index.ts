import type { Projector } from '../../log/index.ts'
import { checkpointsOut } from './checkpoints-out.ts'
import { heldIndex } from './held-index.ts'
import { requestsOut } from './requests-out.ts'
import { Folds } from './steps.ts'
import { threadsIndex } from './threads-index.ts'
import { waitsIndex } from './waits-index.ts'

export { checkpointsOut } from './checkpoints-out.ts'
export * from './edge-records.ts'
export { countHeld, expiredHeld, type HeldRow, heldIndex, heldPage } from './held-index.ts'
export { findThread, listThreads, type ThreadFilter } from './queries.ts'
export { requestsOut } from './requests-out.ts'
export { Folds } from './steps.ts'
export {
  type Due,
  dueWaits,
  requestedThreads,
  resolvedThreads,
  runningThreads,
  type SweepPage,
  waitingSessions,
} from './sweeps.ts'
export { runIdOf, statusOf, type ThreadRow } from './thread-row.ts'
export { threadsIndex } from './threads-index.ts'
export {
  countWaits,
  listWaits,
  pendingOfProvider,
  type WaitCount,
  type WaitFilter,
  waitByExternalId,
  waitById,
  waitPlace,
} from './wait-queries.ts'
export type { WaitRow } from './wait-row.ts'
export { waitsIndex } from './waits-index.ts'

/** All projectors of one log. They share their folds, so each event is folded once. */
export function indexProjectors(folds: Folds = new Folds()): Projector[] {
  return [threadsIndex(folds), waitsIndex(folds), heldIndex(folds), requestsOut(folds), checkpointsOut(folds)]
}
