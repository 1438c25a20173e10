import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { receiptSchema } from '../../src/continuations/index.ts'
import type { Engine, Threadlog } from '../../src/index.ts'
import { accepted, type Border, type Outcome, promise, type Rig, refused } from '../kit/border.ts'
import { expectedOf } from '../kit/expected.ts'
import { simplerValues } from '../kit/minimise.ts'
import { nodeOutside, type Outside, pythonOutside } from '../kit/outside.ts'
import { eventCount, openShop, placed } from '../kit/shop.ts'
import { assertVerifies } from '../kit/verify.ts'
import { WaitBook } from '../kit/wait-book.ts'
import { checkReceipt } from './results.ts'
import { keptBytes, type ViewCase, viewCase } from './view-statements.ts'

/** Statements of other programs on the views of a file, beside an engine that judges what they insert. */
export const views: Border<ViewCase> = {
  name: 'views',
  about: 'SQL of other programs (node:sqlite, Python) on the views: every type, wrong columns, updates, invalid UTF-8',
  limitMs: 8_000,
  renewAfter: 300,
  settleAfter: 60,
  open: () => ViewRig.open(),
  generate: viewCase,
  *simpler(input) {
    if (input.by === 'python') yield { ...input, by: 'node' }
    if (input.values.length !== 1 || input.inserted.length !== 1) return
    const [kind, content] = input.values[0] as ViewCase['values'][0]
    for (const simple of simplerValues(content)) {
      if (typeof simple !== 'string') continue
      const value = [kind, simple] as ViewCase['values'][0]
      yield { ...input, values: [value], inserted: input.inserted.map((each) => ({ ...each, value })) }
    }
  },
}

interface Row {
  offset: number
  value: Uint8Array
}

class ViewRig implements Rig<ViewCase> {
  readonly #folder: string
  readonly #threads: Threadlog
  readonly #engine: Engine
  readonly #book: WaitBook
  readonly #eye: DatabaseSync
  readonly #outside: Record<ViewCase['by'], Outside>

  private constructor(folder: string, file: string, threads: Threadlog, engine: Engine, book: WaitBook) {
    this.#folder = folder
    this.#threads = threads
    this.#engine = engine
    this.#book = book
    this.#eye = new DatabaseSync(file, { readOnly: true, timeout: 5_000 })
    this.#outside = { node: nodeOutside(file), python: pythonOutside(file) }
  }

  static async open(): Promise<ViewRig> {
    const folder = mkdtempSync(join(tmpdir(), 'threadlog-fuzz-views-'))
    const file = join(folder, 'log.db')
    const { threads, waits } = await openShop(`sqlite:${file}`)
    return new ViewRig(folder, file, threads, await threads.serve({ sweepMs: 60_000 }), new WaitBook(waits))
  }

  async try(input: ViewCase): Promise<Outcome> {
    const values = input.values.map(([kind, content]) => [kind, this.#placed(content)] as ViewCase['values'][0])
    const before = this.#counts()
    const events = eventCount(this.#threads)
    const { error, unsayable } = await this.#outside[input.by].execute({ sql: input.sql, values })
    if (unsayable) return refused('the program cannot say it')
    const rows = this.#rowsFrom(before.next)
    if (error !== undefined) {
      promise(input.kind !== 'insert' || rows.length > 0 || isTooLarge(error), 'silent', 'an insert was refused', error)
      promise(input.kind !== 'read', 'crash', 'a view cannot be read', `${input.sql}: ${error}`)
      promise(
        rows.length === 0 && this.#counts().sum === before.sum,
        'written',
        'a refused statement has changed something',
        input.sql,
      )
      return refused(error.replace(/".*"|:.*$/, '').slice(0, 40))
    }
    promise(input.kind !== 'refused', 'silent', 'a statement was taken that must not be', input.sql)
    if (input.kind === 'read') {
      promise(this.#counts().sum === before.sum, 'written', 'reading has changed something')
      return accepted('read')
    }
    if (input.kind === 'insert') this.#compare(input, rows)
    let [last, taken] = ['none', 0]
    for (const row of rows) {
      const { verdict, isNew } = await this.#judged(row)
      last = verdict
      if (isNew) taken++
    }
    promise(eventCount(this.#threads) === events + taken, 'written', 'the events are not those the receipts tell of')
    return last === 'accepted' || last === 'duplicate' ? accepted(last) : rows.length === 0 ? accepted('nothing') : refused(last)
  }

  #placed = (content: string | null): string | null => (content === null ? null : placed(content, this.#book.waits))

  /** What stands in the table is what was given, byte for byte. */
  #compare(input: ViewCase, rows: Row[]): void {
    promise(rows.length === input.inserted.length, 'silent', `${input.inserted.length} inserts made ${rows.length} rows`)
    for (const [i, { value, as }] of input.inserted.entries()) {
      const [kind, content] = value
      const kept = keptBytes([kind, this.#placed(content)] as typeof value)
      const text = kept === undefined || as === 'text' ? undefined : Buffer.from(kept)
      promise(text === undefined || text.equals((rows[i] as Row).value), 'silent', `a ${kind} is kept as other bytes`)
    }
  }

  async #judged({ offset, value }: Row): Promise<{ verdict: string; isNew: boolean }> {
    const receipt = await this.#receipt(offset)
    checkReceipt(receipt)
    const expected = expectedOf(value)
    const { cluster } = receipt.source as { cluster: string }
    const way = { outside: true, coordinate: `${cluster}/results/0/${offset}` }
    const { verdict } = receipt
    if (expected.verdict === 'submission') {
      const may = this.#book.verdicts(expected, way)
      promise(may.includes(verdict), 'silent', `${may.join(' or ')} was judged ${verdict}`, receipt.code)
      this.#columns(offset, expected)
      return { verdict, isNew: verdict === 'accepted' && this.#book.accept(expected, way) }
    }
    const right = expected.verdict
    promise(verdict === right, 'silent', `${right} was judged ${verdict}`, receipt.code)
    return { verdict, isNew: false }
  }

  /** The columns say what the engine read. */
  #columns(offset: number, expected: Extract<ReturnType<typeof expectedOf>, { verdict: 'submission' }>): void {
    const row = this.#eye.prepare('SELECT * FROM threadlog_results WHERE offset = ?').get(offset) as Record<string, unknown>
    const right = {
      application_id: expected.application,
      provider: expected.provider,
      external_id: expected.external,
      continuation_id: expected.continuation,
      result_id: expected.resultId,
      schema_id: expected.schema,
      proposal_digest: expected.proposal,
    }
    for (const [name, value] of Object.entries(right))
      promise(
        (row[name] ?? undefined) === value,
        'silent',
        `the column ${name} differs from what was judged`,
        JSON.stringify([row[name], value]),
      )
  }

  async #receipt(offset: number) {
    for (;;) {
      const row = this.#eye.prepare('SELECT value FROM threadlog_receipts WHERE source_offset = ?').get(offset) as
        | { value: string }
        | undefined
      if (row) return receiptSchema.parse(JSON.parse(row.value))
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }

  #rowsFrom(offset: number): Row[] {
    return this.#eye.prepare('SELECT offset, value FROM results WHERE offset >= ? ORDER BY offset').all(offset) as never
  }

  #counts(): { next: number; sum: string } {
    const of = (table: string) =>
      this.#eye
        .prepare(`SELECT count(*) AS n, ifnull(max(offset), 0) AS last, total(length(value)) AS size FROM ${table}`)
        .get() as {
        n: number
        last: number
        size: number
      }
    const all = ['requests', 'results', 'receipts', 'checkpoints'].map(of)
    const events = eventCount(this.#threads)
    return { next: (all[1]?.last ?? 0) + 1, sum: JSON.stringify([all, events]) }
  }

  async settle(): Promise<void> {
    const twice = this.#eye
      .prepare('SELECT source_offset FROM threadlog_receipts WHERE source_offset IS NOT NULL GROUP BY 1 HAVING count(*) > 1')
      .all()
    promise(twice.length === 0, 'written', 'a record has two receipts')
    await assertVerifies(this.#threads.backend)
  }

  async close(): Promise<void> {
    this.#eye.close()
    await Promise.all([this.#outside.node.close(), this.#outside.python.close()])
    await this.#engine.close()
    await this.#threads.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

const isTooLarge = (error: string): boolean => /too big/.test(error)
