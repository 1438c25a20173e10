import { fatal } from '../base/index.ts'
import { UNRECOGNISED } from '../events/index.ts'

/** An event this fold cannot apply: its thread is quarantined at that version (R7). */
export const unfoldable = (event: { type: string; version: number }, message: string) =>
  fatal('event_unfoldable', `${event.type} at version ${event.version}: ${message}`, {
    details: { type: event.type, version: event.version },
    hint: 'Inspect the thread with `threadlog replay`; `thread.repaired` skips the event.',
  })

/** A value of a closed list that this build knows. */
export function known<T extends string>(event: { type: string; version: number }, symbol: T): Exclude<T, typeof UNRECOGNISED> {
  if (symbol === UNRECOGNISED) throw unfoldable(event, 'a newer version wrote a value this one does not know.')
  return symbol as Exclude<T, typeof UNRECOGNISED>
}
