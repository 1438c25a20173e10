import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { JobsClient } from '../../examples/jobs/client.ts'
import { monitorJobs } from '../../examples/jobs/monitor.ts'
import { ContinuationFailure, PrincipalGrantSnapshot, ResumeArtifact } from '../../src/continuations/index.ts'
import { defineAgent, externalTool, openThreadlog, type Threadlog } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { calls, says } from '../support/agents.ts'
import { codeOf } from '../support/refusals.ts'

// Cases of the continuation specification that no recorded vector and no conformance case covers, by their numbers.

const cleanup: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanup.splice(0).reverse()) await step()
})

const own = { userId: 'ann', sessionId: 'session', runId: 'run-1' }
const scope = { applicationId: 'shop', ...own }

/** A host's run, and how many commits its thread's log has seen. */
async function host() {
  const threads = await openThreadlog({ application: 'shop' })
  cleanup.push(() => threads.close())
  const store = threads.continuationStore()
  await store.beginRun({ scope, framework: 'langgraph' })
  const commits: string[][] = []
  const { events } = threads.backend
  const append = events.append.bind(events)
  events.append = (commit) => {
    commits.push(commit.records.map(({ event }) => event.type))
    return append(commit)
  }
  return { threads, store, provider: threads.continuations('jobs'), commits }
}

const wait = { ...own, capability: 'ship', schemaId: 'ship/v1' }

test('13: a permission name that cannot be meant is refused where it is written', () => {
  for (const name of ['', ' ', '1a', 'a b', 'a'.repeat(129), 7])
    expect(codeOf(() => new PrincipalGrantSnapshot({ permissions: [name as string] }))).toBe('invalid_argument')
  expect(new PrincipalGrantSnapshot({ permissions: ['b', 'a.x:y-z_1', 'b'] }).permissions).toEqual(['a.x:y-z_1', 'b'])
})

test('50: a suspension and the permissions of its principal are one commit', async () => {
  const { provider, commits } = await host()
  const principalGrants = new PrincipalGrantSnapshot({ permissions: ['ship.order'] })
  const record = await provider.suspend({ ...wait, externalId: 'job-1', principalGrants })
  expect(commits.filter((types) => types.includes('continuation.suspended/1'))).toHaveLength(1)
  expect((await provider.get({ ...own, continuationId: record.continuationId }))?.principalGrants?.permissions).toEqual([
    'ship.order',
  ])
})

test('52: a cancel is one commit of wait and run, for the whole scope, and from pending alone', async () => {
  const { provider, commits } = await host()
  const record = await provider.suspend({ ...wait, externalId: 'job-1' })
  commits.length = 0
  const failure = new ContinuationFailure({ code: 'user_cancelled' })
  const foreign = { ...record, userId: 'bob', scope: { ...record.scope, userId: 'bob' } } as typeof record
  await expect(provider.cancel({ record: foreign, failure })).rejects.toMatchObject({ code: 'continuation_conflict' })
  await provider.cancel({ record, failure })
  expect(commits).toEqual([['continuation.cancelled/1', 'invocation.transitioned/1']])
  await expect(provider.cancel({ record, failure })).rejects.toMatchObject({ code: 'continuation_conflict' })
  expect(commits).toHaveLength(1)
})

test('76: any process makes the result of an ended run again, and what comes later does not change it', async () => {
  const agent = defineAgent({ name: 'agent', revision: '1', model: scriptedModel([says('one'), says('two')]) })
  const first = await openThreadlog({ agents: [agent] })
  cleanup.push(() => first.close())
  const engine = await first.serve()
  const run = await first.start({ agent: 'agent', thread: 't_1', input: 'a', commandId: 'asked' })
  const before = await run.result()
  await (await first.start({ agent: 'agent', thread: 't_1', input: 'b' })).result()
  await engine.close()
  const other = await openThreadlog({ log: first.backend })
  cleanup.push(() => other.close())
  const again = await (await other.start({ agent: 'agent', thread: 't_1', input: 'a', commandId: 'asked' })).result()
  expect([again.output, again.runId, again.version]).toEqual(['one', before.runId, before.version])
  expect(again.allMessages()).toEqual(before.allMessages())
})

test('84: an outcome is handed over with the artifact of its own call, and one of another call is none', async () => {
  const { provider } = await host()
  const artifact = (toolCallId: string) =>
    new ResumeArtifact({ framework: 'langgraph', nativeInvocationId: 'shop/ann/session', toolCallId, toolName: 'ship' })
  const record = await provider.suspend({ ...wait, externalId: 'job-1', resume: artifact('call-1') })
  expect(record.resume?.equals(artifact('call-1'))).toBe(true)
  expect(record.resume?.equals(artifact('call-2'))).toBe(false)
})

/** A real service of jobs that answers as told, a monitor on it, and a run that waits for its job. */
async function monitored(answer: RequestListener) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  cleanup.push(() => server.close())
  const jobs = new JobsClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const render = externalTool({
    ...{ name: 'render', description: 'r', provider: 'jobs', input: z.object({}), result: z.object({ frames: z.int() }) },
    submit: () => ({ externalId: 'job-1' }),
  })
  const model = scriptedModel((prompt) =>
    prompt.some(({ role }) => role === 'tool') ? says('done') : calls(['c1', 'render', {}]),
  )
  const agent = defineAgent({ name: 'agent', revision: '1', model, tools: [render] })
  const threads = await openThreadlog({ agents: [agent] })
  cleanup.push(() => threads.close())
  await threads.run(agent, { thread: 't_1', input: 'go' })
  const stop = new AbortController()
  cleanup.push(() => stop.abort())
  const said: string[] = []
  const watch = () =>
    monitorJobs({
      provider: threads.continuations('jobs'),
      jobs,
      signal: stop.signal,
      everyMs: 20,
      say: ({ event }) => said.push(event),
    })
  const ended = async (t: Threadlog) => (await t.continuations('jobs').lookup({ externalId: 'job-1' }))?.record
  const resolved = async () => {
    while ((await ended(threads))?.status === 'pending') await delay(10)
    return ended(threads)
  }
  return { threads, agent, stop, watch, said, resolved, ended }
}

const job = (more: object) => JSON.stringify({ id: 'job-1', ...more })

test('90: a service that fails for the time being is asked again, and fails no wait', async () => {
  let asked = 0
  const all = await monitored((_, response) => {
    asked++
    if (asked === 1) response.writeHead(503).end()
    else response.end(job({ status: 'succeeded', result: { frames: 1 } }))
  })
  void all.watch()
  expect(await all.resolved()).toMatchObject({ status: 'completed', result: { frames: 1 } })
  expect(asked).toBeGreaterThan(1)
})

test('86: a job that was done before anybody watched it completes its wait all the same', async () => {
  const all = await monitored((_, response) => void response.end(job({ status: 'succeeded', result: { frames: 2 } })))
  await delay(50)
  void all.watch()
  expect(await all.resolved()).toMatchObject({ status: 'completed' })
})

test('91: a result that does not fit, or is too large, fails the wait, and nothing of it is kept', async () => {
  for (const result of [{ frames: 'no number' }, { frames: 1, text: 'x'.repeat(1_100_000) }]) {
    const all = await monitored((_, response) => void response.end(job({ status: 'succeeded', result })))
    void all.watch()
    const record = await all.resolved()
    expect(record).toMatchObject({ status: 'failed', result: null })
    expect(record?.failure?.code).toBe('result_refused')
  }
})

test('92: of two monitors one completes the wait, and the other ends its watch quietly', async () => {
  const all = await monitored((_, response) => void response.end(job({ status: 'succeeded', result: { frames: 3 } })))
  void all.watch()
  void all.watch()
  expect(await all.resolved()).toMatchObject({ status: 'completed' })
  while (all.said.filter((event) => event === 'over').length < all.said.filter((event) => event === 'watching').length)
    await delay(10)
  expect(all.said).not.toContain('not watched')
})

test('93: a monitor that stops cancels no job and no wait', async () => {
  const methods = new Set<string>()
  const all = await monitored((request, response) => {
    methods.add(request.method ?? '')
    response.end(job({ status: 'running' }))
  })
  const watching = all.watch()
  while (methods.size === 0) await delay(5)
  all.stop.abort()
  await watching
  expect([...methods]).toEqual(['GET'])
  expect(await all.ended(all.threads)).toMatchObject({ status: 'pending' })
})

test('98: what is submitted is a snapshot: changing it afterwards changes nothing', async () => {
  const { provider } = await host()
  const record = await provider.suspend({ ...wait, externalId: 'job-1' })
  await provider.arm(record)
  const result = { lines: [{ sku: 'lamp' }] }
  const completing = provider.complete({ ...own, externalId: 'job-1', schemaId: 'ship/v1', result, validate: (value) => value })
  result.lines[0]!.sku = 'changed'
  await completing
  result.lines.push({ sku: 'more' })
  const stored = await provider.get({ ...own, continuationId: record.continuationId })
  expect(stored?.result).toEqual({ lines: [{ sku: 'lamp' }] })
  expect(Object.isFrozen((stored?.result as typeof result | undefined)?.lines)).toBe(true)
})
