import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { expectedOf } from '../../fuzz/kit/expected.ts'
import { openShop } from '../../fuzz/kit/shop.ts'
import { countingIds, isThreadlogError, MAX_TIMER_MS, parseJson, systemClock } from '../../src/base/index.ts'
import { parseResult } from '../../src/continuations/index.ts'
import { eventCodec, fileSchemas, packagedSchemas } from '../../src/events/index.ts'
import { defineAgent, defineTool, externalTool, HarnessState, openThreadlog } from '../../src/index.ts'
import { describeFailure, scriptedModel, toModelMessages } from '../../src/models/index.ts'
import { temporaryFolder } from '../log/support/sqlite-place.ts'
import { ask, finish, rawModel } from '../models/raw-model.ts'
import { agentOf, calls, says } from '../support/agents.ts'
import { goldenMeta, sample } from '../support/golden-events.ts'

// What the fuzzers found, by border: see docs/fuzzing.md.

describe('results: a name that stands twice', () => {
  // JSON.parse keeps the last member of a name, SQLite's json_extract the first: the view showed another address than was judged.
  const twice = '{"provider":"payouts","external_id":"a","external_id":"b","result":1}'

  test.each([
    twice,
    '{"provider":"p","\\u0070rovider":"q","external_id":"a","result":1}',
    '{"provider":"p","external_id":"a","result":{"x":[{"y":1,"y":1}]}}',
  ])('is unreadable: %s', (text) => {
    expect(expectedOf(Buffer.from(text)).verdict).toBe('unreadable')
    expect(parseResult(text)).toMatchObject({ refusal: { verdict: 'unreadable', code: 'json_invalid' } })
  })

  test('is refused in states, too, and keys that only look alike are not', () => {
    expect(() => HarnessState.parse('{"schema_version":"1","thread_id":"thr_a","thread_id":"thr_b"}')).toThrow(
      expect.objectContaining({ code: 'state_invalid' }),
    )
    expect(parseJson('{"a":{"a":":"},"\\n":"\\"a\\":1","__proto__":{"__proto__":1},"A":[{"a":1},{"a":1}]}')).toBeTruthy()
  })
})

describe('http', () => {
  async function served() {
    const { threads, waits } = await openShop()
    const engine = await threads.serve({ http: { token: 't' }, sweepMs: 60_000 })
    const post = async (body: string, headers: Record<string, string>) => {
      const init = { method: 'POST', body, headers: { authorization: 'Bearer t', ...headers } }
      return (await (await fetch(`${engine.http?.url}/results`, init)).json()) as {
        verdict: string
        source: { command_id: string }
      }
    }
    const record = (n: number) => ({ provider: 'errands', continuation_id: waits[n]?.id, result: n })
    return { threads, engine, post, record }
  }

  // Media types do not depend on case; the event was taken for the record itself.
  test('a media type in other letters is the same media type', async () => {
    const { threads, post, record } = await served()
    await using _ = threads
    const event = JSON.stringify({ specversion: '1.0', type: 'x', source: '/bank', id: 'e1', data: record(1) })
    const type = { 'content-type': 'Application/CloudEvents+JSON ; charset=utf-8' }
    expect(await post(event, type)).toMatchObject({ verdict: 'accepted', source: { command_id: '/bank#e1' } })
  })

  // Buffer skips what is no base64, String() makes one text of all objects, an empty name is everybody's.
  test('what is no CloudEvent names nothing and is not mended', async () => {
    const { threads, post, record } = await served()
    await using _ = threads
    const type = { 'content-type': 'application/cloudevents+json' }
    const base64 = Buffer.from(JSON.stringify(record(1))).toString('base64')
    for (const event of [
      { id: 'e', source: '/a', data_base64: `%${base64}` },
      { id: 'e', source: '/a', data_base64: base64, data: record(4) },
      { id: 'e', source: {}, data: record(1) },
      { id: '', source: '/a', data: record(1) },
    ])
      expect(await post(JSON.stringify(event), type)).toMatchObject({ verdict: 'invalid' })
    const [one, two] = [await post('{', { 'idempotency-key': '' }), await post('{', { 'idempotency-key': '' })]
    expect(one.source.command_id).not.toBe(two.source.command_id)
  })

  // A connection in the middle of a request is not idle: the server waited for it, five minutes long.
  test('a client that never ends its request does not hold up close', async () => {
    const { threads, engine } = await served()
    const socket = connect(Number(new URL(engine.http?.url ?? '').port), '127.0.0.1').on('error', () => {})
    const cut = new Promise((resolve) => socket.once('close', resolve))
    const begun =
      'POST /results HTTP/1.1\r\nhost: x\r\nauthorization: Bearer t\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n{'
    const heard = new Promise((resolve) => socket.once('data', resolve))
    socket.write(begun)
    expect(String(await heard)).toContain('100 Continue')
    await threads.close()
    await cut
  })
})

describe('state', () => {
  // A result may be 256 deep and stands some levels deep in the state: the thread could not be exported any more.
  test('a thread with the deepest result that is accepted can be exported', async () => {
    const far = externalTool({ name: 'far', description: 'x', provider: 'outside', input: z.object({}) })
    const agent = agentOf(
      (prompt) => (prompt.some(({ role }) => role === 'tool') ? says('done') : calls(['c', 'far', {}])),
      [far],
    )
    await using threads = await openThreadlog({ agents: [agent] })
    const { waits } = await threads.run(agent, { thread: 'thread_a', input: 'go' })
    let deep: unknown = 1
    for (let i = 0; i < 255; i++) deep = [deep]
    const result = JSON.stringify({ provider: 'outside', continuation_id: waits[0]?.id, result: deep })
    expect(await threads.submit(result)).toMatchObject({ verdict: 'accepted' })
    await threads.run(agent, { thread: 'thread_a' })
    const text = (await threads.thread('thread_a').state()).toText()
    expect(HarnessState.parse(text).toText()).toBe(text)
  })

  // Content without a part kind of its own was sent back with `new URL`, which throws: no request of that thread could be made again.
  test('custom content with a URL that is none still makes a prompt', () => {
    const part = {
      part_kind: 'text',
      content: '',
      provider_details: { 'threadlog.custom': { type: 'custom', kind: 'a.b', url: '::' } },
    }
    const state = HarnessState.parse({
      schema_version: '1',
      thread_id: 'thr_a',
      message_history: [{ kind: 'response', parts: [part] }],
    })
    expect(toModelMessages(state.messageHistory)).toMatchObject([{ role: 'assistant', content: [{ kind: 'a.b' }] }])
  })
})

describe('model', () => {
  const broken = (): never => {
    throw new Error('private')
  }

  // Whoever describes an error reads its properties, and each may be a getter that throws: the run ended with the provider's own error.
  test.each<[string, unknown]>([
    ['a proxy', new Proxy({}, { get: broken, has: broken, getPrototypeOf: broken })],
    ['a name that throws', Object.defineProperty(new Error('private'), 'name', { get: broken })],
    ['headers that throw', { statusCode: 429, headers: { get: broken } }],
    ['a cause that throws', { name: 'X', cause: new Proxy({}, { get: broken }) }],
    ['a symbol for a code', { code: Symbol('private'), type: Symbol('private') }],
  ])('a failure that cannot be looked at is a failure: %s', async (_, error) => {
    expect(isThreadlogError(error)).toBe(false)
    expect(JSON.stringify(describeFailure(error, 0))).not.toContain('private')
    const model = rawModel([], { doStream: () => Promise.reject(error) })
    expect(await ask(model)).toMatchObject({ kind: 'failed', code: 'model_request_failed' })
    await using threads = await openThreadlog()
    const agent = defineAgent({ name: 'a', revision: '1', model, tools: [] })
    expect(await threads.run(agent, { thread: 'thread_a', input: 'go' })).toMatchObject({ status: 'failed' })
  })

  test('a tool that throws what cannot be looked at has thrown', async () => {
    const errors = [
      new Proxy({}, { get: broken, getPrototypeOf: broken }),
      Object.assign(new Error('private'), { name: Symbol('private') }),
    ]
    const failing = defineTool({
      name: 'failing',
      description: 'x',
      input: z.object({ n: z.int() }),
      execute: ({ n }) => {
        throw errors[n]
      },
    })
    const answered = (prompt: readonly { role: string }[]) => prompt.some(({ role }) => role === 'tool')
    const agent = agentOf(
      (prompt) => (answered(prompt) ? says('done') : calls(['a', 'failing', { n: 0 }], ['b', 'failing', { n: 1 }])),
      [failing],
    )
    await using threads = await openThreadlog()
    const result = await threads.run(agent, { thread: 'thread_a', input: 'go', toolErrors: 'return' })
    expect(result).toMatchObject({ status: 'completed', output: 'done' })
  })

  // They went into the response as they were, and no reader takes such a response.
  test('ids and model names that are no text are not recorded', async () => {
    const meta = { type: 'response-metadata', id: { no: 'text' }, modelId: false }
    expect(await ask(rawModel([meta, finish()]))).toMatchObject({
      kind: 'response',
      message: { model_name: 'raw-1', provider_response_id: null },
    })
  })

  // Of two settled promises Promise.race takes the first, and the read of a part that is there came first: an abort was never seen. Nor
  // did any timer run, for nothing between two such parts waits for the event loop.
  test('a stream whose parts are always there can be aborted, and lets others run', async () => {
    const stop = new AbortController()
    let ticks = 0
    const ticking = setInterval(() => ++ticks === 3 && stop.abort(), 1)
    const stream = new ReadableStream({ pull: (controller) => controller.enqueue({ type: 'ping' }) }, { highWaterMark: 0 })
    const model = rawModel([], { doStream: async () => ({ stream: stream as never }) })
    expect((await ask(model, { signal: stop.signal })).kind).toBe('cancelled')
    clearInterval(ticking)
  })

  test('a stream that says more and more comes to an end', async () => {
    const delta = { type: 'text-delta', id: 'a', delta: 'x'.repeat(100_000) }
    let said = 0
    const next = () => (said++ === 0 ? { type: 'text-start', id: 'a' } : delta)
    const stream = new ReadableStream({ pull: (controller) => controller.enqueue(next()) }, { highWaterMark: 0 })
    const outcome = await ask(rawModel([], { doStream: async () => ({ stream: stream as never }) }))
    expect(outcome).toMatchObject({ kind: 'failed', details: { error_type: 'response_too_large' } })
    expect(said).toBeLessThan(1_000)
  })
})

describe('schemas', () => {
  /** The codec over a copy of the schemas in which one file was changed. */
  function changed(file: string, change: (json: never) => unknown) {
    const folder = temporaryFolder()
    cpSync(packagedSchemas, folder.path, { recursive: true })
    const place = join(folder.path, file)
    writeFileSync(place, JSON.stringify(change(JSON.parse(readFileSync(place, 'utf8')) as never)))
    try {
      return eventCodec(fileSchemas(pathToFileURL(`${folder.path}/`))).encodeCommit(goldenMeta, [sample('run.started/1')])
    } finally {
      folder.remove()
    }
  }

  // A schema that is one, and another: what was written with it, nobody else could read.
  test.each<[string, string, (json: never) => unknown]>([
    [
      'fields in another order',
      'run.started-1.avsc',
      (json: { fields: unknown[] }) => ({ ...json, fields: [...json.fields].reverse() }),
    ],
    ['no schema', 'run.started-1.avsc', () => null],
    ['the envelope gone', 'envelope.avsc', () => ({})],
    ['no list of types', 'common.avsc', () => 7],
    ['no pins', 'ids.json', () => ({ schemas: [null] })],
    [
      'an id no record can hold',
      'ids.json',
      ({ schemas }: { schemas: object[] }) => ({ schemas: schemas.map((pin, i) => ({ ...pin, id: i - 1 })) }),
    ],
    ['an id twice', 'ids.json', ({ schemas }: { schemas: object[] }) => ({ schemas: schemas.map((pin) => ({ ...pin, id: 1 })) })],
  ])('a changed file is refused: %s', (_, file, change) => {
    expect(() => changed(file, change)).toThrow(expect.objectContaining({ code: 'schema_invalid', disposition: 'fatal' }))
  })
})

describe('time', () => {
  // A timer of more than 2^31 − 1 ms goes off at once.
  test('a month is not now', async () => {
    const stop = new AbortController()
    let woken = false
    const sleeping = systemClock.sleep(MAX_TIMER_MS * 3, stop.signal).then(() => {
      woken = true
    })
    const slow = defineTool({
      name: 'slow',
      description: 'x',
      input: z.object({}),
      timeoutMs: 30 * 86_400_000,
      execute: () => new Promise((resolve) => setTimeout(() => resolve('done'), 20)),
    })
    const agent = defineAgent({
      name: 'a',
      revision: '1',
      tools: [slow],
      model: scriptedModel((prompt) =>
        prompt.some(({ role }) => role === 'tool') ? says(JSON.stringify(prompt.at(-1))) : calls(['c', 'slow', {}]),
      ),
    })
    await using threads = await openThreadlog({ ids: countingIds() })
    expect((await threads.run(agent, { thread: 'thread_a', input: 'go' })).output).toContain('done')
    expect(woken).toBe(false)
    stop.abort()
    await sleeping
  })
})
