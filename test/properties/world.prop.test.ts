import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Step, take } from './support/actions.ts'
import { Census } from './support/census.ts'
import { LAWS } from './support/laws.ts'
import { comeToRest } from './support/quiet.ts'
import { storyOf } from './support/story.ts'
import { World } from './support/world.ts'

/** Worlds to play: up to `STEPS` steps of three processes on one thread, then rest. */
const RUNS = Number(process.env['THREADLOG_PROP_RUNS'] ?? 3_000)
const SEED = process.env['THREADLOG_PROP_SEED'] === undefined ? undefined : Number(process.env['THREADLOG_PROP_SEED'])
const STEPS = 70
/** Worlds after which everything should have happened. */
const ENOUGH = 1_000
/** Milliseconds to look for a shorter story of the same fault. */
const SHRINKING = 30_000

const steps: fc.Arbitrary<Step[]> = fc.array(fc.tuple(fc.nat(9_999), fc.nat(999_999)), {
  minLength: 1,
  maxLength: STEPS,
  size: 'max',
})

async function play(choices: readonly Step[]): Promise<World> {
  const world = await World.open()
  for (const step of choices) await take(world, step)
  await comeToRest(world)
  return world
}

/** The number of the first world in which each law was broken. */
const broken = new Map<string, number>()
const census = new Census()
let seed = 0

// Every world is played once, for all laws; a law that broke is then looked at by itself.
beforeAll(async () => {
  let number = 0
  const played = fc.asyncProperty(steps, async (choices) => {
    const story = storyOf(await play(choices))
    census.count(story, choices.length)
    for (const [name, law] of Object.entries(LAWS)) if (!broken.has(name) && !holds(() => law(story))) broken.set(name, number)
    number++
  })
  const details = await fc.check(played, { numRuns: RUNS, seed: SEED })
  seed = details.seed
  if (details.failed) throw new Error(`World ${number} of seed ${seed} cannot be played: ${String(details.errorInstance)}`)
}, 600_000)

afterAll(() => {
  console.log(`${RUNS} worlds, seed ${seed}: ${census.summary()}`)
  if (process.env['THREADLOG_PROP_CENSUS']) console.log(census.all())
})

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
    const number = broken.get(name)
    if (number === undefined) return
    const again = `THREADLOG_PROP_SEED=${seed} THREADLOG_PROP_RUNS=${number + 1} npm test -- test/properties/world`
    const story = fc.asyncProperty(steps, async (choices) => {
      const world = await play(choices)
      const faults = [...new Set(law(storyOf(world)))]
      expect(faults, `\n${[...world.trace, ...faults.map((fault) => `BROKEN: ${fault}`), again].join('\n')}\n`).toEqual([])
    })
    await fc.assert(story, { seed, path: String(number), numRuns: number + 1, interruptAfterTimeLimit: SHRINKING })
  },
  120_000,
)

// A law that nothing could have broken proves nothing.
test.skipIf(RUNS < ENOUGH)(`what the laws speak of has happened (not with THREADLOG_PROP_RUNS below ${ENOUGH})`, () => {
  expect(census.missing()).toEqual([])
})
