import type { ThreadKey } from '../events/index.ts'
import { findWait, listWaits, type Tail, type ThreadStore, type WaitRow } from '../projections/index.ts'
import { publicWait } from './results.ts'
import type { Wait } from './types.ts'

/** Which open waits. */
export interface WaitFilter {
  user?: string
  thread?: string
  provider?: string
  kind?: Wait['kind']
  /** Epoch milliseconds: only waits due at or before it. */
  dueBefore?: number
  /** Go on with waits as they open, until the loop is left or the log closed. */
  follow?: boolean
}

export interface WaitsDeps {
  store: ThreadStore
  tail: Tail
  application: string
}

const PAGE = 200

/** Open waits, page by page; with `follow`, each new one once. */
export async function* followWaits(deps: WaitsDeps, filter: WaitFilter): AsyncGenerator<Wait> {
  const { follow = false, ...wanted } = filter
  const told = new Set<string>()
  let wake = () => {}
  let changed = false
  const stop = deps.tail.on(undefined, ({ event }) => {
    if (event?.type !== 'continuation.armed/1') return
    changed = true
    wake()
  })
  try {
    for (;;) {
      changed = false
      for (const row of openRows(deps, wanted)) {
        if (follow && told.has(row.continuation_id)) continue
        const wait = await load(deps.store, row)
        if (!wait) continue
        if (follow) told.add(row.continuation_id)
        yield wait
      }
      if (!follow || deps.tail.closed) return
      if (!changed) await Promise.race([new Promise<void>((resolve) => (wake = resolve)), deps.tail.ended])
    }
  } finally {
    stop()
  }
}

function* openRows({ store, application }: WaitsDeps, filter: Omit<WaitFilter, 'follow'>): Generator<WaitRow> {
  for (let after: string | undefined; ; ) {
    const rows = listWaits(store.backend.tables, { application, ...filter, limit: PAGE, after })
    yield* rows
    if (rows.length < PAGE) return
    after = rows[rows.length - 1]?.continuation_id
  }
}

async function load(store: ThreadStore, row: WaitRow): Promise<Wait | undefined> {
  const { state } = await store.fold(row.stream)
  const wait = findWait(state, row.continuation_id)
  const key: ThreadKey = { application: row.application, user: row.user, thread: row.thread }
  return wait?.status === 'pending' ? publicWait(key, wait) : undefined
}
