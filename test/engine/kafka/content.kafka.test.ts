import { expect, test } from 'vitest'
import { z } from 'zod'
import { sha256Hex } from '../../../src/base/index.ts'
import { type ContentStore, defineTool, externalTool, openThreadlog } from '../../../src/index.ts'
import { stateHash, verifyRecords } from '../../../src/projections/index.ts'
import { readStream } from '../../../src/testing/log-conformance/writing.ts'
import { agentOf, calls, says } from '../../support/agents.ts'
import { describeKafka, kafkaPlace } from '../../support/kafka/index.ts'

const big = (letter: string) => letter.repeat(300_000)

describeKafka('large values on Kafka', () => {
  test('a store of the host takes the place of the topic, and a replica that comes later has its content from there', async () => {
    await using place = await kafkaPlace()
    const kept = new Map<string, Uint8Array>()
    let away = false
    const content: ContentStore = {
      put: async (bytes, media_type) => {
        const digest = sha256Hex(bytes)
        kept.set(digest, new Uint8Array(bytes))
        return { digest, size: bytes.byteLength, media_type }
      },
      get: async ({ digest }) => {
        if (away) throw new Error('away')
        return kept.get(digest)
      },
    }
    await using threads = await openThreadlog({ log: await place.open({ content }), application: 'test' })
    await threads.run(agentOf([says(big('r'))], []), { thread: 'thread_a', input: big('i') })
    const text = (await threads.thread('thread_a').state()).toText()
    expect(kept.size).toBeGreaterThan(2)
    // A store that is away is waited for.
    away = true
    let troubles = 0
    const opening = place.open({
      content,
      replica: place.replica('later'),
      onTrouble: () => void (++troubles === 2 && (away = false)),
    })
    await using others = await openThreadlog({ log: await opening, application: 'test' })
    expect(troubles).toBeGreaterThan(1)
    expect((await others.thread('thread_a').state()).toText()).toBe(text)
    expect(others.backend.tables.all('SELECT partition FROM content_read')).toEqual([])
  })

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
