import type { Kafka } from 'kafkajs'
import type { TopicName } from '../ports.ts'
import { withAdmin } from './admin.ts'
import type { DirectReader, RawRecord } from './direct.ts'
import { type Extent, isRemade, type Origin, originText, parseOrigin } from './origin.ts'

/**
 * Header of a record written together with a group's progress: `<group> <topic> <next offset>`, and where the partition that was read began, if
 * that is watched. Offsets of idle groups expire, records do not.
 */
export const PROGRESS_HEADER = 'threadlog-progress'

/** Where the records stand that carry the progress of a group that reads a topic. */
export const CARRIERS: Readonly<Partial<Record<TopicName | 'events', readonly TopicName[]>>> = {
  results: ['receipts'],
  events: ['requests', 'checkpoints'],
}

/** Records looked at first; each further look goes back four times as far. */
const STEP = 64n
const READ = { maxWaitMs: 100, maxBytes: 1 << 20, committed: true }

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)

/** What a record says of the progress it was written with. */
interface Mark {
  readonly next: bigint
  readonly origin: Origin | undefined
}

export const mark = (group: string, topic: string, next: bigint, origin?: Origin): string =>
  [group, topic, next, ...(origin ? [originText(origin)] : [])].join(' ')

function markOf({ headers }: RawRecord, group: string, topic: string): Mark | undefined {
  const [by, of, next = '', origin] = headers[PROGRESS_HEADER]?.split(' ') ?? []
  return by === group && of === topic && /^\d{1,19}$/.test(next) ? { next: BigInt(next), origin: parseOrigin(origin) } : undefined
}

const isSameOrigin = (a: Mark, b: Mark): boolean => (a.origin && originText(a.origin)) === (b.origin && originText(b.origin))

/**
 * The progress that the newest records of a partition carry; undefined when none does. Reads back from the end, committed records only.
 * @param looks how often it goes further back; default: to the first record
 */
async function markedProgress(
  reader: DirectReader,
  where: { carrier: string; partition: number; group: string; topic: string },
  looks = Number.POSITIVE_INFINITY,
): Promise<Mark | undefined> {
  const { carrier, partition, group, topic } = where
  const offset = async (which: 'first' | 'committed') => (await reader.offsets(carrier, [partition], which)).get(partition)!
  const [first, end] = [await offset('first'), await offset('committed')]
  let step = STEP
  for (let to = end; to > first && looks > 0; step *= 4n, looks--) {
    const from = max(to - step, first)
    let found: Mark | undefined
    for (let at = from; at < to; ) {
      const batch = await reader.fetchOne({ topic: carrier, partition, offset: at }, READ)
      if (batch.next <= at) break
      for (const record of batch.records) {
        const mark = record.offset < to ? markOf(record, group, topic) : undefined
        // Of a topic that was made anew the newest says where it stands; else the furthest.
        if (mark && !(found && isSameOrigin(found, mark) && found.next >= mark.next)) found = mark
      }
      at = batch.next
    }
    if (found !== undefined) return found
    to = from
  }
  return undefined
}

/** A group's saved offsets of one topic. */
async function savedOffsets(kafka: Kafka, group: string, topic: string): Promise<Map<number, bigint>> {
  const [found] = await withAdmin(kafka, (admin) => admin.fetchOffsets({ groupId: group, topics: [topic] }))
  return new Map((found?.partitions ?? []).filter(({ offset }) => offset !== '-1').map((p) => [p.partition, BigInt(p.offset)]))
}

export interface ProgressOf {
  /** Names of group and topic in the marks. */
  group: string
  topic: string
  partitions: readonly number[]
  /** Full names of the topics whose records carry the marks. */
  carriers: readonly string[]
  /** Full names of group and topic under which the cluster keeps the offsets. */
  saved: { group: string; topic: string }
  /** The partitions as they are, where the topic may be made anew: after that a group begins at its first record. */
  extents?: ReadonlyMap<number, Extent>
}

/**
 * How far a group has come in each partition: what its offsets say or what the records say that were written with them, whichever is
 * further. Both stand in one transaction, so each is true whenever it is there, and the one that is behind is only older: offsets of
 * idle groups expire or are reset, records may be deleted by age.
 */
export async function groupProgress(kafka: Kafka, reader: DirectReader, o: ProgressOf): Promise<Map<number, bigint>> {
  // A coordinator that is new, or has just changed, first loads what it keeps and answers nothing.
  const offsets = await reader.patiently(() => savedOffsets(kafka, o.saved.group, o.saved.topic))
  const found = new Map([...offsets].filter(([partition]) => o.partitions.includes(partition)))
  const look = async (carrier: string, partition: number): Promise<void> => {
    const where = { carrier, partition, group: o.group, topic: o.topic }
    // Where the offset is there, the newest records are enough to check it.
    const far = offsets.has(partition) ? 1 : undefined
    const mark = await reader.patiently(() => markedProgress(reader, where, far))
    if (!mark) return
    const extent = o.extents?.get(partition)
    if (mark.origin && extent && isRemade(mark.origin, extent, mark.next)) found.set(partition, extent.first)
    else if (mark.next > (found.get(partition) ?? -1n)) found.set(partition, mark.next)
  }
  await Promise.all(o.partitions.flatMap((partition) => o.carriers.map((carrier) => look(carrier, partition))))
  return found
}
