import type { z } from 'zod'
import { canonicalJson, reject, sha256Hex } from '../base/index.ts'
import { actor, causation } from './actor.ts'
import type { EventDraft, EventType } from './catalogue.ts'
import { choice, commitId, count, hash, instant, optional, record, text } from './fields.ts'

/** Key of a stream: 64 lower-case hex digits (design §4). */
export type StreamKey = string
/** Hash of an event body: 64 lower-case hex digits. */
export type EventHash = string
/** The `previous` of a stream's first event. */
export const ZERO_HASH: EventHash = '0'.repeat(64)

/** What stands before the fields of every event, inside the hashed body. */
export const envelope = record('Envelope', {
  stream: hash,
  type: text,
  version: count,
  commit: record('Commit', { id: commitId, base: count, index: count, size: count }),
  previous: hash,
  time: instant,
  actor,
  causation: optional(causation),
  run_id: optional(text),
  attempt: optional(count),
  sealing: choice('Sealing', ['none']),
})

export type Envelope = z.infer<typeof envelope>

/** One event as it stands in the log: envelope, fields, and the hash of its body. */
export type LogEvent<T extends EventType = EventType> = Omit<Envelope, 'type'> & EventDraft<T> & { readonly hash: EventHash }

/** The three parts that name a thread. */
export interface ThreadKey {
  application: string
  user: string
  thread: string
}

/**
 * The stream of a thread: SHA-256 of the canonical JSON array `["threadlog/thread/1", application, user, thread]`.
 * @throws ThreadlogError `scope_id_invalid`
 */
export function threadStream(key: ThreadKey): StreamKey {
  for (const name of ['application', 'user', 'thread'] as const) checkScopeId(key[name], name)
  return sha256Hex(canonicalJson(['threadlog/thread/1', key.application, key.user, key.thread]))
}

/** Well-formed, non-blank, at most 512 code points. */
export function checkScopeId(value: string, path: string): void {
  if (typeof value !== 'string' || !value.isWellFormed() || value.trim() === '' || [...value].length > 512)
    throw reject('scope_id_invalid', `The ${path} id is not usable.`, {
      path,
      expected: 'a well-formed string with a visible character, at most 512 code points',
    })
}

/** Position of a commit in its stream, as one number pair. */
export const eventId = (event: { commit: { id: string; index: number } }): string => `${event.commit.id}:${event.commit.index}`

/** Reads back the tuple an owner of a stream was opened with; only for display. */
export const threadName = (key: ThreadKey): string => [key.application, key.user, key.thread].map(encodeURIComponent).join('/')
