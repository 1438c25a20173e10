import type { EventDraft } from './catalogue.ts'
import type { Commit } from './commit.ts'
import type { Actor, Causation, Envelope, EventHash, LogEvent, StreamKey } from './envelope.ts'

/** What surrounds the drafts of one commit. */
export interface CommitMeta {
  stream: StreamKey
  base: number
  previous: EventHash
  /** 32 hex digits, UUIDv7. */
  id: string
  /** Epoch milliseconds. */
  time: number
  actor: Actor
  causation?: Causation | null
  run_id?: string | null
  attempt?: number | null
}

export declare function encodeCommit(meta: CommitMeta, drafts: readonly EventDraft[]): Commit
export declare function decodeEvent(bytes: Uint8Array): LogEvent
export declare function decodeEnvelope(bytes: Uint8Array): Envelope & { hash: EventHash }
