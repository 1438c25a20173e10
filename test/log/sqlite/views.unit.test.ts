import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type LogBackend, openSqliteLog, type TopicName } from '../../../src/log/index.ts'
import { jsonBytes, scanAll } from '../../../src/testing/log-conformance/writing.ts'
import { temporaryFolder } from '../support/sqlite-place.ts'

const REQUEST = {
  application_id: 'shop',
  provider: 'payouts',
  capability: 'external',
  continuation_id: 'c-1',
  external_id: 'c-1',
  schema_id: 's',
  tool: 'tool/local/payout',
  arguments: { cents: 4_200, iban: 'DE00' },
  idempotency_key: 'k',
  proposal_digest: 'd',
  deadline: 1_700_000_000_000,
  stream: 'a'.repeat(64),
  version: 7,
}

let folder: ReturnType<typeof temporaryFolder>
let file: string
let log: LogBackend
let outside: DatabaseSync
beforeEach(async () => {
  folder = temporaryFolder()
  file = join(folder.path, 'log.db')
  log = await openSqliteLog({ file })
  outside = new DatabaseSync(file, { timeout: 2_000 })
})
afterEach(async () => {
  outside.close()
  await log.close()
  folder.remove()
})

const publish = (topic: TopicName, value: unknown) => log.topics.publish(topic, [{ key: 'k', value: jsonBytes(value) }])
const row = (sql: string) => ({ ...outside.prepare(sql).get() })

describe('the views', () => {
  test('a request by columns, and whole', async () => {
    await publish('requests', REQUEST)
    const { offset, time, key, value, ...columns } = row('SELECT * FROM threadlog_requests')
    expect(columns).toEqual({ ...REQUEST, arguments: '{"cents":4200,"iban":"DE00"}', cancelled: null })
    expect({ offset, key, type: typeof time }).toEqual({ offset: 1, key: 'k', type: 'number' })
    expect(JSON.parse(value as string)).toEqual(REQUEST)
  })

  test('a receipt by columns', async () => {
    const source = { cluster: 'x', topic: 'results', partition: 0, offset: 12, record_time: 1, api: null, command_id: null }
    await publish('receipts', {
      source,
      sequence: 0,
      final: true,
      verdict: 'accepted',
      provider: 'p',
      continuation_id: 'c',
      result_id: 'r',
    })
    expect(row('SELECT * FROM threadlog_receipts')).toMatchObject({
      verdict: 'accepted',
      final: 1,
      sequence: 0,
      provider: 'p',
      external_id: null,
      continuation_id: 'c',
      result_id: 'r',
      source_topic: 'results',
      source_partition: 0,
      source_offset: 12,
      source_command_id: null,
    })
  })

  test('a checkpoint by columns', async () => {
    await publish('checkpoints', { application_id: 'a', user_id: 'u', thread_id: 't', version: 9 })
    expect(row('SELECT application_id, user_id, thread_id, version, key FROM threadlog_checkpoints')).toEqual({
      application_id: 'a',
      user_id: 'u',
      thread_id: 't',
      version: 9,
      key: 'k',
    })
  })

  test('new records are found by offset without a walk through the table', () => {
    const plan = outside
      .prepare('EXPLAIN QUERY PLAN SELECT value, provider FROM threadlog_requests WHERE offset > 5 ORDER BY offset')
      .all()
    expect(plan.map((step) => step.detail)).toEqual(['SEARCH requests USING INTEGER PRIMARY KEY (rowid>?)'])
  })

  test('any value is taken and kept; one that is not JSON has empty columns and spoils nothing', async () => {
    const insert = outside.prepare('INSERT INTO threadlog_results(value) VALUES (?)')
    for (const value of ['{"provider":"p","result_id":"r"}', '{broken', '', 5n, null, new Uint8Array([255, 0])]) insert.run(value)
    outside.exec(`INSERT INTO threadlog_results(key, value) VALUES ('mine', '{"provider":"q"}')`)
    const stored = await scanAll(log, 'results')
    expect(stored.map((record) => Buffer.from(record.value).toString('latin1'))).toEqual([
      '{"provider":"p","result_id":"r"}',
      '{broken',
      '',
      '5',
      '',
      '\xff\x00',
      '{"provider":"q"}',
    ])
    expect(stored.map((record) => record.key)).toEqual(['', '', '', '', '', '', 'mine'])
    const providers = outside.prepare('SELECT provider FROM threadlog_results ORDER BY offset').all()
    expect(providers.map((result) => result.provider)).toEqual(['p', null, null, null, null, null, 'q'])
  })

  test.each(['requests', 'receipts', 'checkpoints'])('%s cannot be written from outside', (topic) => {
    expect(() => outside.exec(`INSERT INTO threadlog_${topic}(value) VALUES ('{}')`)).toThrow(/cannot modify/)
    expect(() => outside.exec(`DELETE FROM threadlog_${topic}`)).toThrow(/cannot modify/)
  })

  test('a Python process reads requests, answers them, and reads its receipts', async () => {
    await publish('requests', REQUEST)
    await publish('receipts', { final: true, verdict: 'accepted', result_id: 'r-1' })
    const script = `
import json, sqlite3, sys
log = sqlite3.connect(sys.argv[1], timeout=5)
for offset, external_id, arguments in log.execute("SELECT offset, external_id, arguments FROM threadlog_requests WHERE offset > 0"):
    answer = {"provider": "payouts", "external_id": external_id, "result_id": "r-1", "result": {"paid": json.loads(arguments)["cents"]}}
    with log:
        log.execute("INSERT INTO threadlog_results(value) VALUES (?)", (json.dumps(answer),))
print(log.execute("SELECT verdict FROM threadlog_receipts WHERE result_id = 'r-1'").fetchone()[0])
`
    expect(execFileSync('python3', ['-c', script, file]).toString().trim()).toBe('accepted')
    const [result] = await scanAll(log, 'results')
    expect(JSON.parse(Buffer.from(result!.value).toString())).toMatchObject({ external_id: 'c-1', result: { paid: 4_200 } })
  })
})
