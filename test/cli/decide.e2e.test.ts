import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { agents, support } from './support/agents.ts'
import { AGENTS, document, records, cli as run, says, start } from './support/cli.ts'
import { type Shop, shopLog } from './support/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await shopLog()
})
afterAll(() => shop.remove())

const cli = (...args: string[]) => run(args, { log: shop.log })
const digestOf = async (wait: string): Promise<string> => JSON.parse((await cli('wait', wait, '--json')).out).wait.digest

describe('approve and deny', () => {
  test('off a terminal, approve needs --yes and --digest', async () => {
    const { refund } = shop.waits
    const digest = await digestOf(refund)
    for (const args of [[], ['--yes'], ['--digest', digest]])
      expect(await cli('approve', refund, ...args, '--json')).toMatchObject({
        code: 2,
        out: '',
        err: expect.stringMatching(/^\{"error":\{"code":"usage"/),
      })
    expect(await cli('approve', refund, '--yes', '--digest', 'abc')).toMatchObject({ code: 2 })
    const other = await cli('approve', refund, '--yes', '--digest', '0'.repeat(64))
    expect(other).toMatchObject({ code: 1, out: expect.stringContaining('verdict     proposal-changed') })
    const accepted = await cli('approve', refund, '--yes', '--digest', digest, '--by', 'lead', '--command-id', 'c-1', '--json')
    expect(document(accepted.out, shop.waits)).toMatchInlineSnapshot(`
      {
        "receipt": {
          "continuation_id": "<wait refund>",
          "final": true,
          "provider": "human",
          "result_id": "approve:c-1",
          "sequence": 1,
          "source": {
            "api": "approve",
            "command_id": "c-1",
          },
          "verdict": "accepted",
        },
        "schema": "threadlog.cli/1",
      }
    `)
    expect(accepted.code).toBe(0)
    const again = await cli('approve', refund, '--yes', '--digest', digest, '--command-id', 'c-2', '-o', 'jsonl')
    expect([again.code, JSON.parse(again.out).receipt.verdict]).toEqual([0, 'duplicate'])
    expect((await cli('deny', refund, '--reason', 'late')).out).toMatch(/^verdict {5}conflict\n/)
    expect((await cli('show', 'shop/u-17/order_991', '--types', 'continuation.completed')).out).toContain('by human lead')
  })

  test('deny tells the model why', async () => {
    const { hostile } = shop.waits
    expect(await cli('deny', hostile, '--reason', 'no', '--by', 'lead')).toMatchObject({ code: 0 })
    expect((await cli('wait', hostile)).out).toContain('value       {"approved":false,"message":"no"}')
  })

  test('other waits are refused', async () => {
    for (const args of [
      ['deny', shop.waits.payout],
      ['answer', shop.waits.payout, '--response', 'x'],
    ])
      expect(await cli(...args, '--json')).toMatchObject({ code: 4, err: expect.stringContaining('wait_kind_mismatch') })
  })

  test('on a terminal it shows the call and asks', async () => {
    const threads = await openThreadlog({ log: `sqlite:${shop.log}`, application: 'shop', agents })
    const { waits } = await threads.run(support, { thread: 'order_tty', input: 'Refund order tty' })
    await threads.close()
    const id = waits[0]?.id ?? ''
    const refused = onTerminal(shop.log, ['approve', id], 'n\n')
    expect(refused).toContain('arguments   {"cents":4200,"order":"tty"}')
    expect(refused).toContain(`digest      ${waits[0]?.digest}`)
    expect(refused).toContain('Nothing was decided.')
    expect(refused).toContain('exit 1')
    expect(onTerminal(shop.log, ['approve', id], '\u0004')).toMatch(/Nothing was decided.*exit 1\n/s)
    expect(onTerminal(shop.log, ['approve', id], '\u0003')).toMatch(/Nothing was decided.*exit 130\n/s)
    expect(onTerminal(shop.log, ['approve', id], 'y\n')).toMatch(/verdict {5}accepted.*exit 0/s)
  })
})

const PTY = `
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
text, told = b'', False
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    text += data
    if not told and b'[y/N]' in text:
        told = True
        os.write(fd, sys.argv[1].encode())
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.buffer.write(text.replace(b'\\r\\n', b'\\n') + b'\\nexit %d\\n' % code)
`

/** Runs the command on a pseudo terminal, and says `reply` when asked. */
function onTerminal(log: string, args: string[], reply: string): string {
  const main = new URL('../../src/cli/main.ts', import.meta.url).pathname
  const env = { ...process.env, THREADLOG_LOG: `sqlite:${log}`, NO_COLOR: '1', TERM: 'dumb' }
  return spawnSync('python3', ['-c', PTY, reply, process.execPath, main, ...args], { env, encoding: 'utf8', timeout: 30_000 })
    .stdout
}

describe('answer', () => {
  test('takes an answer to each question, or a response', async () => {
    const { question } = shop.waits
    expect(await cli('answer', question)).toMatchObject({ code: 2 })
    expect(await cli('answer', question, '--result', '"North"')).toMatchObject({ code: 2 })
    expect(await cli('answer', question, '--result', '{"answers":')).toMatchObject({
      code: 2,
      err: expect.stringContaining('no JSON'),
    })
    const other = await cli('answer', question, '--result', '{"answers": {"Which colour?": "red"}}')
    expect(other).toMatchObject({ code: 1, out: expect.stringMatching(/verdict +invalid.*answer_invalid/s) })
    const answers = JSON.stringify({ answers: { 'Which warehouse?': 'North' } })
    const accepted = await run(['answer', question, '--result', '-', '--json'], { log: shop.log, input: answers })
    expect([accepted.code, JSON.parse(accepted.out).receipt.verdict]).toEqual([0, 'accepted'])
  })
})

describe('results send', () => {
  const sending = (...args: string[]) => cli('results', 'send', '--provider', 'payouts', ...args)

  test('is used with one address and one outcome', async () => {
    for (const args of [
      ['--result', '1'],
      ['--external-id', 'e'],
      ['--external-id', 'e', '--result', '1', '--failure', 'x'],
      ['--external-id', 'e', '--result', '1', '--retryable'],
    ])
      expect(await sending(...args)).toMatchObject({ code: 2, out: '' })
  })

  test('needs an engine for the receipt, and gives up without', async () => {
    const late = await sending('--external-id', 'nobody', '--result', '1', '--timeout', '200ms', '--json')
    expect([late.code, JSON.parse(late.err).error.code]).toEqual([3, 'timeout'])
    const sent = await sending('--external-id', 'nobody', '--result', '1', '--no-wait', '--json')
    expect(JSON.parse(sent.out)).toEqual({ schema: 'threadlog.cli/1', sent: { topic: 'results', partition: 0, offset: '2' } })
  })

  test('waits for the receipt an engine writes', async () => {
    const engine = start(['engine', AGENTS, '--app', 'shop'], { log: shop.log })
    const ended = new Promise<number | null>((resolve) => engine.on('close', resolve))
    try {
      expect(await says(engine, 'stderr', /^ready: /)).toMatch(/^ready: support@1 on sqlite:.*shop\.db, application shop$/)
      const result = JSON.stringify({ reference: 'R-1' })
      const address = ['--continuation-id', shop.waits.payout]
      const wrong = await sending(...address, '--result', '{"reference":1}', '--json')
      expect([wrong.code, JSON.parse(wrong.out).receipt.verdict]).toEqual([1, 'invalid'])
      const accepted = await sending(...address, '--result', result, '--result-id', 'r-1', '--json')
      expect(document(accepted.out, shop.waits)).toMatchInlineSnapshot(`
        {
          "receipt": {
            "continuation_id": "<wait payout>",
            "final": true,
            "provider": "payouts",
            "result_id": "r-1",
            "sequence": 1,
            "source": {
              "cluster": "<id>",
              "offset": 4,
              "partition": 0,
              "record_time": 0,
              "topic": "results",
            },
            "verdict": "accepted",
          },
          "schema": "threadlog.cli/1",
        }
      `)
      expect(accepted.code).toBe(0)
      expect(await sending(...address, '--failure', 'bank_closed', '--retryable')).toMatchObject({
        code: 1,
        out: expect.stringMatching(/^verdict {5}conflict\n/),
      })
      const human = await cli(
        'results',
        'send',
        '--provider',
        'human',
        '--continuation-id',
        shop.waits.refund,
        '--result',
        '{"approved":true}',
      )
      expect(human).toMatchObject({ code: 1, out: expect.stringMatching(/^verdict {5}forbidden\n/) })
      const receipts = records((await cli('receipts', '--provider', 'payouts', '--limit', '3', '-o', 'jsonl')).out)
      expect(receipts.map((line) => (line['receipt'] as { verdict: string }).verdict)).toEqual([
        'invalid',
        'accepted',
        'conflict',
      ])
      expect((await cli('receipts', '--verdict', 'invalid', '--provider', 'payouts')).out).toMatch(
        / invalid +payouts +results\/0@3 +\S+ +\$\.result /,
      )
    } finally {
      engine.kill('SIGTERM')
    }
    expect(await ended).toBe(143)
    expect(
      JSON.parse((await cli('threads', '--json')).out).threads.find((row: { thread: string }) => row.thread === 'order_pay'),
    ).toMatchObject({ last_end: 'completed' })
  })
})
