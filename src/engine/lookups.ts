import { externalIdKey, type WaitLookup } from '../continuations/index.ts'
import type { StreamKey } from '../events/index.ts'
import type { Agent } from '../harness/index.ts'
import type { Sql } from '../log/index.ts'
import { requestedThreads, resolvedThreads, runningThreads, type ThreadRow, waitByExternalId, waitById, type WaitRow } from '../projections/index.ts'

/** Finds waits in the index. */
export function waitLookup(tables: Sql): WaitLookup {
  const located = (row: WaitRow | undefined) => row && { stream: row.stream, continuationId: row.continuation_id }
  return {
    byContinuationId: (id) => located(waitById(tables, id)),
    byExternalId: (application, provider, id) => located(waitByExternalId(tables, application, provider, externalIdKey(provider, id))),
  }
}

const PAGE = 500

/** Threads an engine with these agents may have to do something about: requested, resolved, running. Each one indexed query a page. */
export function* sweepThreads(tables: Sql, agents: readonly Agent[]): Generator<StreamKey> {
  const names = agents.map((agent) => agent.name)
  yield* pages((after) => requestedThreads(tables, names, { limit: PAGE, after }))
  const revisions = agents.map((agent) => [agent.name, agent.revision] as const)
  yield* pages((after) => resolvedThreads(tables, revisions, { limit: PAGE, after }))
  yield* pages((after) => runningThreads(tables, { limit: PAGE, after }))
}

function* pages(page: (after: number) => ThreadRow[]): Generator<StreamKey> {
  for (let after = 0; ; ) {
    const rows = page(after)
    for (const row of rows) {
      after = row.id
      yield row.stream
    }
    if (rows.length < PAGE) return
  }
}
