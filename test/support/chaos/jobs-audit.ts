import type { ThreadState, Wait } from '../../../src/projections/index.ts'
import { FREIGHT } from './jobs.ts'

/**
 * Jobs whose ids others may want: at most one wait has each, what is reserved has its wait, and no result is held that a wait could take. Answers which wait
 * an external id belongs to, and what became of the ids.
 */
export function checkJobs(
  reserved: ReadonlyMap<string, ThreadState>,
  waits: ReadonlyMap<string, Wait>,
  violate: (what: string) => void,
): { waitOf: Map<string, string>; counts: Record<string, number> } {
  const waitOf = new Map<string, string>()
  const counts: Record<string, number> = {}
  const count = (what: string, n = 1) => void (counts[what] = (counts[what] ?? 0) + n)
  const keys = new Map<string, Wait>()
  for (const wait of waits.values()) {
    if (wait.provider !== FREIGHT) continue
    const other = waitOf.get(wait.externalId)
    if (other !== undefined) violate(`job ${wait.externalId}: waits ${other} and ${wait.id}`)
    waitOf.set(wait.externalId, wait.id)
    keys.set(wait.externalIdKey, wait)
    count(wait.externalId.startsWith('race-') ? 'waits that others wanted' : 'waits')
  }
  for (const [stream, { reservation, early }] of reserved) {
    if (reservation?.status === 'taken') {
      const wait = waits.get(reservation.holder.id)
      if (!wait) violate(`reservation ${stream}: taken, and no wait rests on it`)
      else if (wait.generation !== reservation.generation) violate(`reservation ${stream}: its wait quotes another generation`)
    }
    if (reservation) count(`reservations ${reservation.status}`)
    if (reservation && reservation.generation > 1) count('taken more than once')
    for (const held of early?.held ?? []) {
      if (keys.has(held.externalIdKey)) violate(`job ${keys.get(held.externalIdKey)?.externalId}: its result is still held`)
      count('results without a wait, still held')
    }
    count('early results told', early?.settled.length ?? 0)
  }
  return { waitOf, counts }
}
