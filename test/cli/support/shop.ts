import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openThreadlog } from '../../../src/index.ts'
import { agents, support } from './agents.ts'

export interface Shop {
  /** Path of the log file. */
  log: string
  /** The folder it stands in. */
  folder: string
  /** Ids of the open waits. */
  waits: { refund: string; hostile: string; payout: string; question: string }
  remove(): void
}

/** A folder of its own, removed with everything in it. */
export function temporaryFolder(): { folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'threadlog-cli-'))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** A log with threads of application `shop`, user `u-17`: one completed, one failed, four waiting. */
export async function shopLog(): Promise<Shop> {
  const { folder, remove } = temporaryFolder()
  const log = join(folder, 'shop.db')
  const threads = await openThreadlog({ log: `sqlite:${log}`, application: 'shop', agents })
  const run = (thread: string, input: string) => threads.run(support, { user: 'u-17', thread, input })
  const waitOf = async (thread: string, input: string) => (await run(thread, input)).waits[0]?.id ?? ''
  try {
    const refund = await waitOf('order_991', 'Refund order 991')
    const payout = await waitOf('order_pay', 'Pay order 3')
    const question = await waitOf('order_ask', 'Ask about 4')
    await run('order_done', 'Hello 5')
    await run('order_failed', 'Fail 6')
    const hostile = await waitOf('order_bad', 'Refund order hostile')
    return { log, folder, waits: { refund, hostile, payout, question }, remove }
  } finally {
    await threads.close()
  }
}
