// The payout process where there is no Python: the same on node:sqlite.
//   node payouts.ts <log file>
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

const REQUESTS = `SELECT continuation_id, external_id, arguments FROM threadlog_requests WHERE provider = 'payouts' AND cancelled IS NULL`
const RECEIPTS = `SELECT result_id, verdict FROM threadlog_receipts WHERE provider = 'payouts' AND final ORDER BY offset`
const BANK_MS = 400

const db = new DatabaseSync(process.argv[2] ?? '', { timeout: 10_000 })
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
const rows = (sql: string) => db.prepare(sql).all() as Record<string, string>[]

function answer(external_id: string | undefined, result_id: string, reference: string): void {
  const value = JSON.stringify({ provider: 'payouts', external_id, result_id, result: { reference } })
  db.prepare('INSERT INTO threadlog_results(value) VALUES (?)').run(value)
}

process.stdin.resume().on('end', () => process.exit())
const answered = new Set<string | undefined>()
let told = 0
say({ event: 'ready', language: `Node ${process.versions.node.split('.')[0]}` })
for (;;) {
  for (const { continuation_id, external_id, arguments: args = '' } of rows(REQUESTS)) {
    if (answered.has(continuation_id)) continue
    answered.add(continuation_id)
    say({ event: 'request', arguments: JSON.parse(args) })
    await sleep(BANK_MS)
    answer(external_id, 'bank-1', 'PO-7301') // the answer
    answer(external_id, 'bank-1-again', 'PO-7301') // the same, under another id
    answer(external_id, 'bank-2', 'PO-9999') // another one
    say({ event: 'answered', results: 3 })
  }
  const receipts = rows(RECEIPTS)
  for (const { result_id, verdict } of receipts.slice(told)) say({ event: 'receipt', result_id, verdict })
  told = receipts.length
  await sleep(50)
}
