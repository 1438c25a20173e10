import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Threadlog } from '../../src/index.ts'
import type { RecordedEvent } from '../../src/log/index.ts'
import { foldStream, stateHash } from '../../src/projections/index.ts'
import { type TimelineEntry, timelineEntry } from './notes.ts'

export interface Verified {
  events: number
  /** The hash chain from the first event to the head is whole. */
  chain: boolean
  /** SHA-256 of the state folded from zero, and of the state as kept. */
  replayed: string
  live: string
  /** What `threadlog verify` says about the whole log. */
  command: { ok: boolean; output: string } | undefined
}

export interface ThreadRef {
  user: string
  thread: string
}

export async function recordsOf(threads: Threadlog, ref: ThreadRef): Promise<RecordedEvent[]> {
  const records: RecordedEvent[] = []
  for await (const record of threads.thread(ref).events()) records.push(record)
  return records
}

export const timeline = (records: readonly RecordedEvent[]): TimelineEntry[] => records.map(timelineEntry)

/** Replays a thread from its first event and compares it with the state as it was kept while everything happened. */
export async function verify(
  threads: Threadlog,
  ref: ThreadRef,
  records: readonly RecordedEvent[],
  address: string,
): Promise<Verified> {
  const live = await threads.store.load(threads.thread(ref).stream)
  const { state, head, quarantine } = foldStream(records)
  return {
    events: records.length,
    chain: quarantine === undefined && head.version === records.length,
    replayed: stateHash(state),
    live: stateHash(live),
    command: verifyCommand(address),
  }
}

function verifyCommand(address: string): Verified['command'] {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
  if (!existsSync(main)) return undefined
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'verify', '--all', '--log', address], {
    encoding: 'utf8',
  })
  return { ok: status === 0, output: (stdout || stderr).trim() }
}
