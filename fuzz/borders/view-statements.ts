import { bytesOf, changedText, strangeText } from '../kit/json-text.ts'
import { MARKER } from '../kit/marker.ts'
import type { SqlGiven, Statement } from '../kit/outside.ts'
import type { Random } from '../kit/random.ts'
import { resultBytes } from './result-text.ts'

/** One statement and what must come of it. */
export interface ViewCase extends Statement {
  by: 'node' | 'python'
  /** `insert`: rows are added, one a value · `refused`: an error, and nothing changes · `read`: no error, and nothing changes */
  kind: 'insert' | 'refused' | 'read' | 'any'
  /** The values inserted. */
  inserted: { value: SqlGiven; as: 'blob' | 'text' }[]
}

const VIEWS = ['threadlog_requests', 'threadlog_results', 'threadlog_receipts', 'threadlog_checkpoints'] as const
const CLOSED = ['threadlog_requests', 'threadlog_receipts', 'threadlog_checkpoints'] as const

export function viewCase(random: Random): ViewCase {
  const by = random.once(3) ? 'python' : 'node'
  const made = random.once(4) ? (random.once(3) ? reading(random) : refusedStatement(random)) : insertion(random)
  return { by, ...made }
}

type Made = Omit<ViewCase, 'by'>

function insertion(random: Random): Made {
  const rows = random.list(1, random.once(8) ? 5 : 1, () => ({
    key: value(random, false),
    value: value(random, true),
    text: random.once(12),
  }))
  const keyed = random.once(3)
  const offset = random.once(12)
  const columns = [...(offset ? ['offset', 'time'] : []), ...(keyed ? ['key'] : []), 'value']
  const tuple = (text: boolean) =>
    `(${[...(offset ? ['1', '-5'] : []), ...(keyed ? ['?'] : []), text ? 'CAST(? AS TEXT)' : '?'].join(', ')})`
  const verb = random.once(8) ? random.pick(['INSERT OR REPLACE', 'INSERT OR IGNORE', 'INSERT OR ABORT', 'REPLACE']) : 'INSERT'
  const sql = `${verb} INTO threadlog_results(${columns.join(', ')}) VALUES ${rows.map((row) => tuple(row.text)).join(', ')}`
  const values = rows.flatMap((row) => [...(keyed ? [row.key] : []), row.value])
  return { sql, values, kind: 'insert', inserted: rows.map((row) => ({ value: row.value, as: row.text ? 'text' : 'blob' })) }
}

function value(random: Random, record: boolean): SqlGiven {
  const bytes = record && !random.once(4) ? resultBytes(random) : undefined
  return random.any<SqlGiven>(
    () => ['blob', bytes ?? random.bytes(random.size(200))],
    () => ['text', bytes === undefined ? strangeText(random) : Buffer.from(bytes, 'latin1').toString('utf8')],
    () => ['text', bytes === undefined ? strangeText(random) : Buffer.from(bytes, 'latin1').toString('utf8')],
    () => (random.once(3) ? ['null', null] : ['text', '']),
    () => ['int', random.pick(['0', '-1', '5', '9007199254740993', '9223372036854775807', '-9223372036854775808'])],
    () => ['real', random.pick(['0.5', '-0', '1e21', '1e309', '-1e309', '5e-324', '1.5'])],
    () => (random.once(10) ? ['text', 'x'.repeat(random.pick([1_048_576, 1_048_577, 3_000_000]))] : ['text', MARKER]),
    () => ['blob', random.pick(['\xff', '{"a":"\xed\xa0\x80"}', '\x00', '\xef\xbb\xbf{}', ''])],
  )
}

function refusedStatement(random: Random): Made {
  const given = value(random, true)
  const closed = random.pick(CLOSED)
  const view = random.pick(VIEWS)
  const [sql, values] = random.pick<[string, SqlGiven[]]>([
    [`INSERT INTO ${closed}(value) VALUES (?)`, [given]],
    [`INSERT INTO ${closed}(offset, key, value, time) VALUES (1, ?, ?, 0)`, [given, given]],
    [`REPLACE INTO ${closed}(value) VALUES (?)`, [given]],
    [`UPDATE ${view} SET value = ?`, [given]],
    [`UPDATE ${view} SET provider = ?, key = ? WHERE offset > 0`, [given, given]],
    [`UPDATE ${view} SET offset = offset + 1`, []],
    [`DELETE FROM ${view}`, []],
    [`DELETE FROM ${view} WHERE value = ?`, [given]],
    ['INSERT INTO threadlog_results(value, nonsense) VALUES (?, 1)', [given]],
    ['INSERT INTO threadlog_results(value) VALUES (?, ?)', [given, given]],
    ['INSERT INTO threadlog_results VALUES (?)', [given]],
    ['INSERT INTO threadlog_results(value) VALUES (?) ON CONFLICT DO NOTHING', [given]],
    [`INSERT INTO threadlog_results(value) VALUES (?); DROP VIEW threadlog_results`, [given, given]],
    [changedSql(random, 'INSERT INTO threadlog_result(value) VALUES (?)'), [given]],
  ])
  return { sql, values, kind: /^INSERT INTO threadlog_(closed|result)/.test(sql) ? 'any' : 'refused', inserted: [] }
}

const changedSql = (random: Random, sql: string): string => changedText(random, sql).replace(/[^ -~]/g, '?')

function reading(random: Random): Made {
  const view = random.pick(VIEWS)
  const given = value(random, true)
  const [sql, values] = random.pick<[string, SqlGiven[]]>([
    [`SELECT offset, time, key FROM ${view}`, []],
    [`SELECT count(*) FROM ${view} WHERE value = ? OR key = ?`, [given, given]],
    [`SELECT * FROM ${view} WHERE offset = ?`, [given]],
    [`SELECT a.offset FROM ${view} a JOIN threadlog_results b ON a.key = b.result_id`, []],
    ['SELECT * FROM threadlog_requests', []],
    ['SELECT * FROM threadlog_receipts', []],
    ['SELECT * FROM threadlog_checkpoints', []],
    ['SELECT provider, count(*) FROM threadlog_results GROUP BY 1 HAVING provider IN (?)', [['text', 'payouts']]],
  ])
  return { sql, values, kind: 'read', inserted: [] }
}

/** The bytes SQLite keeps of a value, except of numbers: those are compared with what SQLite itself makes of them. */
export function keptBytes([kind, content]: SqlGiven): Uint8Array | undefined {
  if (kind === 'null') return new Uint8Array()
  if (kind === 'blob') return bytesOf(content)
  if (kind === 'text') return Buffer.from(content, 'utf8')
  return kind === 'int' ? Buffer.from(BigInt(content).toString()) : undefined
}
