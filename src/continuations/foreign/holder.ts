import type { ForeignRun } from '../../projections/index.ts'
import { CheckpointConflictError } from '../model/errors.ts'

/** A claim, as its holder names it. */
export interface Lease {
  readonly continuationId: string
  /** The revision of the record that the claim gave. */
  readonly fence: number
}

/** True if what is written for the run comes from the holder of its claim, where that is for a time. */
export const isHolder = ({ lease: own }: ForeignRun, lease: Lease | undefined): boolean =>
  own?.continuationId === lease?.continuationId && own?.fence === lease?.fence

/** @throws CheckpointConflictError what is written for a run whose claim another one holds */
export function checkHolder(run: ForeignRun, lease: Lease | undefined): void {
  if (!isHolder(run, lease))
    throw new CheckpointConflictError('The run goes on under another claim.', {
      hint: 'Quote continuation id and revision of the claim as `lease`. If another process has taken it over, stop.',
    })
}
