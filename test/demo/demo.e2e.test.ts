import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import type { Check, Facts } from '../../examples/demo/checks.ts'
import { hasPython } from '../../examples/support/python.ts'
import { scriptedEnv } from './processes.ts'

const main = fileURLToPath(new URL('../../examples/demo/main.ts', import.meta.url))
const temporary = mkdtempSync(join(tmpdir(), 'threadlog-test-'))
afterAll(() => rmSync(temporary, { recursive: true, force: true }))

const demo = async (...args: string[]): Promise<string> => {
  const env = { ...scriptedEnv(), TMPDIR: temporary }
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], { env, timeout: 55_000 })
  return stdout
}

describe('the demo', { timeout: 60_000 }, () => {
  const languages = ['python', 'node']
  it.for(languages)('settles one refund through three kills, with payouts in %s', async (language, { skip }) => {
    skip(language === 'python' && !hasPython(), 'needs python3 with SQLite 3.38 or newer')
    const facts = JSON.parse(await demo('--json', '--payouts', language)) as Facts & { checks: Check[] }

    expect(facts.checks.filter((check) => !check.ok)).toEqual([])
    expect(facts.kills).toHaveLength(3)
    expect(facts.told).toEqual([
      { result_id: 'bank-1', verdict: 'accepted' },
      { result_id: 'bank-1-again', verdict: 'duplicate' },
      { result_id: 'bank-2', verdict: 'conflict' },
    ])
    expect(facts.receipts.map(({ provider, verdict }) => `${provider} ${verdict}`)).toEqual([
      'human accepted',
      'payouts accepted',
      'payouts duplicate',
      'payouts conflict',
    ])
    const [first, second, refund] = facts.effects
    expect(facts.effects.map((effect) => effect.tool)).toEqual(['lookup_order', 'lookup_order', 'refund'])
    expect(second?.key).toBe(first?.key)
    expect(second?.pid).not.toBe(first?.pid)
    expect(refund?.key).not.toBe(first?.key)
    expect(facts.checkpoints.map((checkpoint) => checkpoint.status)).toEqual(['suspended', 'suspended', 'completed'])
    expect(facts.result).toMatchObject({ status: 'completed', output: expect.stringContaining('PO-7301') })
    expect(facts.verify).toMatchObject({ chain: true, replayed: facts.verify.live, events: facts.timeline.length })
    expect(readdirSync(temporary)).toEqual([])
  })

  it('tells a person the same in under 80 lines, and keeps the directory it was given', async () => {
    const dir = join(temporary, 'kept')
    const output = await demo('--dir', dir)
    expect(output).toContain('kill -9 in the middle of lookup_order')
    expect(output).not.toContain('✗')
    expect(output.split('\n').length).toBeLessThan(80)
    expect(existsSync(join(dir, 'shop.db'))).toBe(true)
    await expect(demo('--dir', dir)).rejects.toThrow('There is a log in')
  })
})
