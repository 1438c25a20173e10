import { jsonDigest } from '../base/index.ts'
import type { StreamKey } from '../events/index.ts'

/**
 * The idempotency key of a call: the same for every dispatch and every process (R13).
 * @param origin which response made the call, since models reuse call ids: `v<version>/<run id>` of its `model.responded` (the run id
 *   keeps two logs apart in which the same happened to threads of the same name), or `m<index>` of an imported message
 * @returns 64 lower-case hex digits
 */
export const idempotencyKey = (stream: StreamKey, origin: string, callId: string): string =>
  jsonDigest(['threadlog/call/1', stream, origin, callId])
