import { isAnyOverdue } from '../../../src/continuations/index.ts'
import type { Agent, RunRecordOptions } from '../../../src/harness/index.ts'
import { threadStatus } from '../../../src/projections/index.ts'
import { type Saying, sayAgain, submission } from './answers.ts'
import { modelAnswer, type Pick, REVISIONS } from './cast.ts'
import type { Gate, Process } from './process.ts'
import { flush, type World } from './world.ts'

/** A choice of what happens next, and how: numbers, taken modulo what is possible. */
export type Step = readonly [choice: number, detail: number]

/** How often, and what. */
type Action = readonly [weight: number, act: () => unknown]

/** Does what a step means in the world as it is. */
export async function take(world: World, [choice, detail]: Step): Promise<void> {
  world.clock.pass(1)
  const pick = picker(detail)
  const possible = [...ofThread(world, pick), ...world.processes.flatMap((p, place) => ofProcess(world, p, place, pick))]
  let left = choice % possible.reduce((sum, [weight]) => sum + weight, 0)
  const [, act] = possible.find(([weight]) => (left -= weight) < 0) as Action
  await act()
  await flush()
}

function picker(detail: number): Pick {
  return (below) => {
    const value = detail % below
    detail = (Math.floor(detail / below) + detail * 7) % 1_000_003
    return value
  }
}

const one = <T>(items: readonly T[], pick: Pick): T => items[pick(items.length)] as T

const MODES = ['never', 'declared', 'declared', 'always'] as const
const optionsOf = (pick: Pick): RunRecordOptions => ({
  toolRecovery: one(MODES, pick),
  toolErrors: pick(2) === 0 ? 'return' : 'throw',
})

function ofThread(world: World, pick: Pick): Action[] {
  const { run, requested, waits, closedWaits } = world.state
  const idle = !run && requested.length === 0
  const open = [...waits.values()].filter((wait) => wait.status === 'pending')
  const known = [...waits.values(), ...[...closedWaits].map(([, wait]) => wait)]
  const silent = world.processes.some(({ view }) => view.held)
  const actions: Action[] = [[silent || open.length > 0 ? 8 : 2, () => passTime(world, pick)]]
  if (requested.length < 3) actions.push([idle ? 30 : 2, () => ask(world, pick)])
  if (!idle) actions.push([1, () => cancel(world, pick)])
  if (open.length > 0) actions.push([24, () => submit(world, submission(world, one(open, pick), pick), pick)])
  if (open.length > 0)
    actions.push([
      3,
      () => {
        const p = one(world.processes, pick)
        const { id } = one(open, pick)
        world.note(`${p.name} hears a heartbeat for ${id}`)
        return world.beat(p, id)
      },
    ])
  const tooLate = known.some((wait) => wait.status === 'expired')
  if (known.length > 0) actions.push([tooLate ? 8 : 2, () => submit(world, submission(world, one(known, pick), pick), pick)])
  if (world.submitted.length > 0) actions.push([4, () => submit(world, sayAgain(world, one(world.submitted, pick), pick), pick)])
  return actions
}

function passTime(world: World, pick: Pick): void {
  const ms = one([1_000, 6_000, 11_000, 12_000, 40_000], pick)
  world.note(`${ms} ms pass`)
  world.clock.pass(ms)
}

async function ask(world: World, pick: Pick): Promise<void> {
  const p = one(world.processes, pick)
  const input = pick(6) === 0 ? null : inputOf(world)
  const options = optionsOf(pick)
  const known = world.commands.length > 0 && pick(4) === 0
  const commandId = known ? one(world.commands, pick) : pick(2) === 0 ? `command-${world.commands.length}` : null
  if (!known && commandId !== null) world.commands.push(commandId)
  world.note(`${p.name} asks for a run: input ${input}, ${textOf(options)}, command ${commandId}`)
  await world.ask(p, input, options, commandId)
}

const inputOf = (world: World): string => `input ${++world.inputs}`
const textOf = ({ toolRecovery, toolErrors }: RunRecordOptions): string => `${toolRecovery}, errors ${toolErrors}`

async function cancel(world: World, pick: Pick): Promise<void> {
  const p = one(world.processes, pick)
  world.note(`${p.name} cancels the thread`)
  await world.cancel(p)
}

async function submit(world: World, { what, submitted }: Saying, pick: Pick): Promise<void> {
  const p = one(world.processes, pick)
  const fused = pick(2) === 0
  world.note(`${p.name} takes ${what}${fused ? ', and may resume with it' : ''}`)
  await world.submit(p, submitted, fused)
}

function ofProcess(world: World, p: Process, place: number, pick: Pick): Action[] {
  const { view, job, gates, closing, owner } = p
  const { state, suspected } = world
  const note = (line: string) => world.note(`${p.name} ${line}`)
  const actions: Action[] = [[2, () => replace(world, p, place, one(AGENTS, pick), pick)]]
  const may = (condition: boolean, weight: number, line: string, act: () => unknown) => {
    if (condition)
      actions.push([
        weight,
        () => {
          note(line)
          return act()
        },
      ])
  }
  const free = state.run?.status !== 'running' && state.requested.length === 0
  may(!job, isDue(world) ? 14 : 1, 'looks at the thread', () => world.look(p))
  if (!job && free && owner.kind === 'library') actions.push([state.run ? 1 : 10, () => runHere(world, p, pick)])
  const overdue = isAnyOverdue(state, world.clock.now())
  may(overdue, 12, 'finds that time is over', () => world.expire(p))
  if (gates.length > 0) actions.push([36, () => settle(one(gates, pick), pick, note)])
  if (view.held)
    actions.push(
      [view.held.taken ? 6 : 20, () => hear(world, p, pick)],
      [view.held.taken ? 1 : 5, () => replace(world, p, place, one(AGENTS, pick), pick)],
    )
  may(!view.held && !view.holding, job ? 5 : 1, 'will not hear at once of its next append', () => (view.holding = true))
  may(view.lag > 0, 3, 'reads the log', () => view.deliver())
  may(job !== undefined && !suspected.has(owner.id), view.held ? 10 : 1, 'is thought dead', () => suspected.add(owner.id))
  may(!closing.signal.aborted, 1, 'closes', () => closing.abort())
  may(!job && state.version > 0, 2, 'writes a snapshot', () => p.store.snapshot(world.stream, true))
  return actions
}

/** Somebody should do something about the thread. */
function isDue({ state, killed, suspected, processes }: World): boolean {
  const { run, requested } = state
  const status = threadStatus(state)
  if (status !== 'running' || !run) return status === 'resolved' || requested.length > 0
  const owner = run.owner.id
  return killed.has(owner) || suspected.has(owner) || !processes.some((p) => p.owner.id === owner && p.job)
}

const AGENTS: readonly Agent[] = [...REVISIONS, ...Array<Agent>(8).fill(REVISIONS[0] as Agent)]

/** A kill in the middle of an append leaves all of it, nothing, or a part that must be void. */
async function replace(world: World, p: Process, place: number, agent: Agent, pick: Pick): Promise<void> {
  world.note(`${p.name} is killed, and begins anew with revision ${agent.revision}`)
  const held = p.view.held
  if (held && !held.taken) {
    const size = held.commit.records.length
    const written = one([0, size, 1 + pick(size)], pick)
    world.note(`  of its last commit ${written} of ${size} records are written`)
    if (written > 0) world.log.take(held.commit, written)
    if (written > 0 && written < size) world.torn.push(held.commit.id)
  }
  await world.kill(place, agent)
}

function runHere(world: World, p: Process, pick: Pick): void {
  const options = optionsOf(pick)
  world.note(`${p.name} runs the agent here: ${textOf(options)}`)
  world.runHere(p, inputOf(world), options)
}

const OUTCOMES = ['throws', 'throws', 'returns no JSON', ...Array<string>(9).fill('returns')]

function settle(gate: Gate, pick: Pick, note: (line: string) => void): void {
  if (gate.kind === 'model') {
    const answer = modelAnswer(pick)
    note(`hears from the model: it ${answer.what}`)
    gate.give(answer)
    return
  }
  const what = one(OUTCOMES, pick)
  note(`has run ${gate.callId} ${gate.name}: it ${what}`)
  if (what === 'throws') gate.fail(new RangeError('private'))
  else gate.give(what === 'returns' ? { did: gate.name } : 1n)
}

/** The log takes what was sent; its answer may come later. */
function hear(world: World, { name, view }: Process, pick: Pick): void {
  const held = view.held
  if (!held) return
  const late = !held.taken && pick(2) === 0
  held.taken ??= world.log.take(held.commit)
  world.note(
    `the append of ${name} is ${held.taken.accepted ? 'accepted' : 'refused'}${late ? ', which it does not hear yet' : ''}`,
  )
  if (late) return
  view.held = undefined
  held.answer(held.taken)
}
