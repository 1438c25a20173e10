import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { AGENTS, collected, document, records, cli as run, says, start } from './support/cli.ts'
import { temporaryFolder } from './support/shop.ts'

const place = temporaryFolder()
const log = join(place.folder, 'run.db')
const cli = (...args: string[]) => run(args, { log })
afterAll(() => place.remove())

describe('run', () => {
  test('makes the log, streams text, and says on standard error how it ended', async () => {
    const { code, out, err } = await run(['run', AGENTS, 'order_1', 'Hello 1'], { cwd: place.folder })
    expect({ code, out, err }).toEqual({
      code: 0,
      out: 'Done: 1. \\u{1b}[31mred\\u{202e}\n',
      err: 'completed: default/default/order_1 at version 6\n',
    })
    expect(existsSync(join(place.folder, 'threadlog.db'))).toBe(true)
  })

  test('has the result as a document, and everything as records', async () => {
    const suspended = await cli('run', AGENTS, 'shop/u-1/order_2', 'Refund order 2', '--json')
    const id = JSON.parse(suspended.out).waits[0].id
    expect(document(suspended.out, { id })).toMatchInlineSnapshot(`
      {
        "failure": null,
        "invocation_id": "<run>",
        "output": null,
        "run_id": "<run>",
        "schema": "threadlog.cli/1",
        "status": "suspended",
        "thread": {
          "application": "shop",
          "stream": "<hash>",
          "thread": "order_2",
          "user": "u-1",
        },
        "version": 10,
        "waits": [
          {
            "arguments": {
              "cents": 4200,
              "order": "2",
            },
            "created_at": "<time>",
            "deadline": null,
            "digest": "<hash>",
            "external_id": "<wait id>",
            "id": "<wait id>",
            "kind": "approval",
            "provider": "human",
            "schema_id": "threadlog.approval/1",
            "status": "pending",
            "tool": "refund",
          },
        ],
      }
    `)
    expect(suspended.code).toBe(0)
    const told = await run(['run', AGENTS, 'new', '-', '-o', 'jsonl'], { log, input: 'Hello 3' })
    expect(records(told.out).map((line) => line['event'] ?? line['text'] ?? line['status'])).toEqual([
      'run_started',
      'thread.opened/1',
      'run.requested/1',
      'run.started/1',
      'request.composed/1',
      'Done: 3. ',
      '\u001b[31mred\u202e',
      'model.responded/1',
      'run.completed/1',
      'completed',
    ])
    expect(records(told.out).every((line) => line['schema'] === 'threadlog.cli/1')).toBe(true)
  })

  test('ends with 1 when the run failed', async () => {
    expect(await cli('run', AGENTS, 'order_4', 'Fail 4')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^failed: default\/default\/order_4 /),
    })
  })

  test('refuses modules without agents, and a second run on a busy thread', async () => {
    expect(await cli('run', 'nosuch.ts', 'new', 'x')).toMatchObject({
      code: 2,
      err: expect.stringContaining('agent_module_invalid'),
    })
    const empty = join(place.folder, 'empty.mjs')
    writeFileSync(empty, 'export const agents = [1]\n')
    expect(await cli('run', empty, 'new', 'x', '--json')).toMatchObject({
      code: 2,
      err: expect.stringContaining('exports no agent'),
    })
    expect(await cli('run', AGENTS, 'new', 'x', '--agent', 'other')).toMatchObject({ code: 2 })
    expect(await cli('run', AGENTS, 'Not A Thread', 'x')).toMatchObject({
      code: 4,
      err: expect.stringContaining('thread_id_invalid'),
    })
    await cli('start', 'other', 'order_5', 'x')
    expect(await cli('run', AGENTS, 'order_5', 'x')).toMatchObject({ code: 3, err: expect.stringContaining('run_active') })
  })

  test('is cancelled by SIGINT, after which everything is closed', async () => {
    const child = start(['run', AGENTS, 'order_6', 'Hang 6'], { log })
    const ended = collected(child)
    await says(child, 'stdout', /^Thinking/)
    child.kill('SIGINT')
    expect(await ended).toEqual({ code: 130, out: 'Thinking\n', err: 'cancelled: default/default/order_6 at version 7\n' })
    expect(JSON.parse((await cli('threads', '--state', 'cancelled', '--json')).out).threads).toHaveLength(1)
  })
})

describe('start and engine', () => {
  test('a run asked for is done by an engine', async () => {
    const asked = await cli('start', 'support', 'order_7', 'Hello 7', '--command-id', 'c-7', '--json')
    expect(document(asked.out)).toMatchInlineSnapshot(`
      {
        "run_id": "<run>",
        "schema": "threadlog.cli/1",
        "thread": {
          "application": "default",
          "stream": "<hash>",
          "thread": "order_7",
          "user": "default",
        },
      }
    `)
    const late = await cli('start', 'support', 'order_7', 'Hello 7', '--command-id', 'c-7', '--wait', '--timeout', '200ms')
    expect(late).toMatchObject({ code: 3, err: expect.stringContaining('(timeout)') })
    const engine = start(['engine', AGENTS], { log })
    const ended = collected(engine)
    try {
      await says(engine, 'stderr', /^ready: /)
      // A command that only looks works beside it, and so does one that waits.
      const [looked, done] = await Promise.all([
        cli('threads', '--state', 'waiting'),
        cli('start', 'support', 'order_7', 'Hello 7', '--command-id', 'c-7', '--wait', '--json'),
      ])
      expect(looked).toMatchObject({ code: 0, out: expect.stringContaining('shop/u-1/order_2') })
      expect([done.code, JSON.parse(done.out).status]).toEqual([0, 'completed'])
      const failed = await cli('start', 'support', 'order_8', 'Fail 8', '--wait')
      expect(failed).toMatchObject({ code: 1, out: expect.stringMatching(/^failed: default\/default\/order_8 /) })
    } finally {
      engine.kill('SIGINT')
    }
    expect(await ended).toMatchObject({ code: 130, out: '' })
    expect(
      JSON.parse((await cli('replay', 'order_7', '-o', 'json')).out).events.filter(
        (event: { type: string }) => event.type === 'run.requested/1',
      ),
    ).toHaveLength(1)
  })
})

describe('following', () => {
  test('tells what comes, and ends cleanly on a signal', async () => {
    const follow = (...args: string[]) => start([...args, '--follow', '-o', 'jsonl'], { log })
    const children = [
      follow('waits', '--kind', 'external'),
      follow('requests', '--provider', 'payouts'),
      follow('checkpoints', '--thread', 'order_9'),
    ]
    const told = children.map((child) => says(child, 'stdout', /payout|order_9/))
    const ends = children.map(collected)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    await cli('run', AGENTS, 'order_9', 'Pay order 9')
    for (const line of await Promise.all(told)) expect(JSON.parse(line).schema).toBe('threadlog.cli/1')
    for (const child of children) child.kill('SIGTERM')
    expect((await Promise.all(ends)).map(({ code, err }) => [code, err])).toEqual(children.map(() => [143, '']))
    expect(await cli('waits', '--follow')).toMatchObject({ code: 2, err: expect.stringContaining('-o jsonl') })
  })

  test('ends quietly when nobody reads any more', async () => {
    const child = start(['checkpoints', '--follow', '-o', 'jsonl'], { log })
    const ended = collected(child)
    await says(child, 'stdout', /schema/)
    child.stdout?.destroy()
    await cli('run', AGENTS, 'order_10', 'Hello 10')
    expect(await ended).toMatchObject({ code: 0, err: '' })
  })
})

describe('a closed pipe', () => {
  test('ends quietly with 0', async () => {
    for (const args of [['replay', 'order_7'], ['threads'], ['run', AGENTS, 'order_1', 'Hello']]) {
      const child = start(args, { log })
      child.stdout?.destroy()
      const { code, err } = await collected(child)
      expect([code, err.replace(/^completed: .*\n$/, '')]).toEqual([0, ''])
    }
  })
})

describe('using it wrongly', () => {
  test('ends with 2, and says what to do', async () => {
    for (const args of [
      ['nosuch'],
      ['threads', '--nosuch'],
      ['threads', '--limit', '0'],
      ['threads', '-o', 'xml'],
      ['show'],
      ['results'],
      [],
    ])
      expect(await cli(...args)).toMatchObject({ code: 2, out: '' })
    const json = await cli('shwo', '-o', 'json')
    expect(JSON.parse(json.err)).toEqual({
      error: {
        code: 'usage',
        disposition: 'reject',
        message: "unknown command 'shwo'.",
        hint: 'Did you mean show? See threadlog help.',
        details: {},
      },
    })
  })

  test('help and version are answers', async () => {
    expect(await cli('--version')).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), err: '' })
    expect(await cli('help', 'approve')).toMatchObject({ code: 0, out: expect.stringContaining('--digest <digest>'), err: '' })
    expect((await cli('--help')).out).toContain('130, 143')
  })
})
