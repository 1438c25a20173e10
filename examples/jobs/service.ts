// A job system of somebody else's: it knows nothing of threadlog.
//   node service.ts <file> <port, or 0> [milliseconds a job takes]
// POST /jobs with an Idempotency-Key begins a job, once for each key: {"kind", "input"} → {"id", "status"}. GET /jobs/<id> tells how it stands.
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'

const [file = '', port = '0', takes = '500'] = process.argv.slice(2)
const db = new DatabaseSync(file)
db.exec('CREATE TABLE IF NOT EXISTS jobs(id INTEGER PRIMARY KEY, key TEXT UNIQUE, kind TEXT, input TEXT, begun_at INTEGER)')
const begin = db.prepare('INSERT INTO jobs(key, kind, input, begun_at) VALUES (?, ?, ?, ?) ON CONFLICT(key) DO NOTHING')
const byKey = db.prepare('SELECT * FROM jobs WHERE key = ?')
const byId = db.prepare('SELECT * FROM jobs WHERE id = ?')
type Row = { id: number; kind: string; input: string; begun_at: number }

/** A job as the API tells it. */
function stands({ id, kind, input, begun_at }: Row): object {
  const age = Date.now() - begun_at
  if (age < Number(takes)) return { id: `job-${id}`, status: age < Number(takes) / 2 ? 'queued' : 'running' }
  if (kind !== 'render') return { id: `job-${id}`, status: 'failed', error: 'unknown_kind' }
  return { id: `job-${id}`, status: 'succeeded', result: { frames: JSON.parse(input).seconds * 24 } }
}

async function answer(request: IncomingMessage): Promise<[status: number, body: object]> {
  const [, jobs, id] = (request.url ?? '').split('/')
  if (jobs !== 'jobs') return [404, { error: 'no_such_path' }]
  if (request.method === 'POST') {
    let text = ''
    for await (const chunk of request) text += chunk
    const { kind, input } = JSON.parse(text) as { kind: string; input: unknown }
    const key = String(request.headers['idempotency-key'])
    begin.run(key, kind, JSON.stringify(input), Date.now())
    return [201, stands(byKey.get(key) as Row)]
  }
  const row = byId.get(Number(id?.replace('job-', ''))) as Row | undefined
  return row ? [200, stands(row)] : [404, { error: 'no_such_job' }]
}

const server = createServer((request, response) => {
  answer(request)
    .catch((): [number, object] => [400, { error: 'unreadable' }])
    .then(([status, body]) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)))
})
server.listen(Number(port), '127.0.0.1')
await once(server, 'listening')
process.stdout.write(`${JSON.stringify({ event: 'listening', port: (server.address() as AddressInfo).port })}\n`)
process.stdin.resume().on('end', () => process.exit())
