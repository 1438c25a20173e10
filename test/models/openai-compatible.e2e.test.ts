import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Clock } from '../../src/base/index.ts'
import { defineAgent, defineTool, openThreadlog, type RunResult, type Threadlog, type Tool } from '../../src/index.ts'
import type { TopicName } from '../../src/log/index.ts'
import { eventsOf, typesOf } from '../support/agents.ts'
import {
  answer,
  type Behaviour,
  callLine,
  endLines,
  line,
  more,
  type RawChatServer,
  say,
  startRawChatServer,
  stream,
  textLine,
} from '../support/raw-chat-server.ts'

// A real provider package over HTTP, through the whole facade. What a server does wrong is an outcome of that run: the process lives,
// other threads go on, and nothing the server wrote is kept unless it is an answer.

const SECRET = 'private words of the provider'
const NOW = Date.parse('2026-01-01T00:00:00Z')

const open: (Threadlog | RawChatServer)[] = []
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close()
})

async function rig(behave: Behaviour, tools: Tool[] = []) {
  const server = await startRawChatServer(behave)
  const slept: number[] = []
  const clock: Clock = {
    now: () => NOW,
    monotonic: () => 0,
    sleep: async (ms, signal) => {
      slept.push(ms)
      await turn(undefined, { signal }).catch(() => {})
    },
  }
  const agent = defineAgent({ name: 'clerk', revision: '1', model: server.model, system: 'You are a clerk.', tools })
  const threads = await openThreadlog({ clock, agents: [agent] })
  open.push(server, threads)
  return { server, threads, agent, slept, run: (input: string, thread = 'thread_1') => threads.run(agent, { thread, input }) }
}

/** Everything of a log that somebody may read: events, topics, state. */
async function everything(threads: Threadlog, thread = 'thread_1'): Promise<string> {
  const parts: string[] = []
  for (const { bytes } of await eventsOf(threads, thread)) parts.push(Buffer.from(bytes).toString('latin1'))
  for (const topic of ['requests', 'results', 'receipts', 'checkpoints'] satisfies TopicName[])
    for await (const batch of threads.backend.topics.scan(topic))
      for (const { value } of batch) parts.push(Buffer.from(value).toString())
  parts.push(JSON.stringify(await threads.thread(thread).state()))
  return parts.join('\n')
}

async function failures(threads: Threadlog, thread = 'thread_1') {
  const found = []
  for (const { event } of await eventsOf(threads, thread)) if (event?.type === 'model.failed/2') found.push(event.data)
  return found
}

/** The thread still takes a run, and gets its answer. */
async function goesOn(run: (input: string, thread?: string) => Promise<RunResult>, thread = 'thread_1'): Promise<void> {
  expect(await run('healthy', thread)).toMatchObject({ status: 'completed', output: 'I am well.' })
}
/** Answers the words above; else as told. */
const besides =
  (behave: Behaviour): Behaviour =>
  (call) =>
    call.asked === 'healthy' ? say(call.response, 'I am well.') : behave(call)

const historyOf = async (threads: Threadlog, thread = 'thread_1') =>
  ((await threads.thread(thread).state()).toJSON() as { message_history: { kind: string; state: string; parts: object[] }[] })
    .message_history

describe('answers', () => {
  test('text arrives whole, wherever the network cuts it', async () => {
    const words = 'Grüße aus 東京 😀'
    const { threads, agent } = await rig(async ({ response }) => {
      stream(response)
      const bytes = Buffer.from(textLine(words) + textLine('!') + endLines())
      for (let i = 0; i < bytes.length; i += 7) {
        response.write(bytes.subarray(i, i + 7))
        await turn()
      }
      response.end()
    })
    const running = threads.stream(agent, { thread: 'thread_1', input: 'hello' })
    const told: string[] = []
    for await (const event of running) if (event.type === 'text') told.push(event.text)
    expect(told.join('')).toBe(`${words}!`)
    expect(await running.result).toMatchObject({ status: 'completed', output: `${words}!` })
  })

  test('parallel calls whose arguments come interleaved are told apart, run beside each other, and answered by id', async () => {
    let together = 0
    let most = 0
    const stock = defineTool({
      ...{ name: 'stock', description: 'Pieces in stock', input: z.object({ item: z.string() }) },
      execute: async ({ item }) => {
        most = Math.max(most, ++together)
        await turn()
        together--
        return { item, pieces: item.length }
      },
    })
    const { server, threads, run } = await rig(
      ({ nth, response }) => {
        if (nth > 0) return say(response, 'Three and four.')
        stream(
          response,
          callLine(0, { id: 'a', name: 'stock', arguments: '' }),
          callLine(1, { id: 'b', name: 'stock', arguments: '' }),
        )
        more(response, callLine(1, { arguments: '{"item"' }), callLine(0, { arguments: '{"item":"c' }))
        more(response, callLine(0, { arguments: 'up"}' }), callLine(1, { arguments: ':"bowl"}' }), endLines('tool_calls'))
        response.end()
      },
      [stock],
    )
    expect(await run('how many')).toMatchObject({ status: 'completed', output: 'Three and four.' })
    expect(most).toBe(2)
    const returned = server.calls[1]!.messages.filter(({ role }) => role === 'tool')
    expect(returned.map(({ tool_call_id, content }) => [tool_call_id, JSON.parse(String(content))])).toEqual([
      ['a', { item: 'cup', pieces: 3 }],
      ['b', { item: 'bowl', pieces: 4 }],
    ])
    const types = await typesOf(threads, 'thread_1')
    expect(types.filter((type) => type === 'tool.dispatched')).toHaveLength(2)
  })
})

describe('a connection that breaks', () => {
  test('in the middle of text leaves what was said, marked as interrupted, and a run that may be tried again', async () => {
    const { threads, run, server } = await rig(
      besides(async ({ response }) => {
        stream(response, textLine('As far as I'))
        await turn()
        response.destroy()
      }),
    )
    expect(await run('tell me')).toMatchObject({ status: 'failed', failure: { code: 'agent_run_failed', retryable: true } })
    expect(server.count('tell me')).toBe(1)
    const history = await historyOf(threads)
    expect(history.at(-1)).toMatchObject({ kind: 'response', state: 'interrupted', parts: [{ content: 'As far as I' }] })
    await goesOn(run)
  })

  test('in the middle of a call’s arguments is asked again: half a call is none', async () => {
    const ran: string[] = []
    const book = defineTool({
      ...{ name: 'book', description: 'Books', input: z.object({ what: z.string() }) },
      execute: ({ what }) => void ran.push(what),
    })
    const { run, server, slept } = await rig(
      ({ nth, response }) => {
        if (nth === 2) return say(response, 'booked')
        stream(response, callLine(0, { id: 'a', name: 'book', arguments: '{"what":"the ' }))
        if (nth === 0) return void setImmediate(() => response.destroy())
        more(response, callLine(0, { arguments: 'trip"}' }), endLines('tool_calls'))
        response.end()
      },
      [book],
    )
    expect(await run('book it')).toMatchObject({ status: 'completed', output: 'booked' })
    expect(ran).toEqual(['the trip'])
    expect(server.count('book it')).toBe(3)
    expect(slept).toEqual([500])
  })

  test('before an answer, or never stands, is tried three times in all', async () => {
    const { run, server, threads, slept } = await rig(besides(({ response }) => void response.destroy()))
    expect(await run('hello')).toMatchObject({ status: 'failed', failure: { code: 'agent_run_failed', retryable: true } })
    expect(server.count('hello')).toBe(3)
    expect(slept).toEqual([500, 1000])
    expect((await failures(threads)).map(({ status, retryable }) => [status, retryable])).toEqual(Array(3).fill([null, true]))
    await goesOn(run)
    await server.close()
    expect(await run('is anybody there')).toMatchObject({ status: 'failed', failure: { retryable: true } })
  })
})

describe('429', () => {
  test.each<[string, Record<string, string>, number, number | null]>([
    ['seconds', { 'retry-after': '2' }, 2000, 2000],
    ['a fraction of a second', { 'retry-after': '0.0015' }, 2, 2],
    ['none to wait', { 'retry-after': '0' }, 0, 0],
    ['a date', { 'retry-after': 'Thu, 01 Jan 2026 00:01:00 GMT' }, 60_000, 60_000],
    ['a date that has passed', { 'retry-after': 'Thu, 01 Jan 2015 00:00:00 GMT' }, 0, 0],
    ['milliseconds', { 'retry-after-ms': '1234.5', 'retry-after': '9' }, 1235, 1235],
    ['words', { 'retry-after': 'soon' }, 500, null],
    ['less than nothing', { 'retry-after': '-5' }, 0, 0],
    ['nothing at all', {}, 500, null],
  ])('that asks for %s is waited for, and what it asked for is recorded', async (_, headers, waited, recorded) => {
    const { run, server, slept, threads } = await rig(({ nth, response }) =>
      nth === 0 ? answer(response, 429, headers, JSON.stringify({ error: { message: SECRET } })) : say(response, 'now'),
    )
    expect(await run('hello')).toMatchObject({ status: 'completed', output: 'now' })
    expect(server.count('hello')).toBe(2)
    expect(slept).toEqual([waited])
    expect(await failures(threads)).toEqual([
      {
        ...{ step: 1, code: 'model_request_failed', retryable: true },
        ...{ error_type: 'AI_APICallError', status: 429, retry_after_ms: recorded },
      },
    ])
  })

  test.each([
    ['more than a minute', '61', 61_000],
    ['a month: more than a timer holds', '2592000', 86_400_000],
    ['more than an event holds', '1e300', 86_400_000],
  ])('that asks for %s ends the run as retryable instead of holding it', async (_, after, recorded) => {
    const { run, server, slept, threads } = await rig(({ response }) => answer(response, 429, { 'retry-after': after }, '{}'))
    expect(await run('hello')).toMatchObject({ status: 'failed', failure: { code: 'agent_run_failed', retryable: true } })
    expect(server.count('hello')).toBe(1)
    expect(slept).toEqual([])
    expect((await failures(threads)).map(({ retry_after_ms }) => retry_after_ms)).toEqual([recorded])
  })

  test('whose wait is cut short by a cancel ends at once, and is not asked again', async () => {
    const { server, agent } = await rig(({ response }) => answer(response, 429, { 'retry-after': '60' }, '{}'))
    const waiting = Promise.withResolvers<void>()
    const clock: Clock = {
      now: () => NOW,
      monotonic: () => 0,
      sleep: async (_, signal) => {
        waiting.resolve()
        if (!signal?.aborted) await new Promise((resolve) => signal?.addEventListener('abort', resolve, { once: true }))
      },
    }
    const threads = await openThreadlog({ clock })
    open.push(threads)
    const running = threads.run(agent, { thread: 'thread_1', input: 'hello' })
    await waiting.promise
    await threads.thread('thread_1').cancel({ reason: 'enough' })
    expect(await running).toMatchObject({ status: 'cancelled' })
    expect(server.count('hello')).toBe(1)
  })
})

test('a 500 with a private body: nobody is shown a word of it', async () => {
  const body = JSON.stringify({ error: { message: SECRET, type: SECRET, code: SECRET, param: { prompt: SECRET } } })
  const { run, server, threads, agent } = await rig(
    besides(({ response }) => answer(response, 500, { 'x-request-id': SECRET, 'set-cookie': SECRET }, body)),
  )
  const running = threads.stream(agent, { thread: 'thread_1', input: 'hello' })
  const told: unknown[] = []
  for await (const event of running) told.push(event)
  const result = await running.result
  expect(result).toMatchObject({ status: 'failed', failure: { code: 'agent_run_failed', retryable: true } })
  expect(server.count('hello')).toBe(3)
  expect((await failures(threads)).map(({ status, error_type }) => [status, error_type])).toEqual(
    Array(3).fill([500, 'AI_APICallError']),
  )
  for (const shown of [JSON.stringify([result, told]), await everything(threads)]) expect(shown).not.toContain(SECRET)
  await goesOn(run)
})

describe('an endless stream', () => {
  const endless = () => {
    const hung = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const behave = besides(async ({ response }) => {
      response.on('close', () => hung.resolve())
      stream(response)
      for (let i = 0; !response.destroyed; i++) {
        response.write(textLine(`${i} `))
        if (i === 20) begun.resolve()
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
    })
    return { behave, hung: hung.promise, begun: begun.promise }
  }

  test.each(['thread', 'signal'])(
    'is cut when the %s is cancelled; the server is let go; others go on meanwhile',
    async (way) => {
      const { behave, hung, begun } = endless()
      const { run, threads, agent } = await rig(behave)
      const abort = new AbortController()
      const running = threads.run(agent, { thread: 'thread_1', input: 'count', signal: abort.signal })
      await begun
      await goesOn(run, 'thread_2')
      if (way === 'signal') abort.abort()
      else await threads.thread('thread_1').cancel({ reason: 'enough' })
      expect(await running).toMatchObject({ status: 'cancelled' })
      await hung
      expect((await historyOf(threads)).some(({ state, parts }) => state === 'interrupted' && parts.length > 0)).toBe(true)
      await goesOn(run)
    },
  )

  test('that never says a word is cut as well', async () => {
    const hung = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const { run, threads } = await rig(
      besides(({ response }) => {
        response.on('close', () => hung.resolve())
        asked.resolve()
      }),
    )
    const running = run('count')
    await asked.promise
    await threads.thread('thread_1').cancel()
    expect(await running).toMatchObject({ status: 'cancelled' })
    await hung.promise
    await goesOn(run)
  })

  test('is left alone by closing: the run is there to be recovered', async () => {
    const { behave, begun, hung } = endless()
    const { threads, run } = await rig(behave)
    const running = run('count')
    running.catch(() => {})
    await begun
    await threads.close()
    await expect(running).rejects.toMatchObject({ code: 'closed', disposition: 'retry' })
    await hung
  })
})

const html = (response: Parameters<typeof answer>[0], status = 200) =>
  answer(response, status, { 'content-type': 'text/html' }, `<html><body>${SECRET}</body></html>`)

/** Streams these lines and ends, whether that makes sense or not. */
const streaming =
  (...lines: string[]): Behaviour =>
  ({ response }) => {
    stream(response, ...lines)
    response.end()
  }

describe('what is no answer', () => {
  // The provider package itself says of a stream without an end that its data is invalid, which is not tried again.
  const [request, data] = ['AI_APICallError', 'AI_InvalidResponseDataError']
  const cases: [name: string, behave: Behaviour, tries: number, errorType: string, status: number | null][] = [
    ['lines that are no JSON', streaming(line(`{"${SECRET}`)), 1, 'AI_JSONParseError', null],
    ['JSON that is no chunk', streaming(line({ choices: SECRET })), 1, 'AI_TypeValidationError', null],
    ['lines of another protocol', streaming(`+OK ${SECRET}\r\n\r\n`), 1, data, null],
    ['an error in the stream', streaming(line({ error: { message: SECRET } })), 1, 'Error', null],
    ['a page instead of a stream', ({ response }) => html(response), 1, data, null],
    ['a page that says it is a failure', ({ response }) => html(response, 502), 3, request, 502],
    ['a page that says it is not found', ({ response }) => html(response, 404), 1, request, 404],
    [
      'JSON instead of a stream',
      ({ response }) => answer(response, 200, {}, `{"choices":[{"message":"${SECRET}"}]}`),
      1,
      data,
      null,
    ],
    ['an empty stream', streaming(), 1, data, null],
    ['an end without a beginning', streaming(line('[DONE]')), 1, data, null],
    ['an empty body', ({ response }) => answer(response, 200, {}, ''), 1, data, null],
    ['a status without a body', ({ response }) => void response.writeHead(204).end(), 1, request, 204],
    [
      'a redirection to nowhere',
      ({ response }) => answer(response, 302, { location: 'http://127.0.0.1:1/' }, SECRET),
      3,
      request,
      null,
    ],
    ['a status of its own', ({ response }) => answer(response, 499, {}, SECRET), 1, request, 499],
  ]

  test.each(cases)('%s', async (_, behave, tries, errorType, status) => {
    const { run, server, threads } = await rig(besides(behave))
    const result = await run('hello')
    expect(result).toMatchObject({ status: 'failed', output: null, failure: { code: 'agent_run_failed', retryable: tries > 1 } })
    const failed = await failures(threads)
    expect(failed.map((failure) => [failure.code, failure.error_type, failure.status])).toEqual(
      Array(tries).fill(['model_request_failed', errorType, status]),
    )
    expect(server.count('hello')).toBe(tries)
    for (const shown of [JSON.stringify(result), await everything(threads)]) expect(shown).not.toContain(SECRET)
    await goesOn(run)
  })

  test('all of them at once, and threads beside them that do not notice', async () => {
    const { run } = await rig(
      besides((call) => {
        const found = cases.find(([name]) => name === call.asked)
        return found?.[1](call)
      }),
    )
    const broken = cases.map(([name], i) => run(name, `broken_${i}`))
    const well = Array.from({ length: 10 }, (_, i) => goesOn(run, `well_${i}`))
    expect((await Promise.all(broken)).map(({ status }) => status)).toEqual(cases.map(() => 'failed'))
    await Promise.all(well)
  })
})
