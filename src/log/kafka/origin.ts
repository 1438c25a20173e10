import type { DirectReader } from './direct.ts'

/** The first record that a partition still has. A topic that was made anew begins with another one. */
export interface Origin {
  readonly offset: bigint
  /** Epoch milliseconds. */
  readonly time: number
}

/** Where a partition begins, and its committed end. */
export interface Extent {
  /** Undefined while it has no record. */
  readonly origin: Origin | undefined
  readonly first: bigint
  readonly end: bigint
}

const READ = { maxWaitMs: 0, maxBytes: 1, committed: true }

export const originText = ({ offset, time }: Origin): string => `${offset}@${time}`

export function parseOrigin(text: string | undefined): Origin | undefined {
  const [, offset, time] = /^(\d{1,19})@(\d{1,16})$/.exec(text ?? '') ?? []
  return offset === undefined ? undefined : { offset: BigInt(offset), time: Number(time) }
}

/** Looks at both ends of a partition. */
export async function extentOf(reader: DirectReader, topic: string, partition: number): Promise<Extent> {
  const offset = async (which: 'first' | 'committed') => (await reader.offsets(topic, [partition], which)).get(partition)!
  const [first, end] = [await offset('first'), await offset('committed')]
  for (let at = first; at < end; ) {
    const { records, next } = await reader.fetchOne({ topic, partition, offset: at }, READ)
    const [record] = records
    if (record) return { origin: { offset: record.offset, time: record.time }, first, end }
    if (next <= at) break
    at = next
  }
  return { origin: undefined, first, end }
}

/**
 * Whether a partition is another one than that which began at `before`. Retention moves the beginning up and nothing moves it down; a
 * partition cut short keeps its beginning, and is no new one. Where everything old is gone by age the two cannot be told apart, and it counts
 * as the same.
 * @param next how far the one before was read
 */
export function isRemade(before: Origin, { origin, first, end }: Extent, next: bigint): boolean {
  if (!origin) return first <= before.offset && end < next
  return origin.offset < before.offset || (origin.offset === before.offset && origin.time !== before.time)
}
