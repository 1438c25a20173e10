import type { StreamKey } from '../events/index.ts'
import type { Agent } from '../harness/index.ts'
import type { LogBackend } from '../log/index.ts'
import { requestedThreads, resolvedThreads, runningThreads, type ThreadRow } from '../projections/index.ts'

const PAGE = 500

export interface SweepOptions {
  backend: LogBackend
  agents: readonly Agent[]
  /** Runs some attempt of this process is driving. */
  active: ReadonlySet<string>
}

/**
 * Threads somebody should do something about: requested and not started, resolved and not resumed, running without an owner. Each is
 * one indexed query a page, so a wake-up lost anywhere is found (design §7).
 */
export async function* sweep({ backend, agents, active }: SweepOptions): AsyncGenerator<StreamKey> {
  const { tables } = backend
  const names = agents.map((agent) => agent.name)
  for (const row of pages((after) => requestedThreads(tables, names, { limit: PAGE, after }))) yield row.stream
  const revisions = agents.map((agent) => [agent.name, agent.revision] as const)
  for (const row of pages((after) => resolvedThreads(tables, revisions, { limit: PAGE, after }))) yield row.stream
  const dead = new Map<string, boolean>()
  for (const row of pages((after) => runningThreads(tables, { limit: PAGE, after })))
    if (await mayBeUndriven(row, backend, active, dead)) yield row.stream
}

async function mayBeUndriven(
  row: ThreadRow,
  { owners, assignment }: LogBackend,
  active: ReadonlySet<string>,
  dead: Map<string, boolean>,
): Promise<boolean> {
  const owner = row.owner_id ?? ''
  if (owner === owners.self) return !active.has(row.run_id ?? '')
  // Whose partition it is looks closer, also at runs of the living.
  if (assignment) return assignment.owns(row.stream)
  const known = dead.get(owner) ?? (await owners.isDead(owner))
  dead.set(owner, known)
  return known
}

function* pages(page: (after: number) => ThreadRow[]): Generator<ThreadRow> {
  for (let after = 0; ; ) {
    const rows = page(after)
    for (const row of rows) {
      after = row.id
      yield row
    }
    if (rows.length < PAGE) return
  }
}
