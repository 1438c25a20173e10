import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { document, normalised, cli as run } from './support/cli.ts'
import { type Shop, shopLog } from './support/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await shopLog()
})
afterAll(() => shop.remove())

const cli = (...args: string[]) => run(args, { log: shop.log })
const json = async (...args: string[]) => document((await cli(...args, '-o', 'json')).out, shop.waits)

describe('waits and wait', () => {
  test('list what is open', async () => {
    const { out } = await cli('waits', '--kind', 'external')
    expect(normalised(out).replace(shop.waits.payout, '<wait>'.padEnd(32))).toMatchInlineSnapshot(`
      "WAIT                              KIND      STATUS   SINCE                     DUE                       PROVIDER  TOOL    THREAD
      <wait>                            external  pending  <time>  <time>  payouts   payout  shop/u-17/order_pay
      "
    `)
    expect(await json('waits', '--due', '2h')).toMatchInlineSnapshot(`
      {
        "schema": "threadlog.cli/1",
        "waits": [
          {
            "call_id": "p1",
            "capability": "tool.call",
            "created_at": "<time>",
            "deadline": "<time>",
            "digest": "<hash>",
            "external_id": "<wait payout>",
            "id": "<wait payout>",
            "invocation_id": "<run>",
            "kind": "external",
            "provider": "payouts",
            "ready": true,
            "result_digest": null,
            "result_id": null,
            "revision": 1,
            "run_id": "<run>",
            "schema_id": "sha256:<hash>",
            "status": "pending",
            "thread": {
              "application": "shop",
              "stream": "<hash>",
              "thread": "order_pay",
              "user": "u-17",
            },
            "tool": "payout",
            "updated_at": "<time>",
          },
        ],
      }
    `)
    expect((await cli('waits', '--due', '1m', '-o', 'jsonl')).out).toBe('')
  })

  test('list the oldest first', async () => {
    const { refund, payout, question, hostile } = shop.waits
    const listed = async (...more: string[]) =>
      (await cli('waits', '-o', 'jsonl', ...more)).out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).id)
    expect(await listed()).toEqual([refund, payout, question, hostile])
    expect(await listed('--limit', '2')).toEqual([refund, payout])
  })

  test('count what is open, and list what is open for long', async () => {
    const { out } = await cli('waits', '--counts')
    expect(normalised(out)).toMatchInlineSnapshot(`
      "WAITS  OLDEST                    KIND      PROVIDER  APPLICATION
          2  <time>  approval  human     shop
          1  <time>  question  human     shop
          1  <time>  external  payouts   shop
      "
    `)
    expect(await json('waits', '--counts', '--provider', 'payouts')).toMatchInlineSnapshot(`
      {
        "counts": [
          {
            "application": "shop",
            "kind": "external",
            "oldest_at": "<time>",
            "provider": "payouts",
            "waits": 1,
          },
        ],
        "schema": "threadlog.cli/1",
      }
    `)
    expect((await cli('waits', '--counts', '--older-than', '1h')).code).toBe(2)
    expect((await cli('waits', '--older-than', '10d', '-o', 'jsonl')).out).toBe('')
    expect((await cli('waits', '--older-than', '0s', '-o', 'jsonl')).out.trim().split('\n')).toHaveLength(4)
  })

  test('show one wait, also by the beginning of its id', async () => {
    const { out, code } = await cli('wait', shop.waits.refund.slice(0, 10))
    expect(out).toContain('arguments   {"cents":4200,"order":"991"}')
    expect(code).toBe(0)
    expect(await json('wait', shop.waits.refund)).toMatchInlineSnapshot(`
      {
        "schema": "threadlog.cli/1",
        "wait": {
          "arguments": {
            "cents": 4200,
            "order": "991",
          },
          "call_id": "c2",
          "capability": "tool.approval",
          "created_at": "<time>",
          "deadline": null,
          "digest": "<hash>",
          "external_id": "<wait refund>",
          "id": "<wait refund>",
          "invocation_id": "<run>",
          "kind": "approval",
          "outcome": null,
          "provider": "human",
          "ready": true,
          "result_digest": null,
          "result_id": null,
          "revision": 1,
          "run_id": "<run>",
          "schema_id": "threadlog.approval/1",
          "status": "pending",
          "thread": {
            "application": "shop",
            "stream": "<hash>",
            "thread": "order_991",
            "user": "u-17",
          },
          "tool": "refund",
          "updated_at": "<time>",
        },
      }
    `)
    expect(await cli('wait', 'nosuchwait')).toMatchObject({ code: 4, err: expect.stringContaining('wait_unknown') })
  })
})

describe('topics', () => {
  test('requests are what providers are asked', async () => {
    expect((await cli('requests', '--provider', 'payouts')).out).toMatch(/tool\/client\/payout +\S{32} +\{"cents":4200\}\n$/)
    expect(await json('requests', '--wait', shop.waits.payout)).toMatchInlineSnapshot(`
      {
        "requests": [
          {
            "position": {
              "offset": "2",
              "partition": 0,
            },
            "request": {
              "application_id": "shop",
              "arguments": {
                "cents": 4200,
              },
              "capability": "tool.call",
              "continuation_id": "<wait payout>",
              "deadline": 0,
              "external_id": "<wait payout>",
              "idempotency_key": "<hash>",
              "proposal_digest": "<hash>",
              "provider": "payouts",
              "schema_id": "sha256:<hash>",
              "stream": "<hash>",
              "tool": "tool/client/payout",
              "version": 8,
            },
            "time": "<time>",
          },
        ],
        "schema": "threadlog.cli/1",
      }
    `)
  })

  test('checkpoints are boundaries of runs', async () => {
    const { out, err } = await cli('checkpoints', '--limit', '1')
    expect(out).toMatch(/0@6 +\S+Z +suspended +12 +1 +[0-9a-f]{12} +run-[0-9a-f]{32} +shop\/u-17\/order_bad\n$/)
    expect(err).toBe('5 earlier ones are not shown; --limit shows more.\n')
    expect(await json('checkpoints', '--thread', 'order_done', '--payloads', 'none')).toMatchInlineSnapshot(`
      {
        "checkpoints": [
          {
            "checkpoint": {
              "application_id": "shop",
              "hash": "<hash>",
              "invocation_id": "<run>",
              "position": {
                "offset": "34",
                "partition": 0,
              },
              "run_id": "<run>",
              "state": {
                "$payload": {
                  "digest": "<hash>",
                  "size": 1627,
                },
              },
              "state_digest": "<hash>",
              "status": "completed",
              "stream": "<hash>",
              "thread_id": "order_done",
              "time": 0,
              "user_id": "u-17",
              "version": 6,
              "waits": [],
            },
            "position": {
              "offset": "4",
              "partition": 0,
            },
            "time": "<time>",
          },
        ],
        "schema": "threadlog.cli/1",
      }
    `)
  })

  test('receipts may be none', async () => {
    expect(await json('receipts', '--verdict', 'conflict')).toEqual({ schema: 'threadlog.cli/1', receipts: [] })
  })
})
