import { setImmediate } from 'node:timers/promises'
import type { StreamKey, ThreadKey } from '../events/index.ts'
import { findWait, listWaits, type Tail, type ThreadStore, type WaitRow, waitById } from '../projections/index.ts'
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
/** Waits folded in one turn of the event loop. */
const PAGE_TURN = 16

/** Open waits, page by page; with `follow`, then each new one once. */
export async function* followWaits(deps: WaitsDeps, filter: WaitFilter): AsyncGenerator<Wait> {
  const armed: { stream: StreamKey; id: string }[] = []
  let wake = () => {}
  const listen = ({ stream, event }: { stream: StreamKey; event?: { type: string; data: unknown } }) => {
    if (event?.type !== 'continuation.armed/1') return
    armed.push({ stream, id: (event.data as { continuation_id: string }).continuation_id })
    wake()
  }
  const stop = filter.follow ? deps.tail.on(undefined, listen) : () => {}
  const unlisten = deps.tail.onEnd(() => wake())
  const told = new Set<string>()
  try {
    let listed = 0
    for (const row of openRows(deps, filter)) {
      // On an embedded log nothing here leaves the event loop by itself; whoever runs beside us must get a turn.
      if (++listed % PAGE_TURN === 0) await setImmediate()
      told.add(row.continuation_id)
      const wait = await load(deps.store, row)
      if (wait) yield wait
    }
    while (filter.follow && !deps.tail.closed) {
      const next = armed.shift()
      if (!next) {
        await new Promise<void>((resolve) => (wake = resolve))
        continue
      }
      // The tables may have been ahead of the tail: what was listed is not told again when its event comes.
      if (told.delete(next.id)) continue
      const row = waitById(deps.store.backend.tables, next.id)
      const wait = row && matches(row, deps.application, filter) ? await load(deps.store, row) : undefined
      if (wait) yield wait
    }
  } finally {
    stop()
    unlisten()
  }
}

function* openRows({ store, application }: WaitsDeps, { follow: _, ...filter }: WaitFilter): Generator<WaitRow> {
  for (let after: string | undefined; ; ) {
    const rows = listWaits(store.backend.tables, { application, ...filter, limit: PAGE, after })
    yield* rows
    if (rows.length < PAGE) return
    after = rows[rows.length - 1]?.continuation_id
  }
}

const matches = (row: WaitRow, application: string, filter: WaitFilter): boolean =>
  row.application === application &&
  (filter.user === undefined || row.user === filter.user) &&
  (filter.thread === undefined || row.thread === filter.thread) &&
  (filter.provider === undefined || row.provider === filter.provider) &&
  (filter.kind === undefined || row.kind === filter.kind) &&
  (filter.dueBefore === undefined || (row.deadline !== null && row.deadline <= filter.dueBefore))

async function load(store: ThreadStore, row: WaitRow): Promise<Wait | undefined> {
  const { state } = await store.fold(row.stream)
  const wait = findWait(state, row.continuation_id)
  const key: ThreadKey = { application: row.application, user: row.user, thread: row.thread }
  return wait?.status === 'pending' ? publicWait(key, wait) : undefined
}
