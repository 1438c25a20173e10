export { COLD_START_IDLE_SECONDS, coldStart, integrity, isCold } from './filters.ts'
export { closeOlder, closeUnanswered, mergeAdjacent, unanswered, withoutBrokenNatives } from './interrupted.ts'
export { asShown } from './model-view.ts'
