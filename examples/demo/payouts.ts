// The payout process where there is no Python: the same on node:sqlite.
//   node payouts.ts <log file>
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'

// A request that was taken back has a second row, with cancelled = 1.
const REQUESTS = `SELECT application_id, external_id, arguments FROM threadlog_requests AS request
  WHERE provider = 'payouts'
    AND NOT EXISTS (SELECT 1 FROM threadlog_requests WHERE external_id = request.external_id AND cancelled = 1)`
const RECEIPTS = `SELECT result_id, verdict FROM threadlog_receipts WHERE provider = 'payouts' AND final ORDER BY offset`
const BANK_MS = 400

const db = new DatabaseSync(process.argv[2] ?? '', { timeout: 10_000 })
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
const rows = (sql: string) => db.prepare(sql).all() as Record<string, string>[]

function answer(request: object, result_id: string, reference: string): void {
  const value = JSON.stringify({ provider: 'payouts', ...request, result_id, result: { reference } })
  db.prepare('INSERT INTO threadlog_results(value) VALUES (?)').run(value)
}

process.stdin.resume().on('end', () => process.exit())
const answered = new Set<string | undefined>()
let told = 0
say({ event: 'ready', language: `Node ${process.versions.node.split('.')[0]}` })
for (;;) {
  for (const { arguments: args = '', ...request } of rows(REQUESTS)) {
    if (answered.has(request['external_id'])) continue
    answered.add(request['external_id'])
    say({ event: 'request', arguments: JSON.parse(args) })
    await sleep(BANK_MS)
    answer(request, 'bank-1', 'PO-7301') // the answer
    answer(request, 'bank-1-again', 'PO-7301') // the same, under another id
    answer(request, 'bank-2', 'PO-9999') // another one
    say({ event: 'answered', results: 3 })
  }
  const receipts = rows(RECEIPTS)
  for (const { result_id, verdict } of receipts.slice(told)) say({ event: 'receipt', result_id, verdict })
  told = receipts.length
  await sleep(50)
}
