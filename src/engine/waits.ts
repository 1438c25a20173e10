import { setImmediate } from 'node:timers/promises'
import type { StreamKey, ThreadKey } from '../events/index.ts'
import type { Sql } from '../log/index.ts'
import { countWaits, findWait, listWaits, type Tail, type ThreadStore, type WaitRow } from '../projections/index.ts'
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
  /** Epoch milliseconds: only waits that were suspended at or before it. */
  createdBefore?: number
  /** Go on with waits as they open, until the loop is left or the log closed. */
  follow?: boolean
}

export interface WaitsDeps {
  store: ThreadStore
  tail: Tail
  application: string
}

/** Open waits that one provider has to answer, or persons. */
export interface WaitCount {
  provider: string
  kind: Wait['kind']
  waits: number
  /** Epoch milliseconds: since when the oldest of them is open. */
  oldestAt: number
}

/** How many waits are open, by provider and kind. */
export const openWaitCounts = (
  tables: Sql,
  filter: { application: string } & Pick<WaitFilter, 'provider' | 'kind'>,
): WaitCount[] =>
  countWaits(tables, filter).flatMap(({ provider, kind, waits, oldest_at: oldestAt }) =>
    kind === 'unrecognised' ? [] : [{ provider, kind, waits, oldestAt }],
  )

const PAGE = 200
/** Waits folded in one turn of the event loop. */
const PAGE_TURN = 16

/** Open waits, oldest first, page by page; with `follow`, then each new one once. */
export async function* followWaits(deps: WaitsDeps, { follow, ...wanted }: WaitFilter): AsyncGenerator<Wait> {
  const { tables } = deps.store.backend
  const filter = { application: deps.application, ...wanted }
  const armed: { stream: StreamKey; id: string }[] = []
  let wake = () => {}
  const listen = ({ stream, event }: { stream: StreamKey; event?: { type: string; data: unknown } }) => {
    if (event?.type !== 'continuation.armed/1') return
    armed.push({ stream, id: (event.data as { continuation_id: string }).continuation_id })
    wake()
  }
  const stop = follow ? deps.tail.on(undefined, listen) : () => {}
  const unlisten = deps.tail.onEnd(() => wake())
  const told = new Set<string>()
  try {
    let listed = 0
    for (const row of openRows(tables, filter)) {
      // On an embedded log nothing here leaves the event loop by itself; whoever runs beside us must get a turn.
      if (++listed % PAGE_TURN === 0) await setImmediate()
      told.add(row.continuation_id)
      const wait = await load(deps.store, row)
      if (wait) yield wait
    }
    while (follow && !deps.tail.closed) {
      const next = armed.shift()
      if (!next) {
        await new Promise<void>((resolve) => (wake = resolve))
        continue
      }
      // The tables may have been ahead of the tail: what was listed is not told again when its event comes.
      if (told.delete(next.id)) continue
      const [row] = listWaits(tables, { ...filter, continuationId: next.id })
      const wait = row && (await load(deps.store, row))
      if (wait) yield wait
    }
  } finally {
    stop()
    unlisten()
  }
}

function* openRows(tables: Sql, filter: Parameters<typeof listWaits>[1]): Generator<WaitRow> {
  for (let after: WaitRow | undefined; ; ) {
    const rows = listWaits(tables, { ...filter, limit: PAGE, after })
    yield* rows
    if (rows.length < PAGE) return
    after = rows[rows.length - 1]
  }
}

async function load(store: ThreadStore, row: WaitRow): Promise<Wait | undefined> {
  const { state } = await store.fold(row.stream)
  const wait = findWait(state, row.continuation_id)
  const key: ThreadKey = { application: row.application, user: row.user, thread: row.thread }
  return wait?.status === 'pending' ? publicWait(key, wait) : undefined
}
