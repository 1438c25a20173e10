import { setTimeout as delay } from 'node:timers/promises'
import { isThreadlogError } from '../base/index.ts'
import type { Delivery, LogBackend, Positions, RecordedEvent, TopicName } from '../log/index.ts'
import type { Io } from './io.ts'

export interface FollowOptions {
  readonly io: Io
  readonly signal: AbortSignal
}

type Placed = { readonly position: { readonly partition: number; readonly offset: bigint } }

/**
 * Passes on batches until `signal` aborts. When the log cannot be read for a while it says so and goes on behind the last batch.
 * @param open starts reading at a position; the first time at `from`, called at once
 */
async function* lasting<T extends Placed>(
  open: (from: Positions | undefined) => AsyncIterable<T[]>,
  from: Positions | undefined,
  { io, signal }: FollowOptions,
): AsyncGenerator<T> {
  const next = new Map(from)
  let source = open(from)
  for (;;) {
    try {
      for await (const batch of source)
        for (const item of batch) {
          yield item
          next.set(item.position.partition, item.position.offset + 1n)
          if (signal.aborted) return
        }
      return
    } catch (error) {
      if (signal.aborted) return
      if (!isThreadlogError(error) || error.disposition !== 'retry') throw error
      io.note(`${error.message} (${error.code}) Trying again.`)
    }
    await delay(1_000, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    source = open(next.size > 0 ? next : undefined)
  }
}

/** Events of all threads accepted from now on: from the call, not from the first `next`. */
export function followEvents({ events }: LogBackend, o: FollowOptions): AsyncGenerator<RecordedEvent> {
  const first = events.follow({ signal: o.signal })
  let opened = false
  const open = (from: Positions | undefined) => {
    if (opened) return events.follow({ from, signal: o.signal })
    opened = true
    return first
  }
  return lasting(open, undefined, o)
}

/** Records of a topic from a position on. */
export const followTopic = (
  { topics }: LogBackend,
  topic: TopicName,
  from: Positions,
  o: FollowOptions,
): AsyncGenerator<Delivery> => lasting((next) => topics.subscribe(topic, { from: next, signal: o.signal }), from, o)

/** An offset behind every record. */
const BEYOND = 2n ** 62n

/** Where the next record of a topic will stand, found by halving: reads a few records, however many there are. */
export async function endOfTopic({ topics, events }: LogBackend, topic: TopicName): Promise<Positions> {
  const ends = new Map<number, bigint>()
  const others = new Map(Array.from({ length: events.partitions }, (_, partition) => [partition, BEYOND]))
  for (let partition = 0; partition < events.partitions; partition++) {
    const isBehind = async (offset: bigint): Promise<boolean> => {
      for await (const [record] of topics.scan(topic, { from: new Map([...others, [partition, offset]]), limit: 1 }))
        if (record) return false
      return true
    }
    if (await isBehind(0n)) {
      ends.set(partition, 0n)
      continue
    }
    let [low, high] = [0n, 1n]
    while (!(await isBehind(high))) [low, high] = [high, high * 2n]
    while (low + 1n < high) {
      const middle = (low + high) / 2n
      if (await isBehind(middle)) high = middle
      else low = middle
    }
    ends.set(partition, high)
  }
  return ends
}
