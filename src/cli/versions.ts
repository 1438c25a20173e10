import { reject } from '../base/index.ts'
import type { StreamKey } from '../events/index.ts'
import type { LogBackend, RecordedEvent } from '../log/index.ts'
import { usage } from './errors.ts'
import { parseTime } from './format.ts'

/** A place in a thread as written on the command line. */
export type VersionSpec = { readonly version: number } | { readonly back: number } | { readonly time: number }

/** Reads `12`, `-5` (so many events before the newest) or `@<ISO time>` (the last event before any later one). @throws usage error */
export function parseVersion(text: string): VersionSpec {
  if (/^\d{1,15}$/.test(text)) return { version: Number(text) }
  if (/^-\d{1,15}$/.test(text)) return { back: Number(text.slice(1)) }
  if (text.startsWith('@')) return { time: parseTime(text.slice(1)) }
  throw usage(`'${text}' is no version.`, { expected: 'a version, -N from the end, or @<ISO time>' })
}

/**
 * The records of a thread up to a place in it, oldest first.
 * @throws ThreadlogError `version_unknown` when the thread has no such version
 */
export async function* recordsUpTo(
  backend: LogBackend,
  stream: StreamKey,
  o: { at?: VersionSpec; after?: number; signal?: AbortSignal } = {},
): AsyncGenerator<RecordedEvent> {
  const last = await lastVersion(backend, stream, o.at)
  let told = 0
  for await (const batch of backend.events.read(stream, o.after)) {
    for (const record of batch) {
      if (record.version > last || o.signal?.aborted) return
      if (o.at && 'time' in o.at && (record.event?.time ?? 0) > o.at.time) {
        if (told === 0 && !o.after) throw unknownVersion('The thread began after that time.', {})
        return
      }
      told++
      yield record
    }
  }
}

async function lastVersion(backend: LogBackend, stream: StreamKey, at: VersionSpec | undefined): Promise<number> {
  if (!at || 'time' in at) return Number.POSITIVE_INFINITY
  const head = (await backend.events.head(stream))?.version ?? 0
  const version = 'version' in at ? at.version : head - at.back
  if (version >= 1 && version <= head) return version
  throw unknownVersion('The thread has no such version.', { head })
}

const unknownVersion = (message: string, details: Record<string, number>) =>
  reject('version_unknown', message, {
    path: '--at',
    ...(details['head'] === undefined ? {} : { expected: `1 to ${details['head']}` }),
    details,
  })

/** All of {@link recordsUpTo}. */
export async function readUpTo(
  backend: LogBackend,
  stream: StreamKey,
  at?: VersionSpec,
  signal?: AbortSignal,
): Promise<RecordedEvent[]> {
  const records: RecordedEvent[] = []
  for await (const record of recordsUpTo(backend, stream, { at, signal })) records.push(record)
  return records
}
