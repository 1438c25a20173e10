import { reject } from '../base/index.ts'
import { type StreamKey, type ThreadKey, threadName, threadStream } from '../events/index.ts'
import type { LogBackend, Sql } from '../log/index.ts'
import { findThread, type WaitRow, waitById } from '../projections/index.ts'
import { usage } from './errors.ts'

/** What completes a short thread reference. */
export interface Scope {
  app?: string
  user?: string
}

/** A thread of a log. Its names are unknown while nothing but its key is: a prefix of a key finds threads in the index only. */
export interface ThreadRef {
  readonly stream: StreamKey
  readonly key: ThreadKey | undefined
}

/** Reads `app/user/thread`, `user/thread` or `thread`, parts percent-encoded. @throws usage error */
export function parseThreadName(text: string, { app = 'default', user = 'default' }: Scope): ThreadKey {
  const parts = text.split('/').map(decodePart)
  if (parts.length > 3 || parts.some((part) => part === ''))
    throw usage(`'${text}' names no thread.`, { expected: 'app/user/thread, parts percent-encoded', path: 'thread' })
  const [thread, inner = user, outer = app] = parts.reverse() as [string, string?, string?]
  return { application: outer, user: inner, thread }
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw usage(`'${part}' is not percent-encoded.`, { expected: "%25 for '%', %2F for '/'", path: 'thread' })
  }
}

const isKeyOrPrefix = (text: string): boolean => /^[0-9a-f]{8,64}$/i.test(text)

/**
 * Finds the thread a command line means: its names, its stream key, or the beginning of the key (8 digits or more).
 * @throws ThreadlogError `thread_unknown`, `ambiguous_prefix`, usage errors
 */
export async function findThreadRef(backend: LogBackend, text: string, scope: Scope): Promise<ThreadRef> {
  const ref = isKeyOrPrefix(text) ? byKey(backend.tables, text.toLowerCase()) : byName(parseThreadName(text, scope))
  if (ref && (await backend.events.head(ref.stream))) return ref
  throw reject('thread_unknown', 'There is no such thread in this log.', {
    path: 'thread',
    expected: ref?.key ? threadName(ref.key) : 'app/user/thread, a stream key, or at least its first 8 digits',
    hint: 'threadlog threads lists them.',
  })
}

const byName = (key: ThreadKey): ThreadRef => ({ stream: threadStream(key), key })

function byKey(tables: Sql, text: string): ThreadRef | undefined {
  const row = findThread(tables, text)
  if (!row) return text.length === 64 ? { stream: text, key: undefined } : undefined
  const { stream, application, user, thread } = row
  return { stream, key: application === '' ? undefined : { application, user, thread } }
}

/** A thread as text: its names, or its stream key. */
export const refText = ({ stream, key }: ThreadRef): string => (key ? threadName(key) : stream)

/** A thread in JSON output. */
export const threadJson = (stream: StreamKey, key: ThreadKey | undefined) => ({
  application: key?.application ?? null,
  user: key?.user ?? null,
  thread: key?.thread ?? null,
  stream,
})

/**
 * Finds a wait by its id, or by the beginning of it (8 characters or more).
 * @throws ThreadlogError `wait_unknown`, `ambiguous_prefix`
 */
export function findWaitRow(tables: Sql, text: string): WaitRow {
  const exact = waitById(tables, text)
  if (exact) return exact
  // Ids are ASCII; '~' follows every character of them.
  const found =
    text.length < 8
      ? []
      : tables.all<WaitRow>('SELECT * FROM waits WHERE continuation_id >= ? AND continuation_id < ? LIMIT 2', text, `${text}~`)
  if (found.length === 1) return found[0] as WaitRow
  if (found.length > 1)
    throw reject('ambiguous_prefix', 'Several waits begin like this.', {
      path: 'wait',
      expected: 'a prefix only one wait has',
      details: { waits: found.map((row) => row.continuation_id) },
    })
  throw reject('wait_unknown', 'There is no such wait in this log.', {
    path: 'wait',
    expected: 'the id of a wait, or at least its first 8 characters',
    hint: 'threadlog waits lists the open ones.',
  })
}
