import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { MARKER } from '../kit/marker.ts'
import type { Random } from '../kit/random.ts'

/** One change to the files of a log. Places are parts of a million of the file, since its size differs from run to run. */
export type Damage =
  | { op: 'bytes'; file: 'main' | 'wal'; at: number; length: number; with: 'zero' | 'ones' | 'flip' | 'noise' }
  | { op: 'page'; file: 'main' | 'wal'; page: number; with: 'zero' | 'noise' | number }
  | { op: 'cut'; file: 'main' | 'wal'; at: number }
  | { op: 'grow'; file: 'main' | 'wal'; at: number }
  | { op: 'sql'; sql: string }

const TABLES = [
  'events',
  'streams',
  'meta',
  'requests',
  'results',
  'receipts',
  'checkpoints',
  'progress',
  'projectors',
  'owners',
  'threads',
  'waits',
  'snapshots',
]
const COLUMNS: Record<string, string[]> = {
  events: ['id', 'stream', 'version', 'value'],
  streams: ['id', 'key'],
  meta: ['value', 'name'],
  requests: ['value', 'key', 'time', 'headers', 'offset'],
  results: ['value', 'key', 'time', 'headers', 'offset'],
  receipts: ['value', 'key', 'time', 'headers', 'offset'],
  checkpoints: ['value', 'key', 'time', 'headers', 'offset'],
  progress: ['next', 'topic', 'group_name'],
  projectors: ['version', 'next', 'published', 'name'],
  owners: ['pid', 'host', 'start_time', 'expires_at'],
  threads: ['version', 'status', 'application', 'stream', 'updated_at', 'run_id', 'open_waits'],
  waits: ['status', 'revision', 'continuation_id', 'stream', 'deadline', 'created_at', 'kind'],
  snapshots: ['version', 'hash', 'fold_version', 'state'],
}
const VALUES = [
  'NULL',
  '0',
  '1',
  '-1',
  '2',
  '9223372036854775807',
  '9007199254740993',
  '1.5',
  "''",
  `'${MARKER}'`,
  "x''",
  "x'00'",
  'zeroblob(100)',
  'randomblob(50)',
]

export function damages(random: Random): Damage[] {
  return random.list(1, random.once(3) ? 4 : 1, () => damage(random))
}

function damage(random: Random): Damage {
  const file = random.once(4) ? 'wal' : 'main'
  return random.any<Damage>(
    () => ({
      op: 'bytes',
      file,
      at: random.below(1_000_000),
      length: random.pick([1, 1, 2, 4, 16, 100, 5_000]),
      with: random.pick(['zero', 'ones', 'flip', 'flip', 'noise']),
    }),
    // The header of the file, and of its first page.
    () => ({
      op: 'bytes',
      file,
      at: random.below(30),
      length: random.pick([1, 2, 4, 16]),
      with: random.pick(['zero', 'ones', 'flip', 'noise']),
    }),
    () => ({ op: 'page', file, page: random.below(64), with: random.pick(['zero', 'noise', random.below(64)] as const) }),
    () => ({ op: random.once(2) ? 'cut' : 'grow', file, at: random.below(1_000_000) }),
    () => ({ op: 'sql', sql: statement(random) }),
    () => ({ op: 'sql', sql: statement(random) }),
  )
}

function statement(random: Random): string {
  const table = random.once(2)
    ? random.pick(['events', 'events', 'streams', 'snapshots', 'waits', 'threads'])
    : random.pick(TABLES)
  const column = random.pick(COLUMNS[table] ?? ['rowid'])
  const row = `rowid = (SELECT rowid FROM ${table} ORDER BY rowid LIMIT 1 OFFSET ${random.below(12)})`
  const changed = `substr(value, 1, ${random.below(60)}) || ${random.pick(["x'ff'", "x'00'", "x'7a71'"])} || substr(value, ${random.between(1, 90)})`
  return random.any(
    () => `UPDATE ${table} SET ${column} = ${random.pick(VALUES)} WHERE ${row}`,
    () => `UPDATE ${table} SET ${column} = ${random.pick(VALUES)}`,
    () => `DELETE FROM ${table} WHERE ${row}`,
    () => `DELETE FROM ${table}`,
    () =>
      random.once(3)
        ? `DROP TABLE ${table}`
        : `DELETE FROM events WHERE id > (SELECT max(id) FROM events) - ${random.between(1, 5)}`,
    () => `UPDATE events SET value = CAST(${changed} AS BLOB) WHERE id = ${random.between(1, 40)}`,
    () => `UPDATE events SET stream = stream + 1, version = version + 100 WHERE id = ${random.between(1, 40)}`,
    () => `UPDATE events SET id = id + 1000 WHERE id > ${random.between(1, 40)}`,
    () =>
      random.pick([
        'DROP VIEW threadlog_results',
        'DROP TRIGGER threadlog_results_insert',
        'DROP INDEX waits_pending',
        'PRAGMA user_version = 99',
        'PRAGMA user_version = -1',
        'PRAGMA application_id = 7',
        'ALTER TABLE events RENAME TO gone',
        'ALTER TABLE waits ADD COLUMN more',
        'ALTER TABLE events DROP COLUMN value',
      ]),
    () =>
      `INSERT INTO ${random.pick(['events(stream, version, value) VALUES (1, 9999, ', 'results(key, value, time) VALUES (1, ', `meta(name, value) VALUES ('${MARKER}', `])}${random.pick(VALUES)}${random.pick([')', ", 'x')"])}`,
  )
}

/** Damages the files of a log. What SQLite itself refuses is no damage. */
export function inflict(main: string, damage: Damage, noise: (length: number) => Uint8Array): void {
  if (damage.op === 'sql') {
    execute(main, damage.sql)
    return
  }
  const file = damage.file === 'wal' ? `${main}-wal` : main
  if (!existsSync(file)) return
  const bytes = readFileSync(file)
  if (bytes.length > 0) writeFileSync(file, changed(bytes, damage, noise))
}

function changed(bytes: Buffer, damage: Exclude<Damage, { op: 'sql' }>, noise: (length: number) => Uint8Array): Uint8Array {
  if (damage.op === 'page') {
    const of = (page: number) => (page * 4_096) % bytes.length
    const at = of(damage.page)
    const from =
      typeof damage.with === 'number'
        ? bytes.subarray(of(damage.with), of(damage.with) + 4_096)
        : damage.with === 'zero'
          ? Buffer.alloc(4_096)
          : noise(4_096)
    bytes.set(Uint8Array.from(from).subarray(0, bytes.length - at), at)
    return bytes
  }
  const at = Math.floor((damage.at / 1_000_000) * bytes.length)
  if (damage.op === 'cut') return bytes.subarray(0, at)
  if (damage.op === 'grow') return Buffer.concat([bytes, noise(at % 20_000)])
  const start = damage.at < 100 ? damage.at : at
  for (let i = start; i < Math.min(bytes.length, start + damage.length); i++)
    bytes[i] =
      damage.with === 'zero'
        ? 0
        : damage.with === 'ones'
          ? 0xff
          : damage.with === 'flip'
            ? (bytes[i] as number) ^ (1 << (i % 8))
            : (noise(1)[0] as number)
  return bytes
}

function execute(file: string, sql: string): void {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(file, { timeout: 1_000 })
    database.exec(sql)
  } catch {
    // Refused, or damaged too much already.
  }
  try {
    database?.close()
  } catch {
    // A file that cannot be closed properly is damaged, too.
  }
}
