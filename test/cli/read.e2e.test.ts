import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { document, normalised, records, cli as run } from './support/cli.ts'
import { type Shop, shopLog } from './support/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await shopLog()
})
afterAll(() => shop.remove())

const cli = (...args: string[]) => run(args, { log: shop.log })
const json = async (...args: string[]) => document((await cli(...args, '-o', 'json')).out, shop.waits)
const keysOf = (value: unknown): string[] => Object.keys(value as object)

describe('threads', () => {
  test('is a table, newest first', async () => {
    const { code, out, err } = await cli('threads')
    expect(normalised(out).replace(/^[0-9a-f]{12}/gm, '<stream>')).toMatchInlineSnapshot(`
      "STREAM        STATE      VERSION  WAITS  UPDATED                   AGENT      THREAD
      <stream>  waiting         12      1  <time>  support@1  shop/u-17/order_bad
      <stream>  failed          10      0  <time>             shop/u-17/order_failed
      <stream>  completed        6      0  <time>             shop/u-17/order_done
      <stream>  waiting          8      1  <time>  support@1  shop/u-17/order_ask
      <stream>  waiting          8      1  <time>  support@1  shop/u-17/order_pay
      <stream>  waiting         12      1  <time>  support@1  shop/u-17/order_991
      "
    `)
    expect({ code, err }).toEqual({ code: 0, err: '' })
  })

  test('is a document and records with a schema', async () => {
    const found = (await json('threads', '--state', 'waiting', '--user', 'u-17', '--limit', '1')) as { threads: unknown[] }
    expect(found).toMatchInlineSnapshot(`
      {
        "schema": "threadlog.cli/1",
        "threads": [
          {
            "agent": "support",
            "application": "shop",
            "attempt": 1,
            "blocked_revision": null,
            "invocation_id": "<run>",
            "kind": "harness",
            "last_end": null,
            "open_waits": 1,
            "opened_at": "<time>",
            "owner": {
              "id": "<id>",
              "kind": "library",
            },
            "quarantined_at": null,
            "requested_agent": null,
            "revision": "1",
            "run_id": "<run>",
            "state": "waiting",
            "stream": "<hash>",
            "thread": "order_bad",
            "updated_at": "<time>",
            "user": "u-17",
            "version": 12,
          },
        ],
      }
    `)
    const lines = records((await cli('threads', '--state', 'failed', '--since', '1h', '-o', 'jsonl')).out)
    expect(lines.map((line) => [line['schema'], line['thread'], line['last_end']])).toEqual([
      ['threadlog.cli/1', 'order_failed', 'failed'],
    ])
    expect(keysOf(lines[0])).toEqual(['schema', ...keysOf(found.threads[0])])
  })

  test('of nobody is an empty table', async () => {
    expect((await cli('threads', '--app', 'nobody')).out).toBe('STREAM  STATE  VERSION  WAITS  UPDATED  AGENT  THREAD\n')
  })
})

describe('show', () => {
  test('tells each event and that the chain holds', async () => {
    const { code, out } = await cli('show', 'shop/u-17/order_done')
    expect(normalised(out).replace(/\([0-9a-f]{6}…\)/, '(<hash>)')).toMatchInlineSnapshot(`
      "VERSION  TIME                      WHAT                        OUTCOME    NOTE
            1  <time>  thread.opened               new        harness, shop/u-17/order_done
            2  <time>  run.requested <run>             agent support, Hello 5
            3  <time>  run.started <run>               agent support@1, attempt 1, library, input
            4  <time>  request.composed                       step 1, Hello 5
            5  <time>  model.responded             text       step 1, Done: 5.  | \\u{1b}[31mred\\u{202e}
            6  <time>  run.completed <run>  completed  Done: 5. \\u{1b}[31mred\\u{202e}
      6 events, head 6 (<hash>), chain intact
      "
    `)
    expect(code).toBe(0)
  })

  test('groups runs, requests, calls and waits', async () => {
    const { out } = await cli('show', 'shop/u-17/order_991', '--groups')
    const shape = out.split('\n').map((line) => line.replace(/^(\S+) +\S+Z +/, '$1  ').replace(/ {2,}\d\S*s */, '  '))
    expect(normalised(shape.join('\n')).replaceAll(shop.waits.refund.slice(0, 12), '<wait>').replace(/ {3,}/g, '  ')).toContain(
      '1-3,10  run <run> attempt 1  suspended  agent support@1',
    )
    expect(out).toMatch(/├ tool lookup c1 +success/)
    expect(out).toMatch(/└ wait \S{12} refund +waiting +\S+ +approval\n/)
  })

  test('has the same in JSON', async () => {
    expect(await json('show', 'shop/u-17/order_991', '--at', '4', '--types', 'run')).toMatchInlineSnapshot(`
      {
        "chain": {
          "intact": true,
        },
        "events": [
          {
            "actor": {
              "id": "<id>",
              "kind": "library",
              "source": "library",
            },
            "attempt": 1,
            "causation": null,
            "commit": {
              "base": 0,
              "id": "<id>",
              "index": 1,
              "size": 4,
            },
            "fields": {
              "agent": "support",
              "answers": null,
              "command_id": null,
              "input": "Refund order 991",
              "options": {
                "tool_errors": "throw",
                "tool_recovery": "declared",
              },
              "run_id": "<run>",
            },
            "hash": "<hash>",
            "position": {
              "offset": "2",
              "partition": 0,
            },
            "previous": "<hash>",
            "run_id": "<run>",
            "time": "<time>",
            "type": "run.requested/1",
            "version": 2,
          },
          {
            "actor": {
              "id": "<id>",
              "kind": "library",
              "source": "library",
            },
            "attempt": 1,
            "causation": null,
            "commit": {
              "base": 0,
              "id": "<id>",
              "index": 2,
              "size": 4,
            },
            "fields": {
              "agent": {
                "name": "support",
                "revision": "1",
              },
              "attempt": 1,
              "invocation_id": "<run>",
              "owner": {
                "id": "<id>",
                "kind": "library",
              },
              "run_id": "<run>",
              "tool_recovery": "declared",
              "trigger": {
                "continuation_ids": [],
                "kind": "input",
              },
            },
            "hash": "<hash>",
            "position": {
              "offset": "3",
              "partition": 0,
            },
            "previous": "<hash>",
            "run_id": "<run>",
            "time": "<time>",
            "type": "run.started/1",
            "version": 3,
          },
        ],
        "head": {
          "hash": "<hash>",
          "version": 4,
        },
        "schema": "threadlog.cli/1",
        "thread": {
          "application": "shop",
          "stream": "<hash>",
          "thread": "order_991",
          "user": "u-17",
        },
      }
    `)
    const groups = (await json('show', 'shop/u-17/order_991', '--groups')) as { groups: { parts: unknown[] }[] }
    expect(groups.groups[0]?.parts.at(-1)).toMatchInlineSnapshot(`
      {
        "kind": "wait",
        "note": "approval",
        "open": true,
        "outcome": "waiting",
        "time": "<time>",
        "took_ms": 0,
        "versions": [
          11,
          12,
        ],
        "what": "wait <wait refund> refund",
      }
    `)
  })

  test('shows fields and as much of payloads as asked for', async () => {
    const { out } = await cli('show', 'shop/u-17/order_991', '--types', 'tool.settled', '--detail', '--payloads', 'full')
    expect(out).toMatch(/^ {9}settlement +returned$/m)
    expect(out).toMatch(/^ {9}part +\{"content":\{"cents":4200,/m)
    const none = await cli('show', 'shop/u-17/order_991', '--types', 'tool.settled', '--detail', '--payloads', 'none')
    expect(none.out).not.toContain('4200')
  })

  test('follows until an event of a type, or gives up', async () => {
    const until = await cli('show', 'shop/u-17/order_done', '--follow', '--until', 'run.completed', '--from', '4', '-o', 'jsonl')
    expect(records(until.out).map((line) => line['type'])).toEqual(['model.responded/1', 'run.completed/1'])
    expect(until.code).toBe(0)
    const late = await cli('show', 'shop/u-17/order_done', '--follow', '--until', 'run.failed', '--timeout', '100ms', '--json')
    expect(late.code).toBe(3)
    expect(JSON.parse(late.err).error).toMatchObject({ code: 'timeout', disposition: 'retry' })
  })
})

describe('state', () => {
  test('is what resumes elsewhere', async () => {
    const { out, code } = await cli('state', 'shop/u-17/order_done')
    const state = JSON.parse(out)
    expect(keysOf(state)).toContain('message_history')
    expect({ code, thread: state.thread_id, messages: state.message_history.length }).toEqual({
      code: 0,
      thread: 'order_done',
      messages: 2,
    })
    const enveloped = (await json('state', 'shop/u-17/order_done', '--at', '-2')) as { state: { message_history: unknown[] } }
    expect(keysOf(enveloped)).toEqual(['schema', 'thread', 'version', 'hash', 'state'])
    expect(enveloped.state.message_history).toHaveLength(1)
  })

  test('has places: versions, from the end, times', async () => {
    const at = async (version: string) => cli('state', 'shop/u-17/order_done', '--at', version, '-o', 'jsonl')
    expect(records((await at('3')).out)[0]?.['version']).toBe(3)
    expect(records((await at('@2999-01-01T00:00:00Z')).out)[0]?.['version']).toBe(6)
    expect(await at('7')).toMatchObject({ code: 4, out: '', err: expect.stringContaining('version_unknown') })
    expect(await at('@2001-01-01T00:00:00Z')).toMatchObject({ code: 4, err: expect.stringContaining('version_unknown') })
    expect(await at('soon')).toMatchObject({ code: 2 })
  })
})

describe('replay', () => {
  test('is one record an event', async () => {
    const { out, code } = await cli('replay', 'shop/u-17/order_done', '--at', '-5')
    expect(records(normalised(out))).toMatchInlineSnapshot(`
      [
        {
          "actor": {
            "id": "<id>",
            "kind": "library",
            "source": "library",
          },
          "attempt": 1,
          "causation": null,
          "commit": {
            "base": 0,
            "id": "<id>",
            "index": 0,
            "size": 4,
          },
          "fields": {
            "application_id": "shop",
            "kind": "harness",
            "origin": {
              "kind": "new",
              "parent": null,
              "state": null,
            },
            "thread_id": "order_done",
            "user_id": "u-17",
          },
          "hash": "<hash>",
          "position": {
            "offset": "29",
            "partition": 0,
          },
          "previous": "<hash>",
          "run_id": "<run>",
          "schema": "threadlog.cli/1",
          "time": "<time>",
          "type": "thread.opened/1",
          "version": 1,
        },
      ]
    `)
    expect(code).toBe(0)
    const whole = (await json('replay', 'shop/u-17/order_done', '--payloads', 'none')) as { events: { fields: unknown }[] }
    expect(keysOf(whole)).toEqual(['schema', 'thread', 'events'])
    expect(whole.events[1]?.fields).toMatchObject({ input: { $payload: { size: 9, digest: '<hash>' } } })
  })
})

describe('text of others', () => {
  test('does nothing but be read', async () => {
    for (const args of [['show'], ['show', '--detail', '--payloads', 'full'], ['state'], ['replay'], ['show', '-o', 'json']]) {
      const { out } = await cli(args[0] as string, 'shop/u-17/order_bad', ...args.slice(1))
      expect(out).toMatch(/u001b|u\{1b\}/)
      expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    }
  })
})

describe('references', () => {
  test('are names, keys and prefixes', async () => {
    const { stream } = records((await cli('threads', '-o', 'jsonl', '--limit', '1')).out)[0] as { stream: string }
    for (const reference of ['shop/u-17/order_bad', 'sh%6Fp/u-17/order_bad', stream, stream.slice(0, 9).toUpperCase()])
      expect((await cli('show', reference, '-o', 'json')).code).toBe(0)
    expect((await cli('show', 'order_bad', '--app', 'shop', '--user', 'u-17', '-o', 'json')).code).toBe(0)
    expect(await cli('show', 'shop/u-17/nobody')).toMatchObject({ code: 4, err: expect.stringContaining('thread_unknown') })
    expect(await cli('show', 'a/b/c/d')).toMatchObject({ code: 2 })
    expect(await cli('show', '%zz')).toMatchObject({ code: 2 })
  })
})

describe('a log that is not there', () => {
  test('is not made by commands that read or answer', async () => {
    const log = `${shop.folder}/none.db`
    const commands = [
      ['threads'],
      ['show', 'a'],
      ['verify', '--all'],
      ['deny', 'x'],
      ['results', 'send', '--provider', 'p', '--external-id', 'e', '--result', '1'],
    ]
    for (const args of commands)
      expect(await run(args, { log })).toMatchObject({ code: 4, err: expect.stringContaining('log_missing') })
    expect(existsSync(log)).toBe(false)
  })

  test('is told from an address that is none', async () => {
    expect(await run(['threads', '--json'], { log: 'http://x' })).toMatchObject({
      code: 2,
      err: expect.stringContaining('log_url_invalid'),
    })
  })
})
