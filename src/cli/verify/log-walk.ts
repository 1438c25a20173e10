import { setTimeout as delay } from 'node:timers/promises'
import { decodeEnvelope, type StreamKey } from '../../events/index.ts'
import {
  type ArbitrationRecord,
  arbitrate,
  type Head,
  type LogBackend,
  type OpenCommit,
  type Position,
  type Positions,
  type RecordedEvent,
} from '../../log/index.ts'

/** A record that acceptance would refuse today. */
export interface Refused {
  readonly version: number
  readonly position: Position
  readonly reason: string
}

/** What a walk over the whole log found. */
export interface Walked {
  readonly events: number
  /** Every thread with at least one record, in the order of their first. */
  readonly streams: ReadonlySet<StreamKey>
  /** The first refused record of a thread. */
  readonly refused: ReadonlyMap<StreamKey, Refused>
  /** Where the log ended when the walk began. */
  readonly ends: Positions
}

/** A reader at the end of the log gets nothing for so long, in milliseconds. */
const IDLE = 1_000

/** Walks the log from its beginning to its present end, in log order, and applies the acceptance rule to every record again. */
export async function walkLog({ events }: LogBackend, signal: AbortSignal): Promise<Walked> {
  const ends = await events.barrier()
  const partitions = Array.from({ length: events.partitions }, (_, partition) => new Acceptance(partition))
  let count = 0
  for await (const record of untilEnd(events, ends, signal)) {
    count++
    partitions[record.position.partition]?.add(record)
  }
  return {
    events: count,
    streams: new Set(partitions.flatMap(({ heads }) => [...heads.keys()])),
    refused: new Map(partitions.flatMap(({ refused }) => [...refused])),
    ends,
  }
}

async function* untilEnd(events: LogBackend['events'], ends: Positions, stop: AbortSignal): AsyncGenerator<RecordedEvent> {
  const done = new AbortController()
  const signal = AbortSignal.any([stop, done.signal])
  const left = new Map([...ends].filter(([, end]) => end > 0n))
  const source = events
    .follow({ from: new Map([...ends.keys()].map((partition) => [partition, 0n])), signal })
    [Symbol.asyncIterator]()
  try {
    while (left.size > 0 && !stop.aborted) {
      // Offsets may have holes, also before the end: then nothing more comes.
      const next = await Promise.race([source.next(), delay(IDLE, undefined, { signal, ref: false }).catch(() => undefined)])
      if (!next || next.done) return
      for (const record of next.value) {
        const { partition, offset } = record.position
        if (offset < (ends.get(partition) ?? 0n)) yield record
        if (offset + 1n >= (ends.get(partition) ?? 0n)) left.delete(partition)
      }
    }
  } finally {
    done.abort()
    await source.return?.(undefined)
  }
}

type Placed = ArbitrationRecord & { position: Position }

/** The acceptance rule over one partition. After a refusal it goes on from the refused record, so each thread is reported once. */
class Acceptance {
  readonly heads = new Map<StreamKey, Head>()
  readonly refused = new Map<StreamKey, Refused>()
  readonly partition: number
  #open: OpenCommit<Placed> | undefined

  constructor(partition: number) {
    this.partition = partition
  }

  add(record: RecordedEvent): void {
    const { stream, version, hash } = record
    const placed = placedOf(record)
    if (!placed) {
      this.#open = undefined
      this.#refuse(record, 'undecodable')
    } else {
      const { open, voids } = arbitrate(this.#open, placed, (key) => this.#committed(key))
      this.#open = open
      for (const { reason, records } of voids ?? []) for (const refused of records) this.#refuse(refused, reason)
      if (open) return
    }
    this.heads.set(stream, { version, hash })
  }

  #committed(stream: StreamKey): Head | undefined {
    return this.heads.get(stream)
  }

  #refuse({ stream, version, position, hash }: Pick<Placed, 'stream' | 'version' | 'position' | 'hash'>, reason: string): void {
    if (!this.refused.has(stream)) this.refused.set(stream, { version, position, reason })
    this.heads.set(stream, { version, hash })
  }
}

function placedOf({ bytes, position, stream, version }: RecordedEvent): Placed | undefined {
  try {
    const { commit, previous, hash } = decodeEnvelope(bytes)
    return { stream, version, commit, previous, hash, position, offset: Number(position.offset) }
  } catch {
    return undefined
  }
}
