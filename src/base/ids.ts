import { randomBytes } from 'node:crypto'

/** Where identities come from. Made by the writer of a command, recorded in events, never made in a fold (R2). */
export interface Ids {
  /** UUIDv7 (RFC 9562) as 32 hex digits without dashes: the identity of a commit. `now` is epoch milliseconds. */
  commit(now: number): string
  /** `run-` + 32 hex. */
  run(): string
  /** `thread_` + 32 hex. */
  thread(): string
  /** 24 random bytes, base64url: 32 characters. */
  continuation(): string
  /** 16 random bytes as hex, for owners, commands and inputs. */
  token(): string
}

const POOL_BYTES = 8192
let pool = Buffer.alloc(0)
let used = 0

/** Random bytes of the operating system, fetched many at a time: one call costs more than the bytes. Each byte is given once. */
function random(size: number): Buffer {
  if (used + size > pool.length) {
    pool = randomBytes(POOL_BYTES)
    used = 0
  }
  const bytes = pool.subarray(used, used + size)
  used += size
  return bytes
}

/** Ids from the operating system's random source. */
export const systemIds: Ids = {
  commit(now) {
    const bytes = random(16)
    bytes.writeUIntBE(now, 0, 6)
    bytes[6] = (bytes[6]! & 0x0f) | 0x70
    bytes[8] = (bytes[8]! & 0x3f) | 0x80
    return bytes.toString('hex')
  },
  run: () => `run-${random(16).toString('hex')}`,
  thread: () => `thread_${random(16).toString('hex')}`,
  continuation: () => random(24).toString('base64url'),
  token: () => random(16).toString('hex'),
}

/** Deterministic ids for tests and examples: every kind counts up from 1. */
export function countingIds(seed = 0): Ids {
  let n = seed
  const hex = (length: number) => (++n).toString(16).padStart(length, '0')
  return {
    commit: (now) => now.toString(16).padStart(12, '0') + hex(20),
    run: () => `run-${hex(32)}`,
    thread: () => `thread_${hex(32)}`,
    continuation: () => `c${hex(31)}`,
    token: () => hex(32),
  }
}
