import type { Violation } from './failure.ts'
import { generate } from './generate.ts'
import { guarded, ProtocolModel } from './model.ts'
import { mutated, type Planted } from './mutations.ts'
import { ProtocolFailure } from './protocol-failure.ts'
import { Random } from './random.ts'
import { countSteps, emptyReport, type ProtocolReport } from './report.ts'
import { type ProtocolRules, protocolRules } from './rules.ts'
import { shrink } from './shrink.ts'
import type { ProtocolRecords, ProtocolSchedule, ProtocolStep } from './steps.ts'

export interface ProtocolModelOptions {
  /** Schedule number i is made from `seed + i`. Default 1. */
  seed?: number
  /** How many schedules. Default 1,000. */
  schedules?: number
  /** Steps of each schedule, at least. Default 40. */
  steps?: number
  /** Faults among them, at least. Default 3. */
  faults?: number
  /** Default 3, 2 and 2. */
  writers?: number
  readers?: number
  streams?: number
  /** Default `light`: some hundred microseconds a schedule; `encoded` takes some milliseconds. */
  records?: ProtocolRecords
  /** Faults put into the protocol, to see that the model finds them. */
  planted?: Planted
}

/**
 * Runs the commit protocol (design §4) under schedules made from a seed: writers with lagging tails, lost, late, repeated and torn sends, processes
 * that die, readers that start again anywhere, records that nobody can read. No clock, no I/O. Arbitration, fates, offsets and the fold are
 * those that every log runs. After each schedule everything is read to the end and compared with a reader that saw all.
 * @throws ProtocolFailure the first schedule in which something does not hold, made as small as it gets
 */
export function runProtocolModel(options: ProtocolModelOptions = {}): ProtocolReport {
  const { seed = 1, schedules = 1_000, steps = 40, faults = 3 } = options
  const { writers = 3, readers = 2, streams = 2, records = 'light', planted = SOUND } = options
  const rules = rulesOf(planted)
  const size = { writers, readers, streams, records }
  const report = emptyReport(seed)
  for (let i = 0; i < schedules; i++) {
    const model = new ProtocolModel(size, ...rules, report)
    const taken: ProtocolStep[] = []
    const found = guarded(() => {
      generate(model, new Random(seed + i), { steps, faults }, taken)
      model.drain()
      model.verify()
    })
    if (found) throw failure(seed + i, { ...size, steps: taken }, planted, found)
    countSteps(report, taken)
  }
  return report
}

/** Runs one schedule, as a regression test does. @throws ProtocolFailure as it stands, not made smaller */
export function replayProtocol(schedule: ProtocolSchedule, planted = SOUND): ProtocolReport {
  const report = emptyReport(0)
  const violation = violationOf(schedule, planted, report)
  if (violation) throw new ProtocolFailure({ violation, schedule, found: schedule.steps.length, planted })
  countSteps(report, schedule.steps)
  return report
}

const SOUND: Planted = { mutations: [] }

function rulesOf({ mutations, everywhere }: Planted): [nodes: ProtocolRules, truth: ProtocolRules] {
  const rules = mutated(mutations)
  return [rules, everywhere ? rules : protocolRules]
}

function violationOf(schedule: ProtocolSchedule, planted: Planted, report = emptyReport(0)): Violation | undefined {
  const model = new ProtocolModel(schedule, ...rulesOf(planted), report)
  return guarded(() => {
    for (const step of schedule.steps) model.apply(step)
    model.drain()
    model.verify()
  })
}

function failure(seed: number, schedule: ProtocolSchedule, planted: Planted, first: Violation): ProtocolFailure {
  const small = shrink(schedule, (candidate) => violationOf(candidate, planted)?.code === first.code)
  const violation = violationOf(small, planted) ?? first
  return new ProtocolFailure({ violation, schedule: small, found: schedule.steps.length, seed, planted })
}
