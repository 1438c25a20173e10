import { type Clock, isThreadlogError } from '../base/index.ts'
import type { LogBackend } from '../log/index.ts'

export interface StandbyOptions {
  backend: LogBackend
  clock: Clock
  group: string
  partition: number
  /** Between two looks, in milliseconds. Default 2,000. */
  ms?: number | undefined
  onError?: ((error: unknown) => void) | undefined
}

/** Returns when results wait in a partition and nobody has moved its progress for a while, or when `signal` aborts. */
export async function standBy(o: StandbyOptions, signal: AbortSignal): Promise<void> {
  const { backend, clock, group, partition, ms = 2000, onError } = o
  let before: bigint | undefined
  for (let first = true; !signal.aborted; ) {
    try {
      const now = (await backend.topics.progress('results', group)).get(partition)
      if (!first && before === now && (await hasMore(backend, partition, now))) return
      before = now
      first = false
    } catch (error) {
      if (!isRetryable(error)) throw error
      onError?.(error)
    }
    await clock.sleep(ms, signal)
  }
}

async function hasMore({ topics, events }: LogBackend, partition: number, next: bigint | undefined): Promise<boolean> {
  // Partitions that are not asked about are read from their end, which is far.
  const from = new Map(Array.from({ length: events.partitions }, (_, i) => [i, i === partition ? (next ?? 0n) : FAR]))
  for await (const batch of topics.scan('results', { from, limit: 1 })) if (batch.length > 0) return true
  return false
}

const FAR = 1n << 62n

export const isRetryable = (error: unknown): boolean => isThreadlogError(error) && error.disposition === 'retry'
