import assert from 'node:assert/strict'
import type { RecordedEvent } from '../../log/index.ts'
import type { LogCase } from './suite.ts'
import { assertUnbroken, commitOn, grow, newStream, readStream, take } from './writing.ts'

const places = (events: readonly RecordedEvent[]) => events.map((event) => `${event.stream} ${event.version}`)

export const readCases: LogCase[] = [
  {
    name: 'a stream is read after a version, and an unknown one is empty',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      await grow(events, stream, 3, 2)
      assert.deepEqual(
        (await readStream(events, stream, 4)).map((event) => event.version),
        [5, 6],
      )
      assert.deepEqual(await readStream(events, stream, 6), [])
      assert.deepEqual(await readStream(events, stream, 60), [])
      assert.deepEqual(await readStream(events, newStream()), [])
    },
  },
  {
    name: 'a long stream is read whole and in order',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      await grow(events, stream, 3, 500)
      const stored = await readStream(events, stream)
      assert.equal(stored.length, 1_500)
      assertUnbroken(stored)
    },
  },
  {
    name: 'follow gives what was and what comes, in the order of the log',
    async run({ open }) {
      const { events } = await open()
      const [a, b] = [newStream(), newStream()]
      const from = await events.barrier()
      await grow(events, a, 2)
      await grow(events, b, 1, 2)
      const following = take(events.follow({ from }), 6)
      await new Promise((resolve) => setTimeout(resolve, 20))
      await grow(events, a, 1)
      await grow(events, b, 1)
      const seen = await following
      for (const stream of [a, b])
        assert.deepEqual(places(seen.filter((event) => event.stream === stream)), places(await readStream(events, stream)))
      for (const partition of new Set(seen.map((event) => event.position.partition))) {
        const offsets = seen.filter((event) => event.position.partition === partition).map((event) => event.position.offset)
        assert.deepEqual(
          offsets,
          [...offsets].sort((x, y) => (x < y ? -1 : 1)),
        )
      }
    },
  },
  {
    name: 'follow without a position begins with what comes after the call',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      await grow(events, stream, 2)
      await events.barrier()
      const following = events.follow({})
      await grow(events, stream, 1)
      assert.deepEqual(
        (await take(following, 1)).map((event) => event.version),
        [3],
      )
    },
  },
  {
    name: 'any position seen is a position to go on from, and gives the rest once',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      const from = await events.barrier()
      await grow(events, stream, 4, 3)
      const all = await take(events.follow({ from }), 12)
      for (const [i, event] of all.slice(0, -1).entries()) {
        const next = new Map(from).set(event.position.partition, event.position.offset + 1n)
        const rest = await take(events.follow({ from: next }), all.length - i - 1)
        assert.deepEqual(places(rest), places(all.slice(i + 1)))
      }
    },
  },
  {
    name: 'followers end when their signal aborts, waiting or not, and do not disturb each other',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      const stop = new AbortController()
      const aborted = take(events.follow({ signal: stop.signal }), 99)
      const other = take(events.follow({}), 2)
      await grow(events, stream, 1)
      await new Promise((resolve) => setTimeout(resolve, 20))
      stop.abort()
      assert.equal((await aborted).length, 1)
      await grow(events, stream, 1)
      assert.equal((await other).length, 2)
      assert.deepEqual(await take(events.follow({ signal: AbortSignal.abort() }), 1), [])
    },
  },
  {
    name: 'partitions that were not asked for are not followed',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      const stop = new AbortController()
      const others = Array.from({ length: events.partitions }, (_, i) => i).filter(
        (partition) => partition !== events.partitionOf(stream),
      )
      const following = take(events.follow({ partitions: others, signal: stop.signal }), 1)
      await grow(events, stream, 1)
      await new Promise((resolve) => setTimeout(resolve, 30))
      stop.abort()
      assert.deepEqual(await following, [])
    },
  },
  {
    name: 'behind the barrier everything acknowledged is read, and nothing more',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      await grow(events, stream, 2)
      const end = await events.barrier()
      await events.append(commitOn(stream, await events.head(stream)))
      const [next] = await take(events.follow({ from: end }), 1)
      assert.equal(next?.version, 3)
    },
  },
]
