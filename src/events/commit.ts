import type { EventHash, LogEvent, StreamKey } from './envelope.ts'

/** One event of a commit in wire form: Confluent framing (0x00, 4-byte schema id, big endian) and the Avro body. */
export interface EncodedEvent {
  readonly version: number
  /** SHA-256 of the Avro body, without the framing. */
  readonly hash: EventHash
  readonly bytes: Uint8Array
  /** The same event as its decoder would give it. */
  readonly event: LogEvent
}

/** Events appended together by one decision: all of them are accepted, or none. */
export interface Commit {
  readonly id: string
  readonly stream: StreamKey
  /** Version of the stream the decision was made on. */
  readonly base: number
  /** Hash of the event at `base`; {@link ZERO_HASH} when base is 0. */
  readonly previous: EventHash
  readonly records: readonly EncodedEvent[]
}

/** Limits of one commit on every log (design §4): refused before sending. */
export const COMMIT_LIMITS = { records: 500, bytes: 900_000 } as const
