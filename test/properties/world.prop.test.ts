import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Step, take } from './support/actions.ts'
import { Census } from './support/census.ts'
import { LAWS } from './support/laws.ts'
import { comeToRest } from './support/quiet.ts'
import { storyOf } from './support/story.ts'
import { World } from './support/world.ts'

/** Worlds to play; each is up to `STEPS` steps of three processes on one thread. */
const RUNS = Number(process.env['THREADLOG_PROP_RUNS'] ?? 1_500)
const SEED = process.env['THREADLOG_PROP_SEED'] === undefined ? undefined : Number(process.env['THREADLOG_PROP_SEED'])
const STEPS = 70

const steps = fc.array(fc.tuple(fc.nat(9_999), fc.nat(999_999)), { minLength: 1, maxLength: STEPS, size: 'max' })

async function play(choices: readonly Step[]): Promise<World> {
  const world = await World.open()
  for (const step of choices) await take(world, step)
  await comeToRest(world)
  return world
}

/** The first world in which each law was broken, by the path that leads fast-check back to it. */
const broken = new Map<string, string>()
let seed = 0
const census = new Census()

beforeAll(async () => {
  let path = -1
  const played = fc.asyncProperty(steps, async (choices) => {
    path++
    const world = await play(choices)
    const story = storyOf(world)
    census.count(story, choices.length)
    for (const [name, law] of Object.entries(LAWS))
      if (!broken.has(name) && !holds(() => law(story))) broken.set(name, String(path))
  })
  const details = await fc.check(played, { numRuns: RUNS, seed: SEED })
  seed = details.seed
  if (details.failed) throw new Error(`A world could not be played: ${String(details.errorInstance)}`)
}, 300_000)

afterAll(() => console.log(`${RUNS} worlds, seed ${seed}:`, Object.fromEntries([...census.counts].sort())))

function holds(law: () => Iterable<string>): boolean {
  try {
    return [...law()].length === 0
  } catch {
    return false
  }
}

test.each(Object.entries(LAWS))(
  '%s',
  async (name, law) => {
    const path = broken.get(name)
    if (path === undefined) return
    const again = fc.asyncProperty(steps, async (choices) => {
      const world = await play(choices)
      const faults = [...new Set(law(storyOf(world)))]
      expect(faults, `\n${[...world.trace, ...faults.map((fault) => `BROKEN ${fault}`)].join('\n')}\n`).toEqual([])
    })
    await fc.assert(again, { seed, path, numRuns: Number(path) + 1, interruptAfterTimeLimit: 20_000 })
  },
  120_000,
)
