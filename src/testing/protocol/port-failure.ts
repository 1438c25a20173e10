import type { ProtocolFailureCode, Violation } from './failure.ts'
import type { PortSchedule } from './port-steps.ts'

/** A schedule in which a log does not hold what the protocol promises. The message ends with a test that can be pasted. */
export class PortFailure extends Error {
  override readonly name = 'PortFailure'
  readonly code: ProtocolFailureCode
  /** `runPortModel({ seed, … })` makes the schedule again. Undefined for a replayed schedule. */
  readonly seed: number | undefined
  /** As small as it gets while it fails with the same code; as it was found if it did not fail again. */
  readonly schedule: PortSchedule
  /** Source of a test that runs the schedule, for a file that imports `test` and {@link replayPortModel} and has an `open`. */
  readonly regressionTest: string

  constructor(violation: Violation, schedule: PortSchedule, from?: { seed: number; steps: number; again: boolean }) {
    const source = regressionTest(violation.code, schedule, from?.seed)
    const size = from?.again ? `${from.steps} steps made ${schedule.steps.length}` : 'it did not fail again when replayed'
    super(`${violation.code}: ${violation.message}${from ? ` Seed ${from.seed}, ${size}.` : ''}\n\n${source}`, {
      cause: violation.cause ?? violation,
    })
    this.code = violation.code
    this.seed = from?.seed
    this.schedule = schedule
    this.regressionTest = source
  }
}

function regressionTest(
  code: ProtocolFailureCode,
  { seed, writers, readers, streams, faults, steps }: PortSchedule,
  found: number | undefined,
): string {
  return [
    `test('${code}${found === undefined ? '' : `, seed ${found}`}', async () => {`,
    `  const faults = { ${Object.entries(faults)
      .map(([name, percent]) => `${name}: ${percent}`)
      .join(', ')} }`,
    `  await replayPortModel({ open }, { seed: ${seed}, writers: ${writers}, readers: ${readers}, streams: ${streams}, faults, steps: [`,
    ...steps.map((step) => `    [${step.map((value) => (typeof value === 'string' ? `'${value}'` : value)).join(', ')}],`),
    '  ] })',
    '})',
  ].join('\n')
}
