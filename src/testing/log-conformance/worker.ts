import type { LogBackend } from '../../log/index.ts'
import { commitOn } from './writing.ts'

/** What a child process is told: where the log is, the streams it writes to in turn, and how many commits it must get accepted. */
export interface WorkerOrder {
  module: string
  url: string
  streams: readonly string[]
  commits: number
}

/** What it says: who it is once the log is open; each accepted commit, after the append has resolved; and that it is done. */
export type WorkerReport = { owner: string } | { stream: string; commit: string; version: number } | { done: true }

const say = (report: WorkerReport): void => void process.send?.(report)

async function work({ module, url, streams, commits }: WorkerOrder): Promise<void> {
  const { openLog } = (await import(module)) as { openLog(url: string): Promise<LogBackend> }
  const log = await openLog(url)
  say({ owner: log.owners.self })
  for (let accepted = 0, turn = 0; accepted < commits; turn++) {
    const stream = streams[turn % streams.length]!
    const commit = commitOn(stream, await log.events.head(stream), 1 + (turn % 3))
    const appended = await log.events.append(commit)
    if (!appended.accepted) continue
    accepted++
    say({ stream, commit: commit.id, version: appended.head!.version })
  }
  say({ done: true })
  await new Promise<void>((resolve) => process.once('message', () => resolve()))
  await log.close()
  process.disconnect?.()
}

// A test that failed does not end its workers, and a log on a cluster would keep them alive.
process.once('disconnect', () => process.exit())
process.once('message', (order: WorkerOrder) => {
  work(order).catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})
