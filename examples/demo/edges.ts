import { DatabaseSync } from 'node:sqlite'
import type { LogBackend } from '../../src/index.ts'

export interface ReceiptRow {
  verdict: string
  provider: string
  result_id: string
  source: string
}

export interface CheckpointRow {
  version: number
  status: string
  waits: number
  state_digest: string
}

const VIEWS = {
  receipts: `SELECT verdict, provider, ifnull(result_id, '') AS result_id,
    ifnull(source_topic || ' ' || source_offset, json_extract(value, '$.source.api')) AS source FROM threadlog_receipts ORDER BY offset`,
  checkpoints: `SELECT version, status, json_array_length(value, '$.waits') AS waits,
    json_extract(value, '$.state_digest') AS state_digest FROM threadlog_checkpoints ORDER BY offset`,
}

/** As any program sees them in a SQLite log. */
export function rowsOfView<Row>(file: string, view: keyof typeof VIEWS): Row[] {
  using db = new DatabaseSync(file, { readOnly: true })
  return db.prepare(VIEWS[view]).all() as Row[]
}

interface Receipt {
  verdict: string
  provider: string
  result_id?: string
  source: { api?: string; topic?: string; offset?: string }
}
interface Checkpoint {
  version: number
  status: string
  waits: string[]
  state_digest: string
}

const ROWS = {
  receipts: ({ verdict, provider, result_id = '', source }: Receipt): ReceiptRow => ({
    verdict,
    provider,
    result_id,
    source: source.topic === undefined ? (source.api ?? '') : `${source.topic} ${source.offset}`,
  }),
  checkpoints: ({ version, status, waits, state_digest }: Checkpoint): CheckpointRow => ({
    version,
    status,
    waits: waits.length,
    state_digest,
  }),
}

/** As they stand in the topics of a log on Kafka, in the order of their time. */
export async function recordsOfTopic<Row>(log: LogBackend, topic: keyof typeof ROWS): Promise<Row[]> {
  const found: { time: number; row: unknown }[] = []
  for await (const page of log.topics.scan(topic))
    for (const { value, time } of page) {
      const record = JSON.parse(Buffer.from(value).toString())
      found.push({ time, row: ROWS[topic](record) })
    }
  return found.sort((a, b) => a.time - b.time).map(({ row }) => row as Row)
}
