import { expect, test } from 'vitest'
import { after, commitOn, newStream } from '../../../src/testing/log-conformance/writing.ts'
import { describeOwnKafka, kafkaPlace, ownBroker } from './index.ts'

describeOwnKafka('a broker of a test', () => {
  test('keeps what was acknowledged when it is killed, and answers nothing while it is frozen', async () => {
    await using broker = await ownBroker()
    await using place = await kafkaPlace({ brokers: broker.brokers })
    const { events: log } = await place.open()
    const stream = newStream()
    const first = commitOn(stream, undefined)
    await log.append(first)

    await broker.restart()
    expect(await log.head(stream)).toMatchObject(after(first))
    const second = commitOn(stream, after(first))
    expect(await log.append(second)).toMatchObject({ accepted: true })

    broker.freeze()
    let decided = false
    const third = log.append(commitOn(stream, after(second))).then((fate) => {
      decided = true
      return fate
    })
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(decided).toBe(false)
    broker.thaw()
    expect(await third).toMatchObject({ accepted: true })

    await broker.restart('stop')
    const { events: other } = await place.open()
    expect(await other.head(stream)).toMatchObject({ version: 3 })
  })
})
