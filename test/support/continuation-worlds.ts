import fc from 'fast-check'
import { spoilt } from './continuation-faults.ts'
import { Play, type Store } from './continuation-play.ts'
import type { Step } from './continuation-steps.ts'

const SEED = process.env['THREADLOG_PROP_SEED'] === undefined ? undefined : Number(process.env['THREADLOG_PROP_SEED'])
const STEPS = 40
const steps: fc.Arbitrary<Step[]> = fc.array(fc.array(fc.nat(99_999), { minLength: 40, maxLength: 40 }), {
  minLength: 10,
  maxLength: STEPS,
  size: 'max',
})

/** Replicas of one store, empty at first. */
export interface Ground {
  replicas: Store[]
  /** Lets each replica read what the others wrote, where each has a copy of its own. */
  settle?(): Promise<unknown>
  close(): Promise<void>
}
/** @param haste how much time passes at once, in milliseconds, when somebody waits */
export type Open = (onlyAwaited: boolean, haste: number) => Promise<Ground>

/** Plays worlds until one differs. @returns what happened how often */
export async function play(
  open: Open,
  o: { worlds: number; seed?: number; spoil?: (store: Store) => Partial<Store> },
): Promise<Map<string, number>> {
  const seen = new Map<string, number>()
  const world = async (choices: Step[], onlyAwaited: boolean, haste: number) => {
    const ground = await open(onlyAwaited, haste)
    try {
      const replicas = ground.replicas.map((store) => spoilt(store, o.spoil?.(store) ?? {}))
      const game = new Play(replicas, onlyAwaited)
      for (const step of choices) {
        await ground.settle?.()
        await game.step(step)
      }
      await ground.settle?.()
      await game.finish()
      for (const [what, times] of game.seen) seen.set(what, (seen.get(what) ?? 0) + times)
    } finally {
      await ground.close()
    }
  }
  const property = fc.asyncProperty(steps, fc.boolean(), fc.constantFrom(1, 100, 2_500), world)
  const { worlds: numRuns, seed = SEED, spoil } = o
  // A fault that was planted need not be told briefly.
  await fc.assert(property, { numRuns, endOnFailure: spoil !== undefined, ...(seed === undefined ? {} : { seed }) })
  return seen
}
