import { systemIds } from '../src/base/index.ts'
import { type Commit, type EventDraft, encodeCommit, type ThreadKey, threadStream, ZERO_HASH } from '../src/events/index.ts'
import { openThreadlog, type RecordedEvent } from '../src/index.ts'
import { AGENT, inputOf, resultOf, threadOf, workAgent } from './workload.ts'

/** The events of one commit, to be written again on other threads. */
export type Template = readonly EventDraft[]

/** Commits of a thread's whole life: one run that waits, is answered and completes. */
export async function lifeTemplates(): Promise<Template[]> {
  const agent = workAgent(() => {})
  await using threads = await openThreadlog({ application: 'bench', agents: [agent] })
  await using _engine = await threads.serve()
  const run = await threads.start({ agent: AGENT, thread: threadOf(0), input: inputOf(0) })
  for await (const wait of threads.waits({ follow: true })) {
    await threads.submit({ provider: wait.provider, continuation_id: wait.id, result: resultOf(0) })
    break
  }
  await run.result()
  const recorded: RecordedEvent[] = []
  for await (const batch of threads.backend.events.read(threadStream(keyOf(0)))) recorded.push(...batch)
  return byCommit(recorded)
}

export const keyOf = (order: number): ThreadKey => ({ application: 'bench', user: 'default', thread: threadOf(order) })

export function byCommit(recorded: readonly RecordedEvent[]): Template[] {
  const commits = Map.groupBy(recorded, ({ event }) => event?.commit.id)
  return [...commits.values()].map((records) =>
    records.flatMap(({ event }) => (event ? [{ type: event.type, data: event.data } as EventDraft] : [])),
  )
}

/** Where a thread stands that is written from templates. */
export interface Written {
  readonly key: ThreadKey
  version: number
  previous: string
}

export const nothingWritten = (key: ThreadKey): Written => ({ key, version: 0, previous: ZERO_HASH })

/** The next commit of a thread, encoded. */
export function write(thread: Written, drafts: Template): Commit {
  const commit = encodeCommit(
    {
      stream: threadStream(thread.key),
      base: thread.version,
      previous: thread.previous,
      id: systemIds.commit(Date.now()),
      time: Date.now(),
      actor: { kind: 'engine', id: 'bench', source: 'bench' },
    },
    drafts,
  )
  thread.version += drafts.length
  thread.previous = commit.records.at(-1)?.hash ?? thread.previous
  return commit
}
