import { expect, test } from 'vitest'
import type { LogBackend } from '../../../src/log/index.ts'
import { describeKafka, kafkaPlace } from '../../support/kafka/index.ts'
import { codeOf } from './faults-support.ts'

const KEY = 'thread'

/** Says where the thread stands, with the progress from one place to the next. */
const says = ({ topics }: LogBackend, status: string, [expect, next]: [bigint, bigint]): Promise<void> =>
  topics.transact({
    publish: { checkpoints: [{ key: KEY, value: Buffer.from(status) }] },
    progress: { topic: 'results', group: 'group', next: new Map([[0, next]]), expect: new Map([[0, expect]]) },
  })

async function said({ topics }: LogBackend): Promise<string[]> {
  const found: string[] = []
  for await (const batch of topics.scan('checkpoints')) found.push(...batch.map(({ value }) => Buffer.from(value).toString()))
  return found
}

describeKafka('a writer of records with progress that has lost its partition', () => {
  test('row 67, row 101, row 116, row 118: writes nothing over what its successor wrote, however often it tries', async () => {
    await using place = await kafkaPlace({ partitions: 1 })
    const [zombie, owner] = [await place.open({ replica: place.replica() }), await place.open({ replica: place.replica() })]
    await says(zombie, '1 running', [0n, 1n])
    await says(owner, '2 done', [1n, 2n])
    // Fenced at the first try. At the second it has taken the id again, and only the progress can tell it.
    for (const _ of [1, 2]) expect(await codeOf(says(zombie, '2 running', [1n, 2n]))).toBe('progress_moved')
    // Its successor, fenced by that, knows where it stands and goes on.
    expect(await codeOf(says(owner, '3 again', [2n, 3n]))).toBe('progress_moved')
    await says(owner, '3 again', [2n, 3n])
    expect(await said(owner)).toEqual(['1 running', '2 done', '3 again'])
    expect((await owner.topics.progress('results', 'group')).get(0)).toBe(3n)
  }, 60_000)
})
