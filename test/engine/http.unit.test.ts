import { expect, test } from 'vitest'
import { openThreadlog, type Receipt } from '../../src/index.ts'
import { agentOf, calls, says, toolbox } from '../support/agents.ts'

/** A served log with one suspended run, and a way to post to it. */
async function served(made = 1) {
  const { tools } = toolbox()
  const script = (prompt: readonly { role: string }[]) =>
    prompt.some((m) => m.role === 'tool')
      ? says('done')
      : calls(...Array.from({ length: made }, (_, i): [string, string, Record<string, unknown>] => [`c${i}`, 'far', { n: i }]))
  const agent = agentOf(script, [tools.far, tools.guarded])
  const threads = await openThreadlog({ agents: [agent] })
  const engine = await threads.serve({ http: { token: 'secret' } })
  const run = await threads.start({ agent: 'agent', thread: 'thread_a', input: 'go' })
  const waits = []
  for await (const wait of threads.waits({ follow: true })) if (waits.push(wait) === made) break
  const post = async (body: string | Uint8Array, headers: Record<string, string> = {}) => {
    const init = {
      method: 'POST',
      body: body as string,
      headers: { authorization: 'Bearer secret', 'content-type': 'application/json', ...headers },
    }
    const response = await fetch(`${engine.http?.url}/results`, init)
    return { status: response.status, body: (await response.json()) as Receipt & { error?: { code: string } } }
  }
  return { threads, run, waits, post, url: engine.http?.url ?? '' }
}

test('a result over HTTP is answered by its receipt, and the run goes on', async () => {
  const { threads, run, waits, post } = await served()
  await using _ = threads
  const record = (ok: unknown) => JSON.stringify({ provider: 'outside', continuation_id: waits[0]?.id, result: { ok } })
  expect(await post(record('x'))).toMatchObject({ status: 422, body: { verdict: 'invalid' } })
  expect(await post(record(true), { 'idempotency-key': 'k1' })).toMatchObject({
    status: 200,
    body: { verdict: 'accepted', final: true },
  })
  expect(await post(record(true), { 'idempotency-key': 'k1' })).toMatchObject({ status: 200, body: { verdict: 'accepted' } })
  expect(await post(record(true))).toMatchObject({ status: 200, body: { verdict: 'duplicate' } })
  expect(await post(record(false))).toMatchObject({ status: 409, body: { verdict: 'conflict' } })
  expect((await run.result()).output).toBe('done')
})

test('CloudEvents, structured and binary, name their submission', async () => {
  const { threads, waits, post } = await served(2)
  await using _ = threads
  const data = (i: number) => ({ provider: 'outside', external_id: waits[i]?.externalId, result: { ok: true } })
  const event = { specversion: '1.0', type: 'payout.done', source: '/bank', id: 'e1', data: data(0) }
  const structured = () => post(JSON.stringify(event), { 'content-type': 'application/cloudevents+json' })
  const first = await structured()
  expect(first).toMatchObject({ status: 200, body: { verdict: 'accepted', source: { api: 'http', command_id: '/bank#e1' } } })
  expect(await structured()).toEqual(first)
  const binary = { 'ce-specversion': '1.0', 'ce-id': 'e2', 'ce-source': '/bank', 'ce-type': 'payout.done' }
  expect(await post(JSON.stringify(data(1)), binary)).toMatchObject({ status: 200, body: { verdict: 'accepted' } })
})

test('bad requests are refused with a verdict or a code, and the server lives on', async () => {
  const { threads, waits, post, url } = await served()
  await using _ = threads
  const human = JSON.stringify({ provider: 'human', continuation_id: waits[0]?.id, result: { approved: true } })
  expect(await post('{nonsense')).toMatchObject({ status: 400, body: { verdict: 'unreadable' } })
  expect(await post('{"provider":"outside","result":1}')).toMatchObject({ status: 422, body: { verdict: 'invalid' } })
  expect(await post(human)).toMatchObject({ status: 403, body: { verdict: 'forbidden' } })
  expect(await post('{"provider":"outside","continuation_id":"none","result":1}')).toMatchObject({ status: 404 })
  expect(await post('x'.repeat(3_000_000))).toMatchObject({ status: 413, body: { verdict: 'too-large' } })
  expect((await post('{}', { authorization: 'Bearer wrong' })).body.error?.code).toBe('unauthorized')
  expect((await fetch(`${url}/other`, { headers: { authorization: 'Bearer secret' } })).status).toBe(404)
  const good = JSON.stringify({ provider: 'outside', continuation_id: waits[0]?.id, result: { ok: true } })
  expect((await post(good)).body.verdict).toBe('accepted')
})

test('a port that is taken is refused with a code', async () => {
  await using threads = await openThreadlog({})
  const engine = await threads.serve({ http: {} })
  const port = Number(new URL(engine.http?.url ?? '').port)
  await expect(threads.serve({ http: { port } })).rejects.toMatchObject({ code: 'http_unavailable' })
})
