import { COMMIT_LIMITS, type EventHash, type StreamKey, ZERO_HASH } from '../events/index.ts'

/** What acceptance looks at: one record of a partition, taken from the envelope inside its hashed body. */
export interface ArbitrationRecord {
  readonly stream: StreamKey
  readonly version: number
  readonly commit: { readonly id: string; readonly base: number; readonly index: number; readonly size: number }
  readonly previous: EventHash
  readonly hash: EventHash
  /** Position in the partition. Offsets rise; holes between them are legal and break nothing. */
  readonly offset: number
}

/** Version and hash of a stream's newest accepted event. */
export interface Head {
  readonly version: number
  readonly hash: EventHash
}

/** A commit whose records so far stand directly behind each other and are not yet complete. */
export interface OpenCommit<R extends ArbitrationRecord = ArbitrationRecord> {
  readonly records: readonly R[]
}

/**
 * Why records are void (kept in the log, never folded):
 * - `malformed`: index, size, base and version contradict each other
 * - `headless`: the records of its commit that should stand directly before it do not
 * - `interrupted`: another record came before the commit was complete
 * - `broken-chain`: a record of the commit does not name the one before it
 * - `base-behind`: the stream was further than the commit's base; final
 * - `base-ahead`: the stream was not yet at the commit's base; a later copy may be accepted
 * - `head-mismatch`: based on the stream's version, but on another event: the writer saw a log that is not this one
 */
export type VoidReason =
  | 'malformed'
  | 'headless'
  | 'interrupted'
  | 'broken-chain'
  | 'base-behind'
  | 'base-ahead'
  | 'head-mismatch'

export interface VoidRecords<R extends ArbitrationRecord = ArbitrationRecord> {
  readonly reason: VoidReason
  readonly records: readonly R[]
}

/** Outcome of one record. At most one commit becomes accepted; up to two groups of records become void. */
export interface Arbitration<R extends ArbitrationRecord = ArbitrationRecord> {
  /** The commit still open after this record: what the next call gets. */
  readonly open?: OpenCommit<R>
  /** The records of the commit this record completed, in order. */
  readonly accepted?: readonly R[]
  readonly voids?: readonly VoidRecords<R>[]
}

/**
 * The acceptance rule (R5), the same for every log and every reader: feed the records of one partition in offset order. A commit
 * is accepted when all its records stand directly behind each other, chain among themselves, and continue the stream's head.
 * The answer depends on nothing but the records and the heads, so readers that stop and start anywhere agree.
 * @param headOf the newest accepted event of a stream; undefined for a stream without events
 */
export function arbitrate<R extends ArbitrationRecord>(
  open: OpenCommit<R> | undefined,
  record: R,
  headOf: (stream: StreamKey) => Head | undefined,
): Arbitration<R> {
  if (open === undefined) return begin(record, headOf)
  const last = open.records[open.records.length - 1] as R
  if (!isNextOf(last, record)) {
    const step = begin(record, headOf)
    return { ...step, voids: [{ reason: 'interrupted', records: open.records }, ...(step.voids ?? [])] }
  }
  const records = [...open.records, record]
  if (!isWellFormed(record)) return { voids: [{ reason: 'malformed', records }] }
  if (record.previous !== last.hash) return { voids: [{ reason: 'broken-chain', records }] }
  return advance(records, headOf)
}

function begin<R extends ArbitrationRecord>(record: R, headOf: (stream: StreamKey) => Head | undefined): Arbitration<R> {
  if (!isWellFormed(record)) return { voids: [{ reason: 'malformed', records: [record] }] }
  if (record.commit.index !== 0) return { voids: [{ reason: 'headless', records: [record] }] }
  return advance([record], headOf)
}

function advance<R extends ArbitrationRecord>(records: R[], headOf: (stream: StreamKey) => Head | undefined): Arbitration<R> {
  const first = records[0] as R
  if (records.length < first.commit.size) return { open: { records } }
  const reason = mismatch(first, headOf(first.stream))
  return reason === undefined ? { accepted: records } : { voids: [{ reason, records }] }
}

function mismatch(first: ArbitrationRecord, head: Head | undefined): VoidReason | undefined {
  const version = head?.version ?? 0
  if (first.commit.base < version) return 'base-behind'
  if (first.commit.base > version) return 'base-ahead'
  return first.previous === (head?.hash ?? ZERO_HASH) ? undefined : 'head-mismatch'
}

/** A record that claims more than a commit may hold is void at once, so no reader waits for the rest. */
function isWellFormed({ version, commit: { base, index, size } }: ArbitrationRecord): boolean {
  return size >= 1 && size <= COMMIT_LIMITS.records && index >= 0 && index < size && base >= 0 && version === base + index + 1
}

/** Same commit, next index. Offsets are not compared: holes are legal, order is what the caller feeds. */
function isNextOf(last: ArbitrationRecord, record: ArbitrationRecord): boolean {
  const [a, b] = [last.commit, record.commit]
  return a.id === b.id && a.index + 1 === b.index && a.size === b.size && a.base === b.base && last.stream === record.stream
}

/**
 * The offset a reader may save after `last`: the first record of the open commit, else the one behind the last record. Reading
 * from there gives the same outcome as never having stopped.
 */
export function nextOffset(open: OpenCommit | undefined, last: ArbitrationRecord): number {
  return open?.records[0]?.offset ?? last.offset + 1
}

export type Fate = 'accepted' | 'refused' | 'open'

/**
 * What became of a commit, however often it was sent: the verdict belongs to its id, not to an offset.
 * @param standing commit id of the accepted record at (stream, base + 1); undefined while nothing stands there
 */
export function fateOf(commitId: string, standing: string | undefined): Fate {
  if (standing === undefined) return 'open'
  return standing === commitId ? 'accepted' : 'refused'
}
