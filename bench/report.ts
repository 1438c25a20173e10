/** One measurement. Null: does not apply. */
export interface Line {
  bench: string
  log: string
  threads: number
  in_flight: number | null
  per_second: number | null
  p50_ms: number | null
  p99_ms: number | null
  /** Rows of the log, events and topic records, a second. */
  rows_per_second: number | null
  /** Raw grouped rows of the same size, a second, at the same number in flight in the same round. */
  floor_per_second: number | null
  /** `per_second` × 10 ÷ `floor_per_second`. */
  efficiency: number | null
  settings: Record<string, string | number | boolean | null>
  /** The round it was measured in; `median`: of each figure over the rounds. */
  round: number | 'median'
  /** What else was measured. */
  details: Record<string, number>
}

const COLUMNS: [title: string, width: number, value: (line: Line) => string][] = [
  ['bench', 16, (line) => line.bench],
  ['round', 7, (line) => String(line.round)],
  ['threads', 8, (line) => String(line.threads)],
  ['flight', 7, (line) => shown(line.in_flight, 0)],
  ['per s', 9, (line) => shown(line.per_second, 0)],
  ['p50 ms', 9, (line) => shown(line.p50_ms)],
  ['p99 ms', 9, (line) => shown(line.p99_ms)],
  ['rows/s', 9, (line) => shown(line.rows_per_second, 0)],
  ['floor/s', 9, (line) => shown(line.floor_per_second, 0)],
  ['effic.', 7, (line) => shown(line.efficiency)],
]

export function shown(value: number | null, digits = 2): string {
  if (value === null || Number.isNaN(value)) return '–'
  return value.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d)(?<!\.\d*))/g, ',')
}

/** Writes lines as they come: JSON, or rows of a table followed by what else was measured. */
export class Report {
  readonly lines: Line[] = []
  readonly #json: boolean
  #headed = false

  constructor(json: boolean) {
    this.#json = json
  }

  add(line: Line): void {
    this.lines.push(line)
    if (this.#json) console.log(JSON.stringify(line, (_, value) => (typeof value === 'number' ? rounded(value) : value)))
    else this.#addRow(line)
  }

  #addRow(line: Line): void {
    if (!this.#headed) console.log(COLUMNS.map(([title, width]) => pad(title, width)).join(''))
    this.#headed = true
    console.log(COLUMNS.map(([, width, value]) => pad(value(line), width)).join(''))
    const details = Object.entries(line.details).map(([name, value]) => `${name} ${shown(value, value >= 100 ? 0 : 2)}`)
    if (details.length > 0) console.log(`    ${details.join(' · ')}`)
  }

  /** Text for people; nothing in JSON. */
  say(text: string): void {
    if (!this.#json) console.log(text)
  }
}

const pad = (text: string, width: number): string => (width > 10 ? text.padEnd(width) : text.padStart(width))

const rounded = (value: number): number => (Number.isInteger(value) ? value : Number(value.toPrecision(5)))
