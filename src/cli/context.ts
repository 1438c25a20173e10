import type { JsonObject } from '../base/index.ts'
import { usage } from './errors.ts'
import type { TimeForm } from './format.ts'
import { timeText } from './format.ts'
import type { Io } from './io.ts'
import type { PayloadForm } from './payloads.ts'
import { type Column, tableLines } from './table.ts'
import { visibleJson } from './visible.ts'

/** Name of the machine forms: every document and record carries it. A change that breaks a reader raises the number. */
export const SCHEMA = 'threadlog.cli/1'

export type Format = 'text' | 'json' | 'jsonl'

/** Options every command has. */
export interface CommonOptions {
  log: string
  output?: Format
  json?: boolean
  color: 'auto' | 'always' | 'never'
  time?: TimeForm
  payloads?: PayloadForm
  follow?: boolean
}

/** What a command works with: where its output goes, in which form, and when to stop. */
export class Context {
  readonly io: Io
  readonly log: string
  readonly format: Format
  readonly time: TimeForm
  readonly payloads: PayloadForm
  /** Aborts on SIGINT and SIGTERM. */
  readonly interrupt: AbortSignal
  /** Aborts also when nobody reads the output any more. */
  readonly signal: AbortSignal
  readonly now = Date.now()

  /** @param records true for a command whose JSON is a stream: `--json` then means `-o jsonl` */
  constructor({ io, interrupt }: { io: Io; interrupt: AbortSignal }, o: CommonOptions, records = false) {
    this.io = io
    this.log = o.log
    this.interrupt = interrupt
    this.signal = AbortSignal.any([interrupt, io.gone])
    this.format = o.output ?? (o.json ? (records || o.follow ? 'jsonl' : 'json') : 'text')
    this.time = o.time ?? 'iso'
    this.payloads = o.payloads ?? (this.format === 'text' ? 'preview' : 'full')
    if (o.follow && this.format !== 'jsonl')
      throw usage('--follow writes records, one a line.', { expected: '--follow with -o jsonl', path: '--follow' })
  }

  /** A line of text. */
  print(line: string): Promise<void> {
    return this.io.write(`${line}\n`)
  }

  /** One JSON document. */
  document(value: JsonObject): Promise<void> {
    return this.io.write(`${visibleJson({ schema: SCHEMA, ...value }, 2)}\n`)
  }

  /** One JSON record on a line of its own. */
  record(value: JsonObject): Promise<void> {
    return this.io.write(`${visibleJson({ schema: SCHEMA, ...value })}\n`)
  }

  /** One result: its own lines of text, or the same fields as a document or record. */
  async result(value: JsonObject, text: () => readonly string[]): Promise<void> {
    if (this.format === 'json') return this.document(value)
    if (this.format === 'jsonl') return this.record(value)
    for (const line of text()) await this.print(line)
  }

  /** A list: a table, a document with all records under `name`, or one record a line. */
  async list<T>(name: string, rows: readonly T[], json: (row: T) => JsonObject, columns: readonly Column<T>[]): Promise<void> {
    if (this.format === 'json') return this.document({ [name]: rows.map(json) })
    if (this.format === 'jsonl') for (const row of rows) await this.record(json(row))
    else await this.table(columns, rows)
  }

  async table<T>(columns: readonly Column<T>[], rows: readonly T[]): Promise<void> {
    for (const line of tableLines(columns, rows, this.io.paint)) await this.print(line)
  }

  /** A time as this command shows it. */
  timeText(ms: number): string {
    return timeText(ms, this.time, this.now)
  }
}
