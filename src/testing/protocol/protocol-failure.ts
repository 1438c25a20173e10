import type { ProtocolFailureCode, Violation } from './failure.ts'
import type { Planted } from './mutations.ts'
import type { ProtocolSchedule, ProtocolStep } from './steps.ts'

export interface ProtocolFailureParts {
  violation: Violation
  schedule: ProtocolSchedule
  /** Steps of the schedule as it was found. */
  found: number
  seed?: number
  planted: Planted
}

/** A schedule in which the protocol does not hold. The message ends with a test that can be pasted. */
export class ProtocolFailure extends Error {
  override readonly name = 'ProtocolFailure'
  readonly code: ProtocolFailureCode
  /** `runProtocolModel({ seed, schedules: 1, … })` finds it again. Undefined for a replayed schedule. */
  readonly seed: number | undefined
  /** As small as it gets while it fails with the same code. */
  readonly schedule: ProtocolSchedule
  /** Source of a test that runs the schedule, for a file that imports `test` and {@link replayProtocol}. */
  readonly regressionTest: string

  constructor({ violation, schedule, found, seed, planted }: ProtocolFailureParts) {
    const source = regressionTest(violation.code, schedule, seed, planted)
    const where = seed === undefined ? '' : ` Seed ${seed}, ${found} steps made ${schedule.steps.length}.`
    super(`${violation.code}: ${violation.message}${where}\n\n${source}`, { cause: violation.cause ?? violation })
    this.code = violation.code
    this.seed = seed
    this.schedule = schedule
    this.regressionTest = source
  }
}

function regressionTest(
  code: ProtocolFailureCode,
  { writers, readers, streams, records, steps }: ProtocolSchedule,
  seed: number | undefined,
  { mutations, everywhere }: Planted,
): string {
  const names = mutations.map(quoted).join(', ')
  const options = names && `, { mutations: [${names}]${everywhere ? ', everywhere: true' : ''} }`
  return [
    `test('${code}${seed === undefined ? '' : `, seed ${seed}`}', () => {`,
    `  replayProtocol({ writers: ${writers}, readers: ${readers}, streams: ${streams}, records: ${quoted(records)}, steps: [`,
    ...steps.map((step) => `    ${stepSource(step)},`),
    `  ] }${options})`,
    '})',
  ].join('\n')
}

const stepSource = (step: ProtocolStep): string =>
  `[${step.map((value) => (typeof value === 'string' ? quoted(value) : value)).join(', ')}]`

const quoted = (text: string): string => `'${text}'`
