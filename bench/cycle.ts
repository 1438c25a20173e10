import { figures } from './closed-loop.ts'
import type { Marks } from './engine-messages.ts'
import { type Measured, perUnit, type ResumeOptions, requestsEach } from './resume.ts'
import { now, pool } from './statistics.ts'
import { openSystem, type System } from './systems.ts'

/** Whole lives of threads, from `start` to the end of the run: see BENCHMARKS.md. */
export async function measureCycle(o: Omit<ResumeOptions, 'profile'>): Promise<Measured> {
  const system = openSystem(o.log)
  const { engine } = system
  try {
    await engine.ready
    await cycles(system, 0, o.warmUp, o.inFlight)
    await engine.ask({ ask: 'idle' })
    const before = await engine.ask<Marks>({ ask: 'marks' })
    const asked = new Map(o.requests?.())
    const { perSecond, p50, p99 } = await cycles(system, o.warmUp, o.threads, o.inFlight)
    await engine.ask({ ask: 'idle' })
    const requests = requestsEach(asked, o.requests?.(), o.threads)
    const after = await engine.ask<Marks>({ ask: 'marks' })
    const details = { ...perUnit(before, after, o.threads), ...requests }
    return { per_second: perSecond, p50_ms: p50, p99_ms: p99, rows_per_second: perSecond * details.rows, details }
  } finally {
    await system.close()
  }
}

async function cycles(system: System, from: number, n: number, inFlight: number) {
  const { engine } = system
  const going = new Map<number, { at: number; done: () => void; fail: (error: unknown) => void }>()
  const latencies: number[] = []
  engine.onRequest = (order) => system.complete(order).catch((error) => going.get(order)?.fail(error))
  engine.onEnded = (order, at) => {
    const cycle = going.get(order)
    if (!cycle) return
    going.delete(order)
    latencies.push(at - cycle.at)
    cycle.done()
  }
  await system.connect(2 * inFlight)
  const begun = now()
  await pool(n, inFlight, (i) => {
    const order = from + i
    return new Promise<void>((done, fail) => {
      going.set(order, { at: now(), done, fail })
      engine.start([order])
    })
  })
  return figures(latencies, (now() - begun) / 1_000)
}
