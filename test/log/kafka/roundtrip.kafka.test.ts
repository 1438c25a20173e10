import { expect, test } from 'vitest'
import type { RecordedEvent } from '../../../src/log/index.ts'
import { after, commitOn, newStream, readStream } from '../../../src/testing/log-conformance/writing.ts'
import { describeKafka, kafkaPlace } from '../../support/kafka/index.ts'

const hashes = (events: readonly RecordedEvent[]): string[] =>
  events.map(({ version, hash }) => `${version} ${Buffer.from(hash).toString('hex')}`)

describeKafka('events on Kafka', () => {
  test('what is appended is read back, by the writer and by a reader that comes later', async () => {
    await using place = await kafkaPlace()
    const { events: log } = await place.open({ replica: place.replica('writer') })
    const stream = newStream()
    const first = commitOn(stream, undefined, 3)
    const second = commitOn(stream, after(first), 2)
    for (const commit of [first, second]) expect(await log.append(commit)).toMatchObject({ accepted: true })

    const read = await readStream(log, stream)
    expect(read.map(({ version }) => version)).toEqual([1, 2, 3, 4, 5])
    expect(read.map(({ bytes }) => bytes)).toEqual([...first.records, ...second.records].map(({ bytes }) => bytes))
    const { events: other } = await place.open({ replica: place.replica('reader') })
    expect(other.id).toBe(log.id)
    expect(hashes(await readStream(other, stream))).toEqual(hashes(read))
  })

  test('of two commits on one base the log takes one, and both sides say which', async () => {
    await using place = await kafkaPlace()
    const [{ events: one }, { events: two }] = [await place.open(), await place.open()]
    const stream = newStream()
    const commits = [commitOn(stream, undefined, 1, 'one'), commitOn(stream, undefined, 1, 'two')]
    const fates = await Promise.all([one.append(commits[0]!), two.append(commits[1]!)])

    const won = fates.findIndex(({ accepted }) => accepted)
    expect(fates.filter(({ accepted }) => accepted)).toHaveLength(1)
    expect(fates[1 - won]!.head).toMatchObject(after(commits[won]!))
    for (const log of [one, two]) {
      await log.barrier()
      expect(await log.head(stream)).toMatchObject(after(commits[won]!))
    }
  })

  test('a commit on a stale base is refused and changes nothing', async () => {
    await using place = await kafkaPlace()
    const { events: log } = await place.open()
    const stream = newStream()
    const first = commitOn(stream, undefined)
    const second = commitOn(stream, after(first))
    for (const commit of [first, second]) await log.append(commit)

    expect(await log.append(commitOn(stream, after(first), 2))).toMatchObject({ accepted: false, head: after(second) })
    expect(await readStream(log, stream)).toHaveLength(2)
  })
})
