import type { Commit } from '../../events/index.ts'
import type { LogBackend } from '../../log/index.ts'

/**
 * What a log can do beside the common rules:
 * - `durable`: what was acknowledged is there after the log is opened again
 * - `multi-process`: several processes may have it open
 * - `keeps-void`: records of refused commits stay in the log
 * - `transactional-edges`: topic records and a group's progress are written all or nothing
 * - `external-writers`: programs in other languages produce results
 */
export type LogTrait = 'durable' | 'multi-process' | 'keeps-void' | 'transactional-edges' | 'external-writers'

/** One log under test, empty at first. */
export interface LogPlace {
  /** Opens it. Called again for a `durable` log after a close, and for a `multi-process` log while it is open. */
  open(): Promise<LogBackend>
  /** Takes everything away; every opened backend is closed by then. */
  remove(): Promise<void>
  /** `multi-process`: a module that exports `openLog(url)`, and the address child processes open. */
  remote?: { module: string; url: string }
  /** True where each backend reads a copy of its own: what others have written is there behind a barrier, not before. */
  copies?: boolean
  /** `keeps-void`: puts the records of a commit at the end of its partition, as a writer does that knows nothing newer. */
  send?(commit: Commit): Promise<void>
  /** `external-writers`: per language, writes one result; text and bytes must arrive as they are. */
  external?: Record<string, (value: string | Uint8Array) => Promise<void>>
  /** `external-writers`: puts bytes no build can decode at (stream, version), as damage or a newer writer would. */
  damage?(stream: string, version: number, bytes: Uint8Array): Promise<void>
}

export interface LogSubject {
  name: string
  traits: readonly LogTrait[]
  create(): Promise<LogPlace>
}

/** What a case gets: the place, and `open`, whose backends are closed when the case ends. */
export interface Arena {
  place: LogPlace
  open(): Promise<LogBackend>
  /** Lets a backend read what others have written; nothing where all read the same. */
  current(log: LogBackend): Promise<void>
}

export interface LogCase {
  name: string
  /** The trait it needs; without it the case does not apply. */
  needs?: LogTrait
  run(arena: Arena): Promise<void>
}

/** The part of vitest (or another runner) the suite uses. `timeout` is in milliseconds. */
export interface TestApi {
  describe(name: string, body: () => void): unknown
  test: (name: string, body: () => Promise<void>, timeout?: number) => unknown
}

/** Runs one case on a fresh log and cleans up behind it. */
export async function runCase(subject: LogSubject, { run }: LogCase): Promise<void> {
  const place = await subject.create()
  const opened: LogBackend[] = []
  const open = async () => {
    const log = await place.open()
    opened.push(log)
    return log
  }
  const current = async (log: LogBackend) => {
    if (place.copies) await log.events.barrier()
  }
  try {
    await run({ place, open, current })
  } finally {
    for (const log of opened.reverse()) await log.close()
    await place.remove()
  }
}
