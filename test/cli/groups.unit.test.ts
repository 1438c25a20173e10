import { expect, test } from 'vitest'
import { type Group, groupEvents, rangesText } from '../../src/cli/show/groups.ts'
import { openThreadlog, type Threadlog } from '../../src/index.ts'
import type { RecordedEvent } from '../../src/log/index.ts'
import { agents, support } from './support/agents.ts'

async function recordsOf(threads: Threadlog, thread: string): Promise<RecordedEvent[]> {
  return Array.fromAsync(threads.thread(thread).events())
}

const shape = ({ versions, what, outcome, open, parts }: Group): string[] => [
  `${rangesText(versions)} ${what.replace(/run-\w+/, 'run').replace(/(wait) \S+/, '$1')}: ${outcome}${open ? ' …' : ''}`,
  ...parts.flatMap(shape).map((line) => `  ${line}`),
]

test('a run, its suspension and what follows stand where they happened', async () => {
  const threads = await openThreadlog({ agents })
  const { waits } = await threads.run(support, { thread: 'order_1', input: 'Refund order 1' })
  expect(groupEvents(await recordsOf(threads, 'order_1')).flatMap(shape)).toEqual([
    '1-3,10 run run attempt 1: suspended',
    '  4-5 model step 1: 1 call',
    '  6-7 tool lookup c1: success',
    '  8-9 model step 2: 1 call',
    '  11-12 wait refund: waiting …',
  ])
  await threads.approve(waits[0]?.id ?? '')
  await threads.run(support, { thread: 'order_1' })
  const records = await recordsOf(threads, 'order_1')
  expect(groupEvents(records).flatMap(shape)).toEqual([
    '1-3,10 run run attempt 1: suspended',
    '  4-5 model step 1: 1 call',
    '  6-7 tool lookup c1: success',
    '  8-9 model step 2: 1 call',
    '  11-14 wait refund: completed',
    '15,20 run run attempt 1: completed',
    '  16-17 tool refund c2: success',
    '  18-19 model step 1: text',
  ])
  // Every event stands in exactly one group, wherever the thread breaks off.
  const versions = (group: Group): number[] => [...group.versions, ...group.parts.flatMap(versions)]
  for (let length = 2; length <= records.length; length++)
    expect(
      groupEvents(records.slice(0, length))
        .flatMap(versions)
        .sort((a, b) => a - b),
    ).toEqual(records.slice(0, length).map((record) => record.version))
  await threads.close()
})

test('a denied call and an external result belong to their waits', async () => {
  const threads = await openThreadlog({ agents })
  const denied = await threads.run(support, { thread: 'order_2', input: 'Refund order 2' })
  await threads.deny(denied.waits[0]?.id ?? '')
  await threads.run(support, { thread: 'order_2' })
  const paid = await threads.run(support, { thread: 'order_3', input: 'Pay order 3' })
  await threads.submit({ provider: 'payouts', continuation_id: paid.waits[0]?.id ?? '', failure: { code: 'closed' } })
  await threads.run(support, { thread: 'order_3' })
  const told = async (thread: string) => groupEvents(await recordsOf(threads, thread)).flatMap(shape)
  expect((await told('order_2')).filter((line) => line.includes('wait'))).toEqual(['  11-14,16 wait refund: completed'])
  expect((await told('order_3')).filter((line) => line.includes('wait'))).toEqual(['  7-10,12 wait payout: failed: closed'])
  await threads.close()
})

test('versions are written as ranges', () => {
  expect(rangesText([1, 2, 3, 9, 11, 12])).toBe('1-3,9,11-12')
  expect(rangesText([])).toBe('')
})
