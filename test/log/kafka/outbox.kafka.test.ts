import { expect, test } from 'vitest'
import type { LogBackend } from '../../../src/log/index.ts'
import { installRows } from '../../../src/testing/log-conformance/projector-cases.ts'
import { after, commitOn, newStream } from '../../../src/testing/log-conformance/writing.ts'
import { describeKafka, kafkaPlace } from '../../support/kafka/index.ts'

/** Keys of the first `count` requests. */
async function requestKeys(log: LogBackend, count: number): Promise<string[]> {
  const keys: string[] = []
  for await (const batch of log.topics.subscribe('requests', {})) {
    keys.push(...batch.map(({ key }) => key))
    if (keys.length >= count) break
  }
  return keys.sort()
}

/** Appends `count` commits of two events, in turn by each of `logs`, and names the requests to expect. */
async function write(logs: readonly LogBackend[], count: number): Promise<string[]> {
  const expected: string[] = []
  for (let i = 0; i < count; i++) {
    const stream = newStream()
    const log = logs[i % logs.length] as LogBackend
    const first = commitOn(stream, undefined, 2)
    await log.events.append(first)
    await log.events.append(commitOn(stream, after(first), 1))
    expected.push(...[1, 2, 3].map((version) => `${stream} ${version}`))
  }
  return expected.sort()
}

describeKafka('what is published of accepted events', () => {
  test('each once, of those before this process took part and of those since', async () => {
    await using place = await kafkaPlace()
    const log = await place.open({ replica: place.replica() })
    await installRows(log)
    const before = await write([log], 10)
    await log.assignment?.join()
    const since = await write([log], 30)
    expect(await requestKeys(log, 120)).toEqual([...before, ...since].sort())
  })

  test('also of those that another process has stored in the replica both share', async () => {
    await using place = await kafkaPlace()
    const replica = place.replica()
    const [publisher, other] = [await place.open({ replica }), await place.open({ replica })]
    await installRows(publisher)
    await publisher.assignment?.join()
    const expected = await write([publisher, other], 60)
    expect(await requestKeys(publisher, expected.length)).toEqual(expected)
  })
})
