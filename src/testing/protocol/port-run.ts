import type { EventLog } from '../../log/index.ts'
import { Violation } from './failure.ts'
import type { LogFaults } from './faulty-log.ts'
import { PortFailure } from './port-failure.ts'
import { PortModel, type PortReport } from './port-model.ts'
import { type PortSchedule, type PortStep, portSteps } from './port-steps.ts'
import { Random } from './random.ts'
import { lowered, smaller } from './shrink.ts'

export interface PortLog {
  /** The log under test, opened for each run; one log may be given for all. */
  open(): Promise<EventLog> | EventLog
  /** A log for each writer, as processes of their own have; by default all have that of `open`. */
  writer?(number: number): EventLog
  /** Opened when all is over, by a reader that begins at the start: what it finds is compared with every answer. Default: that of `open`. */
  later?(): Promise<EventLog>
  /** Milliseconds after which a follower that gives nothing, though there is more, has failed. Default 10,000. */
  patience?: number
}

export interface PortModelOptions extends PortLog {
  /** Default 1. */
  seed?: number
  /** Default 500. */
  steps?: number
  /** Default 3, 2 and 3. */
  writers?: number
  readers?: number
  streams?: number
  faults?: LogFaults
}

/** Runs that shrinking may take: each is one of a real log. */
const MOST_RUNS = 400

/**
 * The protocol model on a real log: writers that each reach it through a {@link faultyLog}, several at a time, readers that stop and start
 * anywhere, commits that no writer would make. At the end, all answers, states and followers are compared with what the log holds.
 * @throws PortFailure at the first thing that does not hold, with the schedule made as small as it gets
 */
export async function runPortModel(options: PortModelOptions): Promise<PortReport> {
  const { seed = 1, steps = 500, writers = 3, readers = 2, streams = 3, faults = {} } = options
  const size = { writers, readers, streams }
  const schedule = { ...size, seed, faults, steps: portSteps(new Random(seed), size, steps) }
  const found = await tried(options, schedule)
  if (!(found instanceof Violation)) return found
  const small = await shrunk(options, schedule, found)
  const violation = small && (await tried(options, small))
  if (violation instanceof Violation) throw new PortFailure(violation, small as PortSchedule, { seed, steps, again: true })
  throw new PortFailure(found, schedule, { seed, steps, again: false })
}

/** Runs one schedule, as a regression test does. @throws PortFailure as it stands, not made smaller */
export async function replayPortModel(log: PortLog, schedule: PortSchedule): Promise<PortReport> {
  const found = await tried(log, schedule)
  if (found instanceof Violation) throw new PortFailure(found, schedule)
  return found
}

async function tried(
  { open, writer, later, patience = 10_000 }: PortLog,
  schedule: PortSchedule,
): Promise<PortReport | Violation> {
  try {
    const log = await open()
    const logs = { log, writer: writer ?? (() => log), later: later ?? (async () => log) }
    return await new PortModel(logs, schedule, patience).run()
  } catch (error) {
    if (error instanceof Violation) return error
    throw error
  }
}

/** Undefined if the schedule does not fail again: a real log has a timing of its own. */
async function shrunk(log: PortLog, schedule: PortSchedule, { code }: Violation): Promise<PortSchedule | undefined> {
  const fails = async (candidate: PortSchedule) => {
    const found = await tried(log, candidate).catch(() => undefined)
    return found instanceof Violation && found.code === code
  }
  if (!(await fails(schedule))) return undefined
  const search = smaller(schedule.steps, plainer, MOST_RUNS)
  let next = search.next()
  while (!next.done) next = search.next(await fails({ ...schedule, steps: next.value }))
  let small: PortSchedule = { ...schedule, steps: next.value }
  for (const fault of FAULTS) {
    const without = { ...small, faults: { ...small.faults, [fault]: 0 } }
    if (await fails(without)) small = without
  }
  return small
}

const FAULTS = ['late', 'twice', 'replyLost', 'requestLost', 'lag'] satisfies (keyof LogFaults)[]

/** A command asks for one event at least, a reader for one record. */
const plainer = (step: PortStep): PortStep[] =>
  lowered(step, (i) => ((step[0] === 'command' && i === 6) || (step[0] === 'read' && i === 3) ? 1 : 0))
