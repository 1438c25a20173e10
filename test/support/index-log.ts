import type { Commit } from '../../src/events/index.ts'
import { type LogBackend, openMemoryLog, type Projector, type TopicName } from '../../src/log/index.ts'
import { indexProjectors, type ThreadRow, type WaitRow } from '../../src/projections/index.ts'
import { encodeThread, type LegalThread } from './legal-threads.ts'

/** A log in memory with the projectors on, and what tests ask of it. */
export interface IndexLog extends AsyncDisposable {
  readonly backend: LogBackend
  /** Appends commits that must be accepted. */
  append(...commits: Commit[]): Promise<void>
  thread(stream: string): ThreadRow | undefined
  waits(stream: string): WaitRow[]
  /** Records of a topic as JSON, oldest first, with key and headers beside. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into published JSON.
  topic(name: TopicName): Promise<{ key: string; headers: Record<string, string>; value: any }[]>
}

export async function openIndexLog(projectors: readonly Projector[] = indexProjectors()): Promise<IndexLog> {
  const backend = await openMemoryLog()
  await backend.install(projectors)
  const { tables } = backend
  return {
    backend,
    async append(...commits) {
      for (const commit of commits)
        if (!(await backend.events.append(commit)).accepted) throw new Error(`commit on ${commit.base} was refused`)
    },
    thread: (stream) => tables.get<ThreadRow>('SELECT * FROM threads WHERE stream = ?', stream),
    waits: (stream) => tables.all<WaitRow>('SELECT * FROM waits WHERE stream = ? ORDER BY id', stream),
    async topic(name) {
      const out = []
      for await (const batch of backend.topics.scan(name))
        for (const { key, headers = {}, value } of batch)
          out.push({ key, headers, value: JSON.parse(Buffer.from(value).toString()) })
      return out
    },
    [Symbol.asyncDispose]: () => backend.close(),
  }
}

/** Commits of several threads in turn, each thread's in order. */
export function interleave(threads: readonly LegalThread[]): Commit[] {
  const queues = threads.map(encodeThread)
  const out: Commit[] = []
  for (let i = 0; queues.some((queue) => i < queue.length); i++) for (const queue of queues) if (queue[i]) out.push(queue[i]!)
  return out
}
