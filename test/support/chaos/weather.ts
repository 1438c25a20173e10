import { setTimeout as delay } from 'node:timers/promises'
import type { Fleet } from './fleet.ts'

export interface WeatherOptions {
  kills: number
  freezes: number
  lockedFreezes: number
  durationMs: number
  random: () => number
}

/** Longest time a freeze takes, start included. */
const FREEZE_MS = 14_000

/** Kills and freezes at seeded moments. Resolves when all have been done and everything runs again. */
export async function weather(fleet: Fleet, o: WeatherOptions): Promise<void> {
  const { random, durationMs } = o
  const at = async (ms: number, work: () => Promise<boolean>) => {
    await delay(ms)
    while (!(await work())) await delay(25)
  }
  const spread = (n: number, from: number, to: number) =>
    Array.from({ length: n }, () => from + random() * Math.max(0, to - from))
  await Promise.all([
    ...spread(o.kills, 400, durationMs).map((ms) => at(ms, () => fleet.killEngine())),
    ...spread(Math.ceil(o.kills / 5), 400, durationMs).map((ms) => at(ms, () => fleet.killApi())),
    ...spread(o.freezes, 300, durationMs - FREEZE_MS).map((ms) => at(ms, () => fleet.freeze(false))),
    ...spread(o.lockedFreezes, 300, durationMs - FREEZE_MS).map((ms) => at(ms, () => fleet.freeze(true))),
  ])
}
