import fc from 'fast-check'
import { sha256Hex } from '../../src/base/index.ts'
import {
  type Actor,
  type Commit,
  type EventDraft,
  encodeCommit,
  type StreamKey,
  type ThreadKey,
  threadStream,
  ZERO_HASH,
} from '../../src/events/index.ts'
import type { RecordedEvent } from '../../src/log/index.ts'
import { type LegalCommit, ThreadModel } from './thread-model.ts'

/** A thread as it may stand in a log: commits in order, each with what the model expects behind it. */
export interface LegalThread {
  readonly key: ThreadKey
  readonly stream: StreamKey
  readonly commits: readonly LegalCommit[]
}

const keyOf = (name: string): ThreadKey => ({ application: 'app', user: 'u-1', thread: name })

/** The thread a list of choices leads to; the same choices give the same thread. */
export function threadOf(made: readonly (readonly [number, number])[], name = 'thread_1'): LegalThread {
  const key = keyOf(name)
  const stream = threadStream(key)
  const model = new ThreadModel(key)
  return { key, stream, commits: made.map(([action, detail]) => model.next(action, detail)) }
}

/** What {@link threadOf} turns into at most `most` commits. */
export const choices = (most: number): fc.Arbitrary<[number, number][]> =>
  fc.array(fc.tuple(fc.nat(9_999), fc.nat(9_999)), { minLength: 1, maxLength: most, size: 'max' })

/** Event sequences a correct writer may produce. They shrink to fewer commits. */
export const legalThreads = (options: { maxCommits?: number; name?: string } = {}): fc.Arbitrary<LegalThread> =>
  choices(options.maxCommits ?? 40).map((made) => threadOf(made, options.name))

export const ACTOR: Actor = { kind: 'library', id: 'test', source: 'test' }

/** The commits in wire form, chained. Commit ids follow from the position, so equal threads give equal bytes. */
export function encodeThread({ stream, commits }: Pick<LegalThread, 'stream' | 'commits'>): Commit[] {
  let base = 0
  let previous = ZERO_HASH
  return commits.map((commit) => {
    const encoded = encodeAt(stream, { version: base, hash: previous }, commit)
    base += encoded.records.length
    previous = encoded.records[encoded.records.length - 1]?.hash ?? previous
    return encoded
  })
}

/** One commit on a given head. */
export function encodeAt(
  stream: StreamKey,
  head: { version: number; hash: string },
  commit: { drafts: readonly EventDraft[]; time: number; runId: string | null; attempt: number | null },
): Commit {
  const { time, runId: run_id, attempt, drafts } = commit
  const id = sha256Hex(`${stream}:${head.version}:${time}`).slice(0, 32)
  return encodeCommit({ stream, base: head.version, previous: head.hash, id, time, actor: ACTOR, run_id, attempt }, drafts)
}

/** The records of commits as a log gives them back. */
export const recordsOf = (commits: readonly Commit[]): RecordedEvent[] =>
  commits.flatMap(({ stream, records }) =>
    records.map(({ version, hash, bytes, event }) => {
      return { stream, version, hash, bytes, event, position: { partition: 0, offset: BigInt(version) } }
    }),
  )

/** The same record as a build sees it that cannot read it. */
export const unreadable = (record: RecordedEvent): RecordedEvent => {
  const { event: _, ...rest } = record
  return { ...rest, defect: { code: 'event_undecodable', message: 'The record cannot be read.' } }
}
