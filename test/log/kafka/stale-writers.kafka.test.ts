import { expect, test } from 'vitest'
import type { Commit, StreamKey } from '../../../src/events/index.ts'
import { type KafkaEvents, openKafkaEvents } from '../../../src/log/kafka/events.ts'
import { after, commitOn, grow, newStream, readStream } from '../../../src/testing/log-conformance/writing.ts'
import { brokers, describeKafka, kafkaPlace } from '../../support/kafka/index.ts'
import { produce } from '../support/kafka-place.ts'

// What a writer that is late, broken or no writer of this package leaves in a partition. Three read it: one that goes on and on, one that is
// closed and opened again on its replica after every single record, and one that comes last and reads all at once.

interface Put {
  key: string
  value: Buffer | null
  partition: number
}

const TOMBSTONE = null
const NO_BYTES = Buffer.alloc(0)
const FRAMING = Buffer.from([0, 0, 0, 0, 1])
const GARBAGE = Buffer.from('not an event, and longer than its framing')

async function witnesses(partitions = 1) {
  const place = await kafkaPlace({ partitions })
  const open = (name: string) => openKafkaEvents({ brokers: brokers(), prefix: place.prefix, replica: place.replica(name) })
  const steady = await open('steady')
  const restart = async () => (await open('restarting')).close()
  /** The records of a commit as its writer would send them. */
  const recordsOf = ({ stream, records }: Commit): Put[] =>
    records.map(({ bytes }) => ({ key: stream, value: Buffer.from(bytes), partition: steady.log.partitionOf(stream) }))
  /** Writes records, each in a send of its own, with a restart between any two. */
  const put = async (...records: Put[]) => {
    for (const record of records) {
      await produce(brokers(), [{ topic: `${place.prefix}.events`, ...record }])
      await restart()
    }
  }
  const at = (stream: StreamKey, value: Buffer | null): Put => ({
    key: stream,
    value,
    partition: steady.log.partitionOf(stream),
  })
  const outcomeOf = async ({ log, voids }: KafkaEvents, streams: readonly StreamKey[]) => ({
    voids: [...voids().values()].reduce((sum, each) => sum + each, 0),
    ends: [...(await log.barrier())],
    streams: await Promise.all(
      streams.map(async (stream) => (await readStream(log, stream)).map(({ version, hash }) => `${version} ${hash}`)),
    ),
  })
  /** That all three have found these commits and this number of void records, and that the next commit of each stream is accepted. */
  const agree = async (commits: readonly Commit[], voids: number) => {
    const streams = [...new Set(commits.map(({ stream }) => stream))]
    for (const stream of streams) {
      const last = commits.findLast((commit) => commit.stream === stream)!
      await restart()
      expect(await steady.log.append(last)).toMatchObject({ accepted: true })
    }
    const expected = streams.map((stream) =>
      commits
        .filter((commit) => commit.stream === stream)
        .flatMap(({ records }) => records.map(({ version, hash }) => `${version} ${hash}`)),
    )
    await steady.log.barrier()
    const outcome = await outcomeOf(steady, streams)
    expect(outcome).toMatchObject({ voids, streams: expected })
    for (const name of ['restarting', 'late']) {
      const reader = await open(name)
      expect([name, await outcomeOf(reader, streams)]).toEqual([name, outcome])
      await reader.close()
    }
    for (const stream of streams) await grow(steady.log, stream, 1)
  }
  const dispose = async () => {
    await steady.close()
    await place.remove()
  }
  return { steady, put, at, recordsOf, agree, [Symbol.asyncDispose]: dispose }
}

/** A stream with one commit, and one of three records that follows it. */
async function ready(seen: Awaited<ReturnType<typeof witnesses>>) {
  const stream = newStream()
  const first = commitOn(stream, undefined, 2)
  await seen.put(...seen.recordsOf(first))
  return { stream, first, next: commitOn(stream, after(first), 3) }
}

describeKafka('a stale writer', () => {
  test('on an old base changes nothing, and hears so', async () => {
    await using seen = await witnesses()
    const { stream, first, next } = await ready(seen)
    await seen.put(...seen.recordsOf(next))
    const [zombie, other] = [commitOn(stream, after(first), 2), commitOn(stream, undefined, 1)]
    await seen.put(...seen.recordsOf(zombie), ...seen.recordsOf(other))
    for (const commit of [zombie, other])
      expect(await seen.steady.log.append(commit)).toMatchObject({ accepted: false, head: after(next) })
    await seen.agree([first, next], 3)
  })

  test('whose batch arrives twice is accepted once', async () => {
    await using seen = await witnesses()
    const { stream, first, next } = await ready(seen)
    const other = commitOn(newStream(), undefined, 1)
    const last = commitOn(stream, after(next), 1)
    const batch = [...seen.recordsOf(next), ...seen.recordsOf(other)]
    await seen.put(...batch, ...batch, ...seen.recordsOf(last), ...batch)
    await seen.agree([first, next, last, other], 8)
  })

  test('with a commit in two sends is accepted where all its records stand behind each other', async () => {
    await using seen = await witnesses()
    const { first, next } = await ready(seen)
    const [one, two, three] = seen.recordsOf(next) as [Put, Put, Put]
    // Incomplete; out of order; only then whole.
    await seen.put(one, two)
    await seen.put(two, one, three)
    await seen.put(one, two)
    await seen.put(three)
    await seen.agree([first, next], 5)
  })

  test('with a record of somebody else between its halves is void, and may send again', async () => {
    await using seen = await witnesses()
    const { first, next } = await ready(seen)
    const foreign = commitOn(newStream(), undefined, 1)
    const [one, two, three] = seen.recordsOf(next) as [Put, Put, Put]
    await seen.put(one, two, ...seen.recordsOf(foreign), three)
    expect(await seen.steady.log.append(next)).toMatchObject({ accepted: true, head: after(next) })
    await seen.agree([first, next, foreign], 3)
  })

  test('that names another event before its own is void, and hears so', async () => {
    await using seen = await witnesses()
    const { stream, first, next } = await ready(seen)
    const fork = commitOn(stream, { ...after(first), hash: 'e'.repeat(64) }, 2)
    const torn = commitOn(stream, after(first), 2)
    const [head, tail] = [seen.recordsOf(torn)[0]!, seen.recordsOf(fork)[1]!]
    await seen.put(...seen.recordsOf(fork), head, tail)
    expect(await seen.steady.log.append(fork)).toMatchObject({ accepted: false, head: after(first) })
    await seen.put(...seen.recordsOf(next))
    expect(await seen.steady.log.append(torn)).toMatchObject({ accepted: false, head: after(next) })
    await seen.agree([first, next], 4)
  })

  test('of a stream that does not live in the partition is void, and so is the commit it interrupts', async () => {
    await using seen = await witnesses(2)
    const { first, next } = await ready(seen)
    const { partition } = seen.at(first.stream, null)
    let astray = newStream()
    while (seen.steady.log.partitionOf(astray) === partition) astray = newStream()
    const lost = commitOn(astray, undefined, 1)
    const [one, two, three] = seen.recordsOf(next) as [Put, Put, Put]
    const [record] = seen.recordsOf(lost) as [Put]
    await seen.put({ ...record, partition }, one, { ...record, partition }, two, three)
    await seen.put(one, two, three)
    await seen.steady.log.barrier()
    expect(await seen.steady.log.head(astray)).toBeUndefined()
    // Where it does live, it is accepted.
    await seen.put(record)
    await seen.agree([first, next, lost], 5)
  })

  test('with bytes that are no event in the middle of a commit is void, and may send again', async () => {
    await using seen = await witnesses()
    const { stream, first, next } = await ready(seen)
    const [one, two, three] = seen.recordsOf(next) as [Put, Put, Put]
    await seen.put(seen.at(stream, NO_BYTES), one, seen.at(stream, GARBAGE), two, three)
    await seen.put(one, two, seen.at(stream, TOMBSTONE), three)
    await seen.put(one, seen.at(stream, FRAMING))
    await seen.put(one, two, three, seen.at(stream, TOMBSTONE))
    await seen.agree([first, next], 12)
  })
})
