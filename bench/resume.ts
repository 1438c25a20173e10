import { ordersOf, resumeLoop } from './closed-loop.ts'
import type { Marks } from './engine-messages.ts'
import type { Line } from './report.ts'
import { openSystem } from './systems.ts'

export type Measured = Pick<Line, 'per_second' | 'p50_ms' | 'p99_ms' | 'rows_per_second' | 'details'>

export interface ResumeOptions {
  log: string
  threads: number
  warmUp: number
  inFlight: number
  /** Where to write a profile of the engine while it is measured. */
  profile?: string
  /** Requests of the engine to its broker so far, by kind. */
  requests?: () => ReadonlyMap<string, number>
}

/** Results from outside to waiting threads: see BENCHMARKS.md. */
export async function measureResume(o: ResumeOptions): Promise<Measured> {
  const system = openSystem(o.log, o.profile !== undefined)
  const { engine } = system
  try {
    await engine.open(o.threads + o.warmUp)
    const { warm, measured } = ordersOf(o.warmUp, o.threads)
    await resumeLoop(system, warm, o.inFlight)
    await engine.ask({ ask: 'idle' })
    const before = await engine.ask<Marks>({ ask: 'marks' })
    if (o.profile !== undefined) await engine.ask({ ask: 'profile' })
    const asked = new Map(o.requests?.())
    const { perSecond, p50, p99 } = await resumeLoop(system, measured, o.inFlight)
    await engine.ask({ ask: 'idle' })
    if (o.profile !== undefined) await engine.ask({ ask: 'profile-end', file: o.profile })
    const requests = requestsEach(asked, o.requests?.(), o.threads)
    const after = await engine.ask<Marks>({ ask: 'marks' })
    const details = { ...perUnit(before, after, o.threads), ...requests }
    return { per_second: perSecond, p50_ms: p50, p99_ms: p99, rows_per_second: perSecond * details.rows, details }
  } finally {
    await system.close()
  }
}

/**
 * What one resume or cycle left: rows of the log (events and topic records), their mean size, all rows SQLite changed (index tables and
 * progress included), and CPU of the engine's process.
 */
export function perUnit(before: Marks, after: Marks, n: number) {
  let rows = 0
  let bytes = 0
  for (const [table, { rows: count, bytes: size }] of Object.entries(after.tables)) {
    rows += count - (before.tables[table]?.rows ?? 0)
    bytes += size - (before.tables[table]?.bytes ?? 0)
  }
  return {
    rows: rows / n,
    row_bytes: rows === 0 ? 0 : bytes / rows,
    row_changes: (after.changes - before.changes) / n,
    cpu_us: (after.cpu - before.cpu) / n,
  }
}

/** Requests for each of `n` units between two counts. */
export const requestsEach = (before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number> | undefined, n: number) =>
  Object.fromEntries([...(after ?? [])].map(([kind, count]) => [`${kind}_requests`, (count - (before.get(kind) ?? 0)) / n]))
