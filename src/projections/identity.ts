import { jsonDigest } from '../base/index.ts'
import type { StreamKey } from '../events/index.ts'

/**
 * The idempotency key of a call: the same for every dispatch and every process (R13).
 * @param origin `v<version>` of the `model.responded` that made the call, or `m<index>` of an imported message: models reuse call ids
 * @returns 64 lower-case hex digits
 */
export const idempotencyKey = (stream: StreamKey, origin: string, callId: string): string =>
  jsonDigest(['threadlog/call/1', stream, origin, callId])
