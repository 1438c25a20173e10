import { generate } from './generate.ts'
import { type ProtocolFailureCode, type Violation } from './failure.ts'
import { guarded, ProtocolModel } from './model.ts'
import { type Mutation, mutated } from './mutations.ts'
import { ProtocolFailure } from './protocol-failure.ts'
import { Random } from './random.ts'
import { countSteps, emptyReport, type ProtocolReport } from './report.ts'
import type { ProtocolRules } from './rules.ts'
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
  mutations?: readonly Mutation[]
}

/**
 * Runs the commit protocol (design §4) under schedules made from a seed: writers with lagging tails, lost, late, repeated and torn sends, processes
 * that die, readers that start again anywhere, records that nobody can read. No clock, no I/O. Arbitration, fates, offsets and the fold are
 * those that every log runs. After each schedule everything is read to the end and compared with a reader that saw all.
 * @throws ProtocolFailure the first schedule in which something does not hold, made as small as it gets
 */
export function runProtocolModel(options: ProtocolModelOptions = {}): ProtocolReport {
  const { seed = 1, schedules = 1_000, steps = 40, faults = 3, mutations = [] } = options
  const { writers = 3, readers = 2, streams = 2, records = 'light' } = options
  const rules = mutated(mutations)
  const size = { writers, readers, streams, records }
  const report = emptyReport(seed)
  for (let i = 0; i < schedules; i++) {
    const model = new ProtocolModel(size, rules, report)
    const taken: ProtocolStep[] = []
    const found = guarded(() => {
      generate(model, new Random(seed + i), { steps, faults }, taken)
      model.drain()
      model.verify()
    })
    if (found) throw failure(seed + i, { ...size, steps: taken }, rules, mutations, found)
    countSteps(report, taken)
  }
  return report
}

/** Runs one schedule, as a regression test does. @throws ProtocolFailure as it stands, not made smaller */
export function replayProtocol(schedule: ProtocolSchedule, options: { mutations?: readonly Mutation[] } = {}): ProtocolReport {
  const report = emptyReport(0)
  const found = violationOf(schedule, mutated(options.mutations ?? []), report)
  if (found) throw new ProtocolFailure({ violation: found, schedule, found: schedule.steps.length, mutations: options.mutations ?? [] })
  countSteps(report, schedule.steps)
  return report
}

function violationOf(schedule: ProtocolSchedule, rules: ProtocolRules, report = emptyReport(0)): Violation | undefined {
  const model = new ProtocolModel(schedule, rules, report)
  return guarded(() => {
    for (const step of schedule.steps) model.apply(step)
    model.drain()
    model.verify()
  })
}

function failure(
  seed: number,
  schedule: ProtocolSchedule,
  rules: ProtocolRules,
  mutations: readonly Mutation[],
  first: Violation,
): ProtocolFailure {
  const code: ProtocolFailureCode = first.code
  const small = shrink(schedule, (candidate) => violationOf(candidate, rules)?.code === code)
  const violation = violationOf(small, rules) ?? first
  return new ProtocolFailure({ violation, schedule: small, found: schedule.steps.length, seed, mutations })
}
