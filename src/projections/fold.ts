import { fatal, isThreadlogError, type ThreadlogError } from '../base/index.ts'
import { type EventHash, ZERO_HASH } from '../events/index.ts'
import type { Position, RecordedEvent } from '../log/index.ts'
import { evolve } from './evolve.ts'
import { initial, type ThreadState } from './state.ts'

/** Why a thread stands still, and where (R7). Later events of it are not folded until `thread.repaired` names the version. */
export interface Quarantine {
  readonly version: number
  readonly position: Position
  readonly code: string
  readonly message: string
}

/** A fold in progress. `head` moves on in quarantine too, so a repair can be appended. */
export interface Folded {
  readonly state: ThreadState
  readonly head: { readonly version: number; readonly hash: EventHash }
  readonly quarantine: Quarantine | undefined
  /** Versions a repair declared to be no-ops. */
  readonly skipped: ReadonlySet<number>
}

export const emptyFold: Folded = {
  state: initial,
  head: { version: 0, hash: ZERO_HASH },
  quarantine: undefined,
  skipped: new Set(),
}

/** True when the record repairs something this fold has not skipped: the thread must be folded again from its first event. */
export const asksForRefold = (folded: Folded, record: RecordedEvent): boolean => {
  const version = repairedVersion(record)
  return version !== undefined && !folded.skipped.has(version)
}

const repairedVersion = (record: RecordedEvent): number | undefined =>
  record.event?.type === 'thread.repaired/1' ? record.event.data.version : undefined

/** Adds one accepted record. Never throws: what cannot be folded puts the thread in quarantine. */
export function foldRecord(folded: Folded, record: RecordedEvent): Folded {
  const head = { version: record.version, hash: record.hash }
  if (record.version !== folded.head.version + 1)
    return quarantined(folded, record, head, fatal('event_missing', `Version ${folded.head.version + 1} is missing.`))
  if (folded.quarantine) return { ...folded, head }
  if (folded.skipped.has(record.version))
    return { ...folded, head, state: { ...folded.state, version: record.version, hash: record.hash } }
  if (!record.event)
    return quarantined(
      folded,
      record,
      head,
      fatal(record.defect?.code ?? 'event_undecodable', record.defect?.message ?? 'The record cannot be read.'),
    )
  if (record.event.previous !== folded.head.hash)
    return quarantined(folded, record, head, fatal('chain_broken', `Version ${record.version} does not continue the hash chain.`))
  try {
    return { state: evolve(folded.state, record.event), head, quarantine: undefined, skipped: folded.skipped }
  } catch (error) {
    const known = isThreadlogError(error) ? error : fatal('event_unfoldable', 'The fold failed on this event.')
    return quarantined(folded, record, head, known)
  }
}

const describe = (record: RecordedEvent, error: ThreadlogError): Quarantine => ({
  version: record.version,
  position: record.position,
  code: error.code,
  message: error.message,
})

const quarantined = (folded: Folded, record: RecordedEvent, head: Folded['head'], error: ThreadlogError): Folded => ({
  ...folded,
  head,
  quarantine: folded.quarantine ?? describe(record, error),
})

/**
 * Folds records on top of `from`. If a repair turns up, folds once more from the start with the repaired versions skipped:
 * `all` must then give every record of the stream.
 */
export function foldAll(records: readonly RecordedEvent[], from: Folded = emptyFold): Folded | 'refold' {
  let folded = from
  for (const record of records) {
    if (asksForRefold(folded, record)) return 'refold'
    folded = foldRecord(folded, record)
  }
  return folded
}

/** Versions that repairs among `records` declare to be no-ops. */
export const repairedVersions = (records: readonly RecordedEvent[]): ReadonlySet<number> =>
  new Set(records.flatMap((record) => repairedVersion(record) ?? []))

/** Folds a whole stream from its first record, repairs included. */
export function foldStream(records: readonly RecordedEvent[]): Folded {
  let folded: Folded = { ...emptyFold, skipped: repairedVersions(records) }
  for (const record of records) folded = foldRecord(folded, record)
  return folded
}
