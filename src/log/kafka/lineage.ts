import type { ThreadlogError } from '../../base/index.ts'
import type { DirectReader } from './direct.ts'
import { stopped } from './errors.ts'
import { bodyHash, type Progress } from './ingest.ts'

const PROBE = { maxWaitMs: 0, maxBytes: 1, committed: false }

/**
 * Compares the last record that was read of a partition with what stands there now (R16): a topic made anew, an unclean election or a power
 * cut can put other records in the place of those a replica holds, without any error.
 * @returns why the log is not the one that was read; undefined if it is
 */
export async function probeLineage(
  reader: DirectReader,
  { topic, partition, progress }: { topic: string; partition: number; progress: Progress },
): Promise<ThreadlogError | undefined> {
  const path = `${topic}[${partition}]`
  const [first, end] = await Promise.all([offsetOf(reader, topic, partition, 'first'), offsetOf(reader, topic, partition, 'end')])
  const facts = { partition, next: String(progress.next), first: String(first), end: String(end) }
  const { last } = progress
  if (!last) return first > progress.next ? stopped('log_gap', 'The beginning of the log is gone.', path, facts) : undefined
  if (end <= last.offset) return stopped('log_truncated', 'The log is shorter than what was read of it.', path, facts)
  if (first > progress.next) return stopped('log_gap', 'The log no longer has the records that come next.', path, facts)
  // Retention may have taken exactly what was read last: nothing is left to compare, and nothing is missing.
  if (first > last.offset) return undefined
  const [record] = (await reader.fetchOne({ topic, partition, offset: last.offset }, PROBE)).records
  if (!record) throw Object.assign(new Error('the partition was not read'), { type: 'LEADER_NOT_AVAILABLE' })
  if (record.offset === last.offset && bodyHash(record.value) === last.hash) return undefined
  return stopped('log_changed', 'Another record stands where the last one was read.', path, {
    ...facts,
    last: String(last.offset),
  })
}

const offsetOf = async (reader: DirectReader, topic: string, partition: number, which: 'first' | 'end'): Promise<bigint> =>
  (await reader.offsets(topic, [partition], which)).get(partition)!
