import { setTimeout as delay } from 'node:timers/promises'
import type { Fleet } from './fleet.ts'
import type { Ground } from './ground.ts'

export interface WeatherOptions {
  kills: number
  freezes: number
  lockedFreezes: number
  /** Times that what the log runs on is killed. */
  logBreaks?: number
  durationMs: number
  random: () => number
}

/** Longest time a freeze takes beside its own length. */
const FREEZE_MS = 1_000

/** Kills and freezes at seeded moments. Resolves when all have been done and everything runs again. */
export async function weather(fleet: Fleet, { freezeMs }: Pick<Ground, 'freezeMs'>, o: WeatherOptions): Promise<void> {
  const { random, durationMs } = o
  const lastFreeze = durationMs - freezeMs[1] - FREEZE_MS
  const at = async (ms: number, work: () => Promise<boolean>) => {
    await delay(ms)
    while (!(await work())) await delay(25)
  }
  const spread = (n: number, from: number, to: number) =>
    Array.from({ length: n }, () => from + random() * Math.max(0, to - from))
  // One after the other, each some seconds after the last.
  const breaks = async () => {
    const every = durationMs / Math.max(1, o.logBreaks ?? 0)
    for (let i = 0; i < (o.logBreaks ?? 0); i++) await at(every * (0.4 + random() * 0.4), () => fleet.breakLog())
  }
  await Promise.all([
    breaks(),
    ...spread(o.kills, 400, durationMs).map((ms) => at(ms, () => fleet.killEngine())),
    ...spread(Math.ceil(o.kills / 5), 400, durationMs).map((ms) => at(ms, () => fleet.killApi())),
    ...spread(o.freezes, 300, lastFreeze).map((ms) => at(ms, () => fleet.freeze(false))),
    ...spread(o.lockedFreezes, 300, lastFreeze).map((ms) => at(ms, () => fleet.freeze(true))),
  ])
}
