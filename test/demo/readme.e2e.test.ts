import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { Child, type Line } from '../../examples/support/child.ts'
import { hasPython } from '../../examples/support/python.ts'
import { defineAgent, externalTool, openThreadlog } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { scriptedEnv } from './processes.ts'

const example = (file: string): string => fileURLToPath(new URL(`../../examples/readme/${file}`, import.meta.url))
const dir = mkdtempSync(join(tmpdir(), 'threadlog-test-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

function hasRequests(file: string): boolean {
  try {
    using db = new DatabaseSync(file, { readOnly: true })
    return db.prepare('SELECT count(*) AS n FROM threadlog_requests').get()?.['n'] !== undefined
  } catch {
    return false
  }
}

it('the README example completes, with payouts in Python', { timeout: 60_000 }, async ({ skip }) => {
  skip(!hasPython(), 'needs python3 with SQLite 3.38 or newer')
  const start = () => new Child('main.ts', process.execPath, [example('main.ts')], scriptedEnv(), dir)
  const main = start()
  await vi.waitUntil(() => hasRequests(join(dir, 'shop.db')), { timeout: 10_000, interval: 50 })
  const payouts = new Child('payouts.py', 'python3', [example('payouts.py'), 'shop.db'], {}, dir)
  expect(await main.says('text', (line) => String(line['text']).includes('status:'))).toMatchObject({
    text: "  status: 'completed',",
  })
  expect(await main.says('text', (line) => String(line['text']).includes('output:'))).toMatchObject({
    text: expect.stringMatching(/Order 991 is refunded, payment reference PO-\w{8}/),
  })
  await payouts.says('text', (line) => /^receipt payout-\S+ accepted$/.test(String(line['text'])))
  await main.ended()

  // Started again, it asks for the same run and finds it done.
  const again = start()
  await again.says('text', (line) => String(line['text']).includes("'completed'"))
  await again.ended()
  await payouts.kill()
})

// A cancellation is a second row of the request. A payout process that looks at single rows finds the first one, and pays.
it('the payout process leaves alone what was cancelled', { timeout: 60_000 }, async ({ skip }) => {
  skip(!hasPython(), 'needs python3 with SQLite 3.38 or newer')
  const file = join(dir, 'cancelled.db')
  const payout = externalTool({ name: 'payout', description: 'Pays', provider: 'payouts', input: z.object({ to: z.string() }) })
  const pays = (id: string, to: string) => ({ parts: [{ tool_call: { id, name: 'payout', args: { to } } }] })
  const model = scriptedModel([pays('a', 'first'), pays('b', 'second'), { parts: [{ text: 'paid' }] }])
  const agent = defineAgent({ name: 'payer', revision: '1', model, tools: [payout] })
  await using threads = await openThreadlog({ log: `sqlite:${file}`, application: 'shop', agents: [agent] })
  expect((await threads.run(agent, { thread: 'order_1', input: 'pay' })).status).toBe('suspended')
  expect((await threads.run(agent, { thread: 'order_2', input: 'pay' })).status).toBe('suspended')
  await threads.thread('order_1').cancel()
  await threads.serve()

  const accepted = (line: Line) => String(line['text']).endsWith(' accepted')
  const payouts = new Child('payouts.py', 'python3', [example('payouts.py'), file], {}, dir)
  await payouts.says('text', accepted)
  await payouts.kill()
  // Started again, it finds nothing to do: the receipt says so.
  const again = new Child('payouts.py', 'python3', [example('payouts.py'), file], {}, dir)
  await again.says('text', accepted)
  await again.kill()
  const paid = [...payouts.lines, ...again.lines].map((line) => String(line['text'])).filter((text) => text.startsWith('pay '))
  expect(paid).toEqual(["pay {'to': 'second'}"])
  using db = new DatabaseSync(file, { readOnly: true })
  expect(db.prepare('SELECT count(*) AS n FROM threadlog_results').get()).toEqual({ n: 1 })
})

it.each([
  ['main.ts', '//', 45],
  ['payouts.py', '#', 30],
])('%s has one part for the README, short enough to read', (file, comment, most) => {
  const parts = readFileSync(example(file), 'utf8').split(new RegExp(`^${comment} README: (?:begin|end)\n`, 'm'))
  expect(parts).toHaveLength(3)
  expect(parts[1]?.trimEnd().split('\n').length).toBeLessThanOrEqual(most)
})
