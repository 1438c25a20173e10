import { externalIdKey, type WaitLookup } from '../continuations/index.ts'
import type { Sql } from '../log/index.ts'
import { type WaitRow, waitByExternalId, waitPlace } from '../projections/index.ts'

/** Finds waits in the index. */
export function waitLookup(tables: Sql): WaitLookup {
  const located = (row: Pick<WaitRow, 'stream' | 'continuation_id'> | undefined) =>
    row && { stream: row.stream, continuationId: row.continuation_id }
  return {
    byContinuationId: (id) => located(waitPlace(tables, id)),
    byExternalId: (application, provider, id) =>
      located(waitByExternalId(tables, application, provider, externalIdKey(provider, id))),
  }
}
