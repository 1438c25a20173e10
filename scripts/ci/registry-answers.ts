// Asks a schema registry for the id of a schema, twice: it must be the same.
//   node scripts/ci/registry-answers.ts URL
import assert from 'node:assert/strict'

const [url] = process.argv.slice(2)
const headers = { 'content-type': 'application/vnd.schemaregistry.v1+json' }
const schema = JSON.stringify({ type: 'record', name: 'Probe', namespace: 'threadlog', fields: [{ name: 'n', type: 'long' }] })

async function register(): Promise<number> {
  const answer = await fetch(`${url}/subjects/probe/versions`, { method: 'POST', headers, body: JSON.stringify({ schema }) })
  assert.equal(answer.status, 200)
  return ((await answer.json()) as { id: number }).id
}

const id = await register()
assert.equal(await register(), id)
const stored = (await (await fetch(`${url}/schemas/ids/${id}`)).json()) as { schema: string }
assert.deepEqual(JSON.parse(stored.schema), JSON.parse(schema))
console.log(`the registry answers: schema ${id}`)
