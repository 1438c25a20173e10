import { isThreadlogError } from '../base/index.ts'
import { decodeEnvelope, type Envelope, type EventHash, payloadsOf, type StreamKey, ZERO_HASH } from '../events/index.ts'
import type { Position, RecordedEvent } from '../log/index.ts'
import { type Folded, foldStream } from './fold.ts'
import { stateHash } from './snapshot.ts'

/**
 * What can be wrong with the records of a thread:
 * - `missing`: a version is not there
 * - `hash-mismatch`: a record is not the one its successor was written after
 * - `undecodable`: a record this build cannot read, though nobody has changed it since
 * - `misplaced`: a record of another thread or version
 * - `commit-incomplete`: records that were accepted together are not all there, or not as they were numbered
 * - `content-missing`, `content-mismatch`: a value that a record refers to is not there, or not what was put there
 * - `unfoldable`: the records are as they were accepted, but make no state
 */
export type DamageCode =
  | 'missing'
  | 'hash-mismatch'
  | 'undecodable'
  | 'misplaced'
  | 'commit-incomplete'
  | 'content-missing'
  | 'content-mismatch'
  | 'unfoldable'

/** The first fault of a thread. */
export interface Damage {
  readonly code: DamageCode
  /** Version of the faulty record; for `missing` the version that is not there. */
  readonly version: number
  /** Where the faulty record stands; for `missing`, the one found instead, if there is one. */
  readonly position: Position | undefined
  /** One sentence, without payload. */
  readonly message: string
}

/** What the records of a thread are worth. */
export interface RecordsReport {
  readonly events: number
  /** Version and hash of the last record. */
  readonly head: { readonly version: number; readonly hash: EventHash }
  readonly damage: Damage | undefined
  /** The fold of all records, whatever is wrong with them. */
  readonly folded: Folded
}

interface Link {
  readonly record: RecordedEvent
  /** Absent when not even the envelope can be read. */
  readonly envelope: (Envelope & { hash: EventHash }) | undefined
}

/**
 * Checks everything accepted of one thread, from its first record on: versions without gaps, the hash chain, complete commits, and that
 * it folds. Hashes are made from the stored bytes, not taken from whoever read them. Pure.
 */
export function verifyRecords(stream: StreamKey, records: readonly RecordedEvent[]): RecordsReport {
  const links = records.map((record): Link => ({ record, envelope: envelopeOf(record) }))
  const folded = foldStream(records)
  const damage = chainDamage(stream, links) ?? commitDamage(links) ?? contentDamage(links) ?? foldDamage(folded)
  return { events: records.length, head: folded.head, damage, folded }
}

function envelopeOf({ bytes }: RecordedEvent): Link['envelope'] {
  try {
    return decodeEnvelope(bytes)
  } catch {
    return undefined
  }
}

function chainDamage(stream: StreamKey, links: readonly Link[]): Damage | undefined {
  for (const [i, link] of links.entries()) {
    const { version } = link.record
    if (version !== i + 1) return missing(i + 1, link.record)
    if (isBroken(links, i)) return altered(links, i)
    if (i === 0 && link.envelope && link.envelope.previous !== ZERO_HASH)
      return at(link, 'hash-mismatch', 'The first event names one before it.')
    if (!link.envelope) return at(link, 'undecodable', 'The record cannot be read.')
    if (link.envelope.stream !== stream || link.envelope.version !== version)
      return at(link, 'misplaced', 'The record belongs to another thread or version.')
    if (link.record.defect) return at(link, 'undecodable', link.record.defect.message)
  }
  return undefined
}

/** True when the next record was written after another one than this, as it is now. */
function isBroken(links: readonly Link[], i: number): boolean {
  const [link, next] = [links[i], links[i + 1]]
  if (!link || !next?.envelope || next.record.version !== link.record.version + 1) return false
  return next.envelope.previous !== hashOf(link)
}

/** A record without a readable envelope was hashed by who read it. */
const hashOf = ({ record, envelope }: Link): EventHash => envelope?.hash ?? record.hash

/** Of two records that do not fit, the later one was changed if it does not fit what follows it either. */
function altered(links: readonly Link[], i: number): Damage {
  const link = links[isBroken(links, i + 1) ? i + 1 : i] as Link
  return at(link, 'hash-mismatch', 'The record is not the one that its successor was written after.')
}

function commitDamage(links: readonly Link[]): Damage | undefined {
  let open: Envelope['commit'] | undefined
  for (const link of links) {
    const { commit, version } = link.envelope as Envelope
    const { id, base, index, size } = commit
    const follows = open
      ? id === open.id && index === open.index + 1 && size === open.size && base === open.base
      : index === 0 && size >= 1 && base === version - 1
    if (!follows) return at(link, 'commit-incomplete', 'The record does not continue the commit before it.')
    open = index + 1 < size ? commit : undefined
  }
  const last = links.at(-1)
  if (!open || !last) return undefined
  const version = last.record.version + 1
  return {
    code: 'commit-incomplete',
    version,
    position: undefined,
    message: `The last commit lacks ${open.size - open.index - 1} records.`,
  }
}

function contentDamage(links: readonly Link[]): Damage | undefined {
  for (const link of links) {
    const { event } = link.record
    for (const payload of event ? payloadsOf(event.type, event.data) : [])
      if (payload.kept) {
        try {
          payload.bytes
        } catch (error) {
          if (!isThreadlogError(error, 'content_missing', 'content_corrupt')) throw error
          return at(link, error.code === 'content_missing' ? 'content-missing' : 'content-mismatch', error.message)
        }
      }
  }
  return undefined
}

function foldDamage({ quarantine, state }: Folded): Damage | undefined {
  if (quarantine) {
    const { version, position, code, message } = quarantine
    return { code: 'unfoldable', version, position, message: `${message} (${code})` }
  }
  try {
    stateHash(state)
    return undefined
  } catch (error) {
    const message = isThreadlogError(error) ? error.message : 'The state cannot be written down.'
    return { code: 'unfoldable', version: state.version, position: undefined, message }
  }
}

const at = ({ record }: Link, code: DamageCode, message: string): Damage => ({
  code,
  version: record.version,
  position: record.position,
  message,
})

const missing = (version: number, found: RecordedEvent): Damage => ({
  code: 'missing',
  version,
  position: found.position,
  message: `Version ${version} is not there; version ${found.version} stands in its place.`,
})
