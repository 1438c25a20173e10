import type { StreamKey } from '../events/index.ts'

const SEED = 0x9747b28c
const M = 0x5bd1e995
const encoder = new TextEncoder()

/** The 32-bit murmur2 hash of Kafka's Java client (`org.apache.kafka.common.utils.Utils.murmur2`), as a signed integer. */
export function murmur2(data: Uint8Array): number {
  const length = data.length
  let h = SEED ^ length
  let i = 0
  for (; i + 4 <= length; i += 4) {
    let k = (data[i]! & 0xff) | (data[i + 1]! << 8) | (data[i + 2]! << 16) | (data[i + 3]! << 24)
    k = Math.imul(k, M)
    k ^= k >>> 24
    k = Math.imul(k, M)
    h = Math.imul(h, M) ^ k
  }
  const rest = length - i
  if (rest === 3) h ^= data[i + 2]! << 16
  if (rest >= 2) h ^= data[i + 1]! << 8
  if (rest >= 1) h = Math.imul(h ^ data[i]!, M)
  h ^= h >>> 13
  h = Math.imul(h, M)
  return h ^ (h >>> 15)
}

/** Partition of a stream: what Kafka's default partitioner gives for the key's UTF-8 text. */
export function partitionOf(stream: StreamKey, partitions: number): number {
  return partitions === 1 ? 0 : (murmur2(encoder.encode(stream)) & 0x7fffffff) % partitions
}
