import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, externalTool, openThreadlog } from '../../../src/index.ts'
import { stateHash, verifyRecords } from '../../../src/projections/index.ts'
import { readStream } from '../../../src/testing/log-conformance/writing.ts'
import { agentOf, calls, says } from '../../support/agents.ts'
import { describeKafka, kafkaPlace } from '../../support/kafka/index.ts'

const big = (letter: string) => letter.repeat(300_000)

describeKafka('large values on Kafka', () => {
  test('a thread full of them is the same in a replica that comes later, and goes on there', async () => {
    await using place = await kafkaPlace()
    const tools = [
      defineTool({ name: 'load', description: 'Loads', input: z.object({}), execute: () => ({ text: big('t') }) }),
      externalTool({ name: 'ask', description: 'Asks', provider: 'desk', input: z.object({ q: z.string() }) }),
    ]
    const agent = agentOf([calls(['c1', 'load', {}], ['c2', 'ask', { q: big('q') }]), says(big('r'))], tools)
    const backend = await place.open()
    await using threads = await openThreadlog({ log: backend, application: 'test', agents: [agent] })
    await threads.serve({ sweepMs: 100 })
    const run = await threads.start({ agent, thread: 'thread_a', input: big('i') })
    for await (const { id, arguments: given } of threads.waits({ thread: 'thread_a', follow: true })) {
      expect(given).toEqual({ q: big('q') })
      const value = Buffer.from(JSON.stringify({ provider: 'desk', continuation_id: id, result: big('w') }))
      await backend.topics.publish('results', [{ key: id, value }])
      break
    }
    expect(await run.result()).toMatchObject({ status: 'completed', output: big('r') })

    const { stream } = threads.thread('thread_a')
    const text = (await threads.thread('thread_a').state()).toText()
    for (const letter of ['i', 'q', 't', 'w', 'r']) expect(text).toContain(big(letter))
    const later = await place.open({ replica: place.replica('later') })
    await using others = await openThreadlog({ log: later, application: 'test' })
    expect((await others.thread('thread_a').state()).toText()).toBe(text)
    expect(stateHash(await others.store.load(stream))).toBe(stateHash(await threads.store.load(stream)))
    const records = await readStream(later.events, stream)
    for (const { bytes } of records) expect(bytes.byteLength).toBeLessThan(66_000)
    expect(verifyRecords(stream, records).damage).toBeUndefined()
    expect(await others.run(agentOf([says('on')], tools), { thread: 'thread_a', input: 'more' })).toMatchObject({ output: 'on' })
  })
})
