import { Payload } from '../base/index.ts'
import { PrincipalGrantSnapshot } from '../continuations/index.ts'
import { findWait, type ThreadState } from '../projections/index.ts'

/**
 * What a run may do, kept with what it waits for (continuation spec §1.6): names only, of a principal that has a list of them; null: nothing is kept.
 * @throws ThreadlogError `invalid_argument` for a name that cannot be one
 */
export function grantsOf(principal: unknown): Payload | null {
  const permissions =
    typeof principal === 'object' && principal !== null && 'permissions' in principal ? principal.permissions : undefined
  return Array.isArray(permissions) ? Payload.of(PrincipalGrantSnapshot.capture({ permissions })?.toJSON() ?? null) : null
}

/** For whom a resumed run acts where nobody says so: a new principal with what it could do when it suspended; undefined: nothing was kept. */
export function restoredPrincipal(state: ThreadState): unknown {
  for (const id of state.run?.trigger.continuationIds ?? []) {
    const grants = findWait(state, id)?.grants
    if (grants) return PrincipalGrantSnapshot.parse(grants.value).restore()
  }
  return undefined
}
