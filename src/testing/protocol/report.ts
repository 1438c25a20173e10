import type { ProtocolStep } from './steps.ts'
import { faultName, isFault } from './steps.ts'

/** Counts by name. */
export type Tally = Record<string, number>

/** What happened in all schedules of a run. */
export interface ProtocolReport {
  readonly seed: number
  schedules: number
  /** Steps that had an effect. */
  readonly steps: { total: number; fewest: number; most: number; byKind: Tally; lengths: Tally }
  readonly faults: { total: number; fewest: number; most: number; byKind: Tally }
  /** Records in the partitions at the end. */
  records: number
  readonly commits: { accepted: number; refused: number; void: Tally; revived: number }
  /** What callers were told. */
  readonly answers: Tally
  /** Sends whose writer could not know whether they were written; acknowledged copies that were void and were sent again. */
  readonly sends: { ambiguous: number; repeatedUndecided: number }
  /** Stops and starts in the schedules; each record of each partition is one more. */
  readonly restarts: { tails: number; writers: number; afterRecord: number }
  quarantined: number
}

export const emptyReport = (seed: number): ProtocolReport => ({
  seed,
  schedules: 0,
  steps: { total: 0, fewest: Number.POSITIVE_INFINITY, most: 0, byKind: {}, lengths: {} },
  faults: { total: 0, fewest: Number.POSITIVE_INFINITY, most: 0, byKind: {} },
  records: 0,
  commits: { accepted: 0, refused: 0, void: {}, revived: 0 },
  answers: {},
  sends: { ambiguous: 0, repeatedUndecided: 0 },
  restarts: { tails: 0, writers: 0, afterRecord: 0 },
  quarantined: 0,
})

export const count = (tally: Tally, name: string, by = 1): void => {
  tally[name] = (tally[name] ?? 0) + by
}

/** Adds what one schedule did. */
export function countSteps(report: ProtocolReport, steps: readonly ProtocolStep[]): void {
  let faults = 0
  for (const step of steps) {
    count(report.steps.byKind, step[0])
    if (step[0] === 'rewind') report.restarts.tails++
    if (step[0] === 'kill') report.restarts.writers++
    if (!isFault(step)) continue
    faults++
    count(report.faults.byKind, faultName(step))
  }
  report.schedules++
  addRange(report.steps, steps.length)
  addRange(report.faults, faults)
  const from = Math.floor(steps.length / 10) * 10
  count(report.steps.lengths, `${from}-${from + 9}`)
}

function addRange(range: { total: number; fewest: number; most: number }, value: number): void {
  range.total += value
  range.fewest = Math.min(range.fewest, value)
  range.most = Math.max(range.most, value)
}

/** One report of several runs. The seed is the first one's. */
export function mergeReports(reports: readonly ProtocolReport[]): ProtocolReport {
  const sum = emptyReport(reports[0]?.seed ?? 0)
  for (const report of reports) add(sum, report)
  return sum
}

type Numbers = { [name: string]: number | Numbers }

function add(sum: object, more: object): void {
  const into = sum as Numbers
  for (const [name, value] of Object.entries(more as Numbers)) {
    const before = into[name]
    if (typeof value === 'object') add((into[name] ??= {}) as object, value)
    else if (name === 'fewest') into[name] = Math.min(before as number, value)
    else if (name === 'most') into[name] = Math.max(before as number, value)
    else if (name !== 'seed') into[name] = ((before as number | undefined) ?? 0) + value
  }
}

/** The report as lines of text. */
export function formatReport(report: ProtocolReport): string {
  const { schedules, steps, faults, commits, answers, sends, restarts } = report
  const per = (value: number) => (value / Math.max(1, schedules)).toFixed(1)
  const lines: [string, string][] = [
    ['schedules', `${schedules} from seed ${report.seed}`],
    ['steps', `${steps.total}; ${steps.fewest} to ${steps.most} a schedule, ${per(steps.total)} on average`],
    ['  lengths', tallied(steps.lengths, (a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))],
    ['  kinds', tallied(steps.byKind)],
    ['faults', `${faults.total}; ${faults.fewest} to ${faults.most} a schedule, ${per(faults.total)} on average`],
    ['  kinds', tallied(faults.byKind)],
    ['records', `${report.records}; ${per(report.records)} a schedule`],
    ['commits', `${commits.accepted} accepted, ${commits.refused} refused, ${commits.revived} accepted after a void copy`],
    ['  void', tallied(commits.void)],
    ['answers', tallied(answers)],
    ['sends', `${sends.ambiguous} ambiguous, ${sends.repeatedUndecided} acknowledged but void and sent again`],
    ['restarts', `${restarts.tails} of tails, ${restarts.writers} of writers, ${restarts.afterRecord} one after each record`],
    ['quarantined', `${report.quarantined} threads`],
  ]
  return lines.map(([name, text]) => `${name.padEnd(12)}${text}`).join('\n')
}

const tallied = (tally: Tally, order?: (a: string, b: string) => number): string =>
  Object.entries(tally)
    .sort((a, b) => (order ? order(a[0], b[0]) : b[1] - a[1]))
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
