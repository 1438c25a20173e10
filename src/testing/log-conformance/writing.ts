import assert from 'node:assert/strict'
import { isThreadlogError, systemIds } from '../../base/index.ts'
import { type Commit, type EventHash, encodeCommit, type StreamKey, threadStream, ZERO_HASH } from '../../events/index.ts'
import type { EventLog, LogBackend, RecordedEvent } from '../../log/index.ts'

let threads = 0

/** A stream nobody has used. */
export const newStream = (): StreamKey =>
  threadStream({ application: 'conformance', user: 'u', thread: `thread-${process.pid}-${++threads}` })

/** A commit of `size` events without meaning, on a base. */
export function commitOn(
  stream: StreamKey,
  base: { version: number; hash: EventHash } | undefined,
  size = 1,
  reason = 'conformance',
): Commit {
  const time = Date.now()
  const drafts = Array.from({ length: size }, () => ({ type: 'thread.repaired/1' as const, data: { version: 1, reason } }))
  return encodeCommit(
    {
      stream,
      base: base?.version ?? 0,
      previous: base?.hash ?? ZERO_HASH,
      id: systemIds.commit(time),
      time,
      actor: { kind: 'library', id: 'conformance', source: 'test' },
    },
    drafts,
  )
}

/** Where a stream stands after `commit`. */
export const after = (commit: Commit) => {
  const last = commit.records[commit.records.length - 1]!
  return { version: last.version, hash: last.hash }
}

/** Appends `count` commits of `size` events to a stream, which must all be accepted; the last head. */
export async function grow(
  log: EventLog,
  stream: StreamKey,
  count: number,
  size = 1,
): Promise<{ version: number; hash: EventHash }> {
  let head: { version: number; hash: EventHash } | undefined = await log.head(stream)
  for (let i = 0; i < count; i++) {
    const commit = commitOn(stream, head, size)
    const appended = await log.append(commit)
    assert.equal(appended.accepted, true)
    head = after(commit)
  }
  return head!
}

export async function readStream(log: EventLog, stream: StreamKey, from?: number): Promise<RecordedEvent[]> {
  const out: RecordedEvent[] = []
  for await (const page of log.read(stream, from)) out.push(...page)
  return out
}

/** Takes items of pages until there are `count`; the iterable is ended then. */
export async function take<T>(pages: AsyncIterable<T[]>, count: number): Promise<T[]> {
  const out: T[] = []
  if (count > 0)
    for await (const page of pages) {
      out.push(...page)
      if (out.length >= count) break
    }
  return out
}

/** Versions 1, 2, 3 … and each event naming the hash of the one before. */
export function assertUnbroken(events: readonly RecordedEvent[]): void {
  let previous = ZERO_HASH
  for (const [i, { version, event, hash }] of events.entries()) {
    assert.equal(version, i + 1)
    assert.equal(event?.previous, previous)
    previous = hash
  }
}

export async function assertRefused(work: Promise<unknown>, code: string): Promise<void> {
  const outcome = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  assert.ok(isThreadlogError(outcome, code), `expected ${code}, got ${String(outcome)}`)
}

/** Commit ids of a stream's events, one per commit, in order. */
export const commitIds = (events: readonly RecordedEvent[]): string[] => [
  ...new Set(events.map((event) => event.event!.commit.id)),
]

/** UTF-8 bytes of a JSON value. */
export const jsonBytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

export async function scanAll(log: LogBackend, topic: 'requests' | 'results' | 'receipts' | 'checkpoints') {
  const out = []
  for await (const page of log.topics.scan(topic)) out.push(...page)
  return out
}
