import type { RunRecordOptions } from '../../../src/harness/index.ts'
import { sayAgain, submission } from './answers.ts'
import { modelAnswer, type Pick, REVISIONS } from './cast.ts'
import type { Gate, Process } from './process.ts'
import { flush, type World } from './world.ts'

/** A choice of what happens next, and how: numbers, taken modulo what is possible. */
export type Step = readonly [choice: number, detail: number]

type Action = readonly [weight: number, act: () => void | Promise<void>]

/** What a step means in the world as it is. */
export async function take(world: World, [choice, detail]: Step): Promise<void> {
  world.clock.pass(1)
  const pick = picker(detail)
  const possible = [...ofWorld(world, pick), ...world.processes.flatMap((p, place) => ofProcess(world, p, place, pick))]
  let left = choice % possible.reduce((sum, [weight]) => sum + weight, 0)
  for (const [weight, act] of possible) {
    if (left < weight) {
      await act()
      break
    }
    left -= weight
  }
  await flush()
}

function picker(detail: number): Pick {
  return (below) => {
    const value = detail % below
    detail = (Math.floor(detail / below) + detail * 7) % 1_000_003
    return value
  }
}

const MODES = ['never', 'declared', 'declared', 'always'] as const
const options = (pick: Pick): RunRecordOptions => ({
  toolRecovery: MODES[pick(4)] as RunRecordOptions['toolRecovery'],
  toolErrors: pick(2) === 0 ? 'return' : 'throw',
})
const one = <T>(items: readonly T[], pick: Pick): T => items[pick(items.length)] as T

function ofWorld(world: World, pick: Pick): Action[] {
  const actions: Action[] = [
    [
      1,
      () => {
        const ms = [1_000, 6_000, 11_000, 40_000][pick(4)] as number
        world.note(`${ms} ms pass`)
        world.clock.pass(ms)
      },
    ],
  ]
  const { state } = world
  if (state.requested.length < 3) actions.push([world.state.run || state.requested.length > 0 ? 1 : 6, () => ask(world, pick)])
  if (state.run || state.requested.length > 0)
    actions.push([
      1,
      () => {
        const p = one(world.processes, pick)
        world.note(`${p.name} cancels the thread`)
        return world.cancel(p)
      },
    ])
  const open = [...state.waits.values()].filter((wait) => wait.status === 'pending')
  const known = [...state.closedWaits].map(([, wait]) => wait)
  if (open.length > 0) actions.push([7, () => submit(world, submission(world, one(open, pick), pick), pick)])
  if (open.length + known.length > 0)
    actions.push([1, () => submit(world, submission(world, one([...state.waits.values(), ...known], pick), pick), pick)])
  if (world.submitted.length > 0) actions.push([2, () => submit(world, sayAgain(world, one(world.submitted, pick), pick), pick)])
  return actions
}

async function ask(world: World, pick: Pick): Promise<void> {
  const p = one(world.processes, pick)
  const input = pick(6) === 0 ? null : 'go'
  const chosen = options(pick)
  const known = world.commands.length > 0 && pick(4) === 0
  const commandId = known ? one(world.commands, pick) : pick(2) === 0 ? `command-${world.commands.length}` : null
  if (!known && commandId !== null) world.commands.push(commandId)
  world.note(
    `${p.name} asks for a run: input ${input}, ${chosen.toolRecovery}, errors ${chosen.toolErrors}, command ${commandId}`,
  )
  await world.ask(p, input, chosen, commandId)
}

async function submit(world: World, result: ReturnType<typeof submission>, pick: Pick): Promise<void> {
  const p = one(world.processes, pick)
  const fused = pick(2) === 0
  world.note(`${p.name} takes ${result.what}${fused ? ', and may resume with it' : ''}`)
  await world.submit(p, result.submitted, fused)
}

function ofProcess(world: World, p: Process, place: number, pick: Pick): Action[] {
  const note = (line: string) => world.note(`${p.name} ${line}`)
  const actions: Action[] = [
    [
      1,
      () => {
        const agent = one(REVISIONS, pick)
        note(`is killed, and begins anew with revision ${agent.revision}`)
        return lose(world, p, place, agent, pick)
      },
    ],
  ]
  if (!p.job) actions.push([4, () => (note('looks at the thread'), world.look(p))])
  if (!p.job && p.owner.kind === 'library' && !world.state.run && world.state.requested.length === 0)
    actions.push([3, () => (note('runs the agent'), world.runHere(p, 'go', options(pick)))])
  if (p.gates.length > 0) actions.push([9, () => settle(one(p.gates, pick), pick, note)])
  if (p.view.held) actions.push([6, () => answer(world, p, pick)])
  else if (!p.view.holding)
    actions.push([
      1,
      () => {
        note('will not hear of its next append')
        p.view.holding = true
      },
    ])
  if (p.view.lag > 0) actions.push([1, () => (note('reads the log'), p.view.deliver())])
  if (p.job && !world.suspected.has(p.owner.id))
    actions.push([1, () => void (note('is thought dead'), world.suspected.add(p.owner.id))])
  if (p.job && !p.closing.signal.aborted) actions.push([1, () => (note('closes'), p.closing.abort())])
  if (!p.job && world.state.version > 0)
    actions.push([1, async () => void (note('writes a snapshot'), await p.store.snapshot(world.stream, true))])
  return actions
}

/** A kill in the middle of an append leaves all of it, nothing, or a part that must be void. */
async function lose(world: World, p: Process, place: number, agent: (typeof REVISIONS)[0], pick: Pick): Promise<void> {
  const held = p.view.held
  if (held && !held.taken) {
    const size = held.commit.records.length
    const written = [0, size, 1 + pick(size)][pick(3)] as number
    world.note(`  of its last commit ${written} of ${size} records were written`)
    if (written > 0) world.log.take(held.commit, written)
    if (written > 0 && written < size) world.torn.push(held.commit.id)
  }
  await world.kill(place, agent)
}

function settle(gate: Gate, pick: Pick, note: (line: string) => void): void {
  if (gate.kind === 'model') {
    const answer = modelAnswer(pick)
    note(`hears from the model: it ${answer.what}`)
    return gate.give(answer)
  }
  const kind = pick(6)
  const [what, act] =
    kind === 0
      ? (['throws', () => gate.fail(new RangeError('private'))] as const)
      : kind === 1
        ? (['returns too much', () => gate.give('x'.repeat(70_000))] as const)
        : (['returns', () => gate.give({ did: gate.name })] as const)
  note(`has run ${gate.callId} ${gate.name}: it ${what}`)
  act()
}

/** The log takes what was sent, the answer may come later. */
function answer(world: World, p: Process, pick: Pick): void {
  const held = p.view.held
  if (!held) return
  const late = !held.taken && pick(2) === 0
  held.taken ??= world.log.take(held.commit)
  world.note(`${p.name}'s append is ${held.taken.accepted ? 'accepted' : 'refused'}${late ? ', which it does not hear yet' : ''}`)
  if (late) return
  p.view.held = undefined
  held.answer(held.taken)
}
