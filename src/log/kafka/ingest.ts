import { type LoadContent, sha256Hex } from '../../base/index.ts'
import {
  type Commit,
  decodeEnvelope,
  decodeEvent,
  type Envelope,
  type EventHash,
  type LogEvent,
  type StreamKey,
} from '../../events/index.ts'
import { type ArbitrationRecord, arbitrate, type OpenCommit } from '../arbitration.ts'
import { partitionOf } from '../partition.ts'
import type { RecordedEvent } from '../ports.ts'
import { type Connection, contentLoader, type EventStore, type Heads, type Participant, placeOf } from '../store/index.ts'
import type { RawRecord } from './direct.ts'

/** Bytes of Confluent framing before the hashed body. */
const FRAMING = 5

/** A record that names its commit, whether or not this build can read what it says. */
interface Candidate extends ArbitrationRecord {
  readonly bytes: Uint8Array
  readonly event?: LogEvent
  readonly defect?: { code: string; message: string }
}

/** How far a partition has been read. */
export interface Progress {
  /** Where a reader that starts anew goes on: the first record of the open commit, else behind the last record. */
  readonly next: bigint
  /** Offset, body hash and leader epoch of the last record read: what the lineage probe compares (R16). */
  readonly last: { readonly offset: bigint; readonly hash: EventHash; readonly epoch: number } | undefined
  /** Void records so far: kept in the log, never folded. */
  readonly voids: number
}

interface Reading extends Progress {
  /** Behind what this process has read. */
  readonly read: bigint
  readonly open: OpenCommit<Candidate> | undefined
}

/** A row of what a replica says of its progress. */
export interface ProgressRow {
  partition: number
  next: number
  last: number | null
  hash: string | null
  epoch: number | null
  voids: number
}

/**
 * Decides records in the order of their partition and stores the accepted ones, with where to go on, in one transaction: the same rule
 * as every other reader of the log (R5). Several processes may feed one replica; each reads its partitions from the beginning or from the
 * saved place on without a gap, and what another one has stored already is passed over.
 */
export class Ingest implements Participant {
  readonly #connection: Connection
  readonly #heads: Heads
  readonly #content: LoadContent
  readonly #store: EventStore
  readonly #partitions: number
  readonly #onAccepted: (events: readonly RecordedEvent[]) => void
  readonly #sent: (stream: string) => Commit | undefined
  readonly #committed = new Map<number, Reading>()
  readonly #changed = new Map<number, Reading>()
  #dataVersion = -1

  /**
   * @param onAccepted told of each accepted commit inside the transaction, after its events are stored
   * @param sent the commit of a stream that this process has on its way
   */
  constructor(
    connection: Connection,
    { heads, store, partitions }: { heads: Heads; store: EventStore; partitions: number },
    onAccepted: (events: readonly RecordedEvent[]) => void,
    sent: (stream: string) => Commit | undefined,
  ) {
    this.#connection = connection
    this.#sent = sent
    this.#onAccepted = onAccepted
    this.#heads = heads
    this.#content = contentLoader(connection)
    this.#store = store
    this.#partitions = partitions
    // What the replica has counts as read: there may be nothing behind it for a long time.
    this.#load()
  }

  begin(dataVersion: number): void {
    if (dataVersion === this.#dataVersion) return
    this.#load()
    this.#dataVersion = dataVersion
  }

  #load(): void {
    for (const row of this.#rows()) {
      const { partition, ...progress } = progressOf(row)
      const mine = this.#committed.get(partition)
      const open = mine?.open && mine.open.records[0]!.offset >= progress.next ? mine.open : undefined
      this.#committed.set(partition, { ...progress, read: mine?.read ?? progress.next, open })
    }
  }

  committed(): void {
    for (const [partition, reading] of this.#changed) this.#committed.set(partition, reading)
    this.#changed.clear()
  }

  rolledBack(): void {
    this.#changed.clear()
  }

  /** Saved progress of each partition, as committed. */
  progress(): Map<number, Progress> {
    return new Map(this.#rows().map((row) => [row.partition, progressOf(row)]))
  }

  /** Behind what has been read of a partition, as committed. */
  readTo(partition: number): bigint {
    // Before the first write of this process: what the replica has from before.
    return this.#committed.get(partition)?.read ?? this.progress().get(partition)?.next ?? 0n
  }

  #rows(): ProgressRow[] {
    return this.#connection.all<ProgressRow>(PROGRESS)
  }

  /** Feeds what was read of one partition, `next` being where its reader goes on. Only inside the writer's transaction. */
  feed(partition: number, records: readonly RawRecord[], next: bigint): void {
    const before = this.#changed.get(partition) ?? this.#committed.get(partition) ?? FRESH
    let { open, voids, last } = before
    let newest: RawRecord | undefined
    for (const record of records) {
      if (record.offset < before.read || record.offset < before.next) continue
      newest = record
      const candidate = this.#own(record, partition) ?? candidateOf(record, partition, this.#partitions, this.#content)
      if (!candidate) {
        // Bytes that name no commit of this partition stand between others like any foreign record.
        voids += 1 + (open?.records.length ?? 0)
        open = undefined
        continue
      }
      const outcome = arbitrate(open, candidate, (stream) => this.#heads.get(stream))
      open = outcome.open
      for (const group of outcome.voids ?? []) voids += group.records.length
      if (outcome.accepted) this.#onAccepted(this.#accept(candidate.stream, partition, outcome.accepted))
    }
    if (newest) last = { offset: newest.offset, hash: bodyHash(newest.value), epoch: newest.epoch }
    const read = later(next, before.read)
    const first = open?.records[0]
    const reading: Reading = {
      read,
      open,
      voids,
      last,
      next: first ? BigInt(first.offset) : later(read, before.next),
    }
    this.#save(partition, reading)
  }

  /** A record whose very bytes this process has sent: what they say is known. */
  #own({ key, value, offset }: RawRecord, partition: number): Candidate | undefined {
    if (key === null || value === null) return undefined
    const commit = this.#sent(Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1'))
    const known = commit?.records.find(({ bytes }) => bytes.byteLength === value.byteLength && Buffer.compare(bytes, value) === 0)
    if (!commit || !known || partitionOf(commit.stream, this.#partitions) !== partition) return undefined
    const { version, hash, bytes, event } = known
    return {
      stream: commit.stream,
      version,
      commit: event.commit,
      previous: event.previous,
      hash,
      offset: Number(offset),
      bytes,
      event,
    }
  }

  #accept(stream: StreamKey, partition: number, accepted: readonly Candidate[]): RecordedEvent[] {
    return this.#store.store(
      stream,
      accepted.map(({ version, hash, bytes, event, defect, offset }) => ({
        version,
        hash,
        bytes,
        ...(event && { event }),
        ...(defect && { defect }),
        place: placeOf(partition, offset),
      })),
    )
  }

  #save(partition: number, reading: Reading): void {
    const { next, last, voids } = reading
    this.#connection.run(
      `INSERT INTO replica(partition, next, last, hash, epoch, voids) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET next = excluded.next, last = excluded.last, hash = excluded.hash, epoch = excluded.epoch,
          voids = excluded.voids WHERE excluded.next >= next`,
      partition,
      Number(next),
      last ? Number(last.offset) : null,
      last?.hash ?? null,
      last?.epoch ?? null,
      voids,
    )
    this.#changed.set(partition, reading)
  }
}

const later = (a: bigint, b: bigint): bigint => (a > b ? a : b)

const FRESH: Reading = { next: 0n, read: 0n, open: undefined, voids: 0, last: undefined }

export const PROGRESS = 'SELECT partition, next, last, hash, epoch, voids FROM replica'

export const progressOf = ({ partition, next, last, hash, epoch, voids }: ProgressRow): Progress & { partition: number } => ({
  partition,
  next: BigInt(next),
  last: last === null ? undefined : { offset: BigInt(last), hash: hash ?? '', epoch: epoch ?? 0 },
  voids,
})

/** Hash of what follows the framing; also of bytes that are no event. */
export const bodyHash = (value: Uint8Array | null): EventHash => sha256Hex(value?.subarray(FRAMING) ?? new Uint8Array())

/** Undefined for what names no commit, or names a stream that does not live in this partition. */
function candidateOf(record: RawRecord, partition: number, partitions: number, load: LoadContent): Candidate | undefined {
  if (record.value === null) return undefined
  // The record is a view of a whole fetch, which must not be kept for it.
  const bytes = new Uint8Array(record.value)
  const read = readEvent(bytes, load)
  if (!read) return undefined
  const { stream, version, commit, previous, hash } = read.envelope
  if (partitionOf(stream, partitions) !== partition) return undefined
  return {
    stream,
    version,
    commit,
    previous,
    hash,
    offset: Number(record.offset),
    bytes,
    ...('event' in read ? { event: read.event } : { defect: read.defect }),
  }
}

type Named = Envelope & { hash: EventHash }

function readEvent(
  bytes: Uint8Array,
  load: LoadContent,
): { envelope: Named; event: LogEvent } | { envelope: Named; defect: { code: string; message: string } } | undefined {
  try {
    const event = decodeEvent(bytes, false, load)
    return { envelope: event as unknown as Named, event }
  } catch (error) {
    const { code = 'event_undecodable', message = 'The bytes are not an event.' } = error as { code?: string; message?: string }
    try {
      return { envelope: decodeEnvelope(bytes), defect: { code, message } }
    } catch {
      return undefined
    }
  }
}
