import { apiSource, HUMAN_PROVIDER, humanContext, outcomeDigest } from '../../../src/continuations/index.ts'
import { goodOutcome } from './answers.ts'
import type { Process } from './process.ts'
import { flush, type World } from './world.ts'

/** Rounds after which a world that still moves never rests. */
const ROUNDS = 40

/**
 * Lets the world come to rest: no more crashes, every process has all tools, whatever was held comes back, models answer with text, tools
 * return, and all waits are answered.
 */
export async function comeToRest(world: World): Promise<void> {
  world.note('-- from here on nothing goes wrong')
  for (const p of world.processes) p.closing.abort()
  for (let round = 0; round < ROUNDS; round++) {
    for (const p of [...world.processes, ...world.retired]) release(world, p)
    await flush()
    if (round === 0) await replaceAll(world)
    world.clock.pass(60_000)
    await flush()
    await answerAll(world)
    for (const p of world.processes) {
      await world.expire(p)
      world.look(p)
      await flush()
    }
    if (isAtRest(world)) break
  }
  for (const p of [...world.processes, ...world.retired]) release(world, p)
  await flush()
}

const isAtRest = (world: World): boolean => {
  const { run, requested } = world.state
  return !run && requested.length === 0 && world.processes.every((p) => !p.job && p.view.lag === 0)
}

async function replaceAll(world: World): Promise<void> {
  const before = [...world.processes]
  for (const [place, p] of before.entries()) {
    await world.start(place)
    world.retire(p)
  }
}

function release(world: World, p: Process): void {
  const { held } = p.view
  p.view.holding = false
  p.view.held = undefined
  held?.answer(held.taken ?? world.log.take(held.commit))
  p.view.deliver()
  for (const gate of p.gates)
    if (gate.kind === 'model') gate.give({ what: 'says a text', text: 'done', end: 'stop' })
    else gate.give({ did: gate.name })
}

async function answerAll(world: World): Promise<void> {
  const [p] = world.processes as [Process]
  for (const wait of world.state.waits.values()) {
    if (wait.status !== 'pending') continue
    const outcome = { result: goodOutcome(wait) }
    const number = world.submitted.length
    const submission = { provider: wait.provider, address: { continuation_id: wait.id }, outcome, digest: outcomeDigest(outcome) }
    const by = {
      actor: { kind: 'provider', id: 'p', source: 't' },
      source: apiSource('submit', `command-${number}`),
      authority: { allows: () => true },
    }
    const context = wait.provider === HUMAN_PROVIDER ? humanContext('lead', 'api', `command-${number}`) : by
    const submitted = { waitId: wait.id, submission, context, verdicts: [] }
    world.submitted.push(submitted)
    world.note(`${p.name} takes result #${number}: a good one for ${wait.id}`)
    await world.submit(p, submitted, false)
  }
}
