import { ordersOf, resumeLoop } from './closed-loop.ts'
import { RestateSystem } from './restate-system.ts'
import type { Measured, ResumeOptions } from './resume.ts'

/** The work of `resume` on Restate, with the same producer. */
export async function measureRestate(folder: string, o: Omit<ResumeOptions, 'log' | 'profile'>): Promise<Measured> {
  const system = await RestateSystem.start(folder)
  try {
    await system.open(o.threads + o.warmUp)
    const { warm, measured } = ordersOf(o.warmUp, o.threads)
    await resumeLoop(system, warm, o.inFlight)
    const { perSecond, p50, p99 } = await resumeLoop(system, measured, o.inFlight)
    return { per_second: perSecond, p50_ms: p50, p99_ms: p99, rows_per_second: null, details: {} }
  } finally {
    await system.stop()
  }
}
