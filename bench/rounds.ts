import type { Line, Report } from './report.ts'
import { shown } from './report.ts'
import { median } from './statistics.ts'

const FIGURES = ['per_second', 'p50_ms', 'p99_ms', 'rows_per_second', 'floor_per_second', 'efficiency'] as const

/** The lines of all rounds, their medians, and how a peer compares. */
export class Rounds {
  readonly #report: Report

  constructor(report: Report) {
    this.#report = report
  }

  add(line: Line): void {
    this.#report.add(line)
  }

  /** Adds a line of medians for each measurement that was made more than once, and says the ratios to a peer. */
  summarise(): void {
    const groups = new Map<string, Line[]>()
    for (const line of this.#report.lines) {
      const key = `${line.bench} ${line.threads} ${line.in_flight} ${line.details['events'] ?? line.details['injected_ms'] ?? ''}`
      groups.set(key, [...(groups.get(key) ?? []), line])
    }
    for (const lines of groups.values()) if (lines.length > 1) this.#report.add(medians(lines))
    this.#sayRatios()
  }

  #sayRatios(): void {
    const of = (bench: string, inFlight: number | null) => {
      const lines = this.#report.lines.filter((line) => line.bench === bench && line.in_flight === inFlight)
      const middle = (name: 'per_second' | 'p50_ms' | 'p99_ms') => median(lines.flatMap((line) => line[name] ?? [])) ?? Number.NaN
      return { per_second: middle('per_second'), p50_ms: middle('p50_ms'), p99_ms: middle('p99_ms') }
    }
    const peers = this.#report.lines.filter((line) => line.bench === 'restate')
    for (const inFlight of new Set(peers.map((line) => line.in_flight))) {
      const [ours, theirs] = [of('resume', inFlight), of('restate', inFlight)]
      const ratio = (name: keyof typeof ours) => shown(ours[name] / theirs[name])
      this.#report.say(
        `threadlog ÷ Restate, ${inFlight} in flight: resumes/s ${ratio('per_second')} · p50 ${ratio('p50_ms')} · p99 ${ratio('p99_ms')}`,
      )
    }
  }
}

function medians(lines: readonly Line[]): Line {
  const first = lines[0] as Line
  const of = (values: readonly (number | null | undefined)[]) => median(values.filter((value) => typeof value === 'number'))
  const figures = Object.fromEntries(FIGURES.map((name) => [name, of(lines.map((line) => line[name]))]))
  const details = Object.fromEntries(
    Object.keys(first.details).map((name) => [name, of(lines.map((line) => line.details[name])) ?? Number.NaN]),
  )
  return { ...first, ...figures, details, round: 'median' }
}
