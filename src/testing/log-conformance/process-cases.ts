import assert from 'node:assert/strict'
import type { LogBackend, RecordedEvent } from '../../log/index.ts'
import { installRows, rowsOf } from './projector-cases.ts'
import type { LogCase } from './suite.ts'
import { Worker } from './workers.ts'
import { assertUnbroken, commitIds, grow, jsonBytes, newStream, readStream, take } from './writing.ts'

/** Every acknowledged commit stands in its stream once, at the version that was acknowledged. */
async function assertKept(
  { events: log }: LogBackend,
  streams: readonly string[],
  workers: readonly Worker[],
): Promise<RecordedEvent[]> {
  const all: RecordedEvent[] = []
  for (const stream of streams) {
    const events = await readStream(log, stream)
    assertUnbroken(events)
    all.push(...events)
    const ids = commitIds(events)
    for (const { commit, version } of workers.flatMap((worker) =>
      worker.acknowledged.filter((entry) => entry.stream === stream),
    )) {
      assert.equal(ids.filter((id) => id === commit).length, 1)
      assert.equal(events[version - 1]?.event?.commit.id, commit)
    }
  }
  return all
}

export const processCases: LogCase[] = [
  {
    name: 'two processes on the same and on different streams lose and double nothing, and a third follows them',
    needs: 'multi-process',
    async run({ open, place, current }) {
      const log = await open()
      const { events } = log
      const [shared, one, two] = [newStream(), newStream(), newStream()]
      const stop = new AbortController()
      const followed: RecordedEvent[] = []
      const following = (async () => {
        for await (const page of events.follow({ signal: stop.signal })) followed.push(...page)
      })()
      const workers = [new Worker(place, [shared, one], 60), new Worker(place, [shared, two], 60)]
      await Promise.all(workers.map((worker) => worker.finished()))
      await current(log)
      const all = await assertKept(log, [shared, one, two], workers)
      assert.equal(workers.flatMap((worker) => worker.acknowledged).length, 120)
      assert.equal(commitIds(all).length, 120)
      for (let i = 0; i < 100 && followed.length < all.length; i++) await new Promise((resolve) => setTimeout(resolve, 20))
      stop.abort()
      await following
      for (const stream of [shared, one, two]) assertUnbroken(followed.filter((event) => event.stream === stream))
      assert.equal(followed.length, all.length)
      await Promise.all(workers.map((worker) => worker.end()))
    },
  },
  {
    name: 'a process killed in the middle takes nothing acknowledged with it, and the others go on',
    needs: 'multi-process',
    async run({ open, place, current }) {
      const log = await open()
      const { events, owners } = log
      const [shared, one] = [newStream(), newStream()]
      const victim = new Worker(place, [shared, one], 1_000_000)
      const survivor = new Worker(place, [shared], 80)
      await victim.until((worker) => worker.acknowledged.length >= 30)
      assert.equal(await owners.isDead(victim.owner), false)
      await victim.kill()
      await survivor.finished()
      await current(log)
      await assertKept(log, [shared, one], [victim, survivor])
      await grow(events, shared, 1)
      await grow(events, one, 1)
      await assertKept(log, [shared, one], [victim, survivor])
      assert.equal(await owners.isDead(victim.owner), true)
      assert.equal(await owners.isProvenDead(victim.owner), true)
      assert.equal(await owners.isDead(survivor.owner), false)
      await survivor.end()
      assert.equal(await owners.isDead(survivor.owner), true)
      // A file forgets who closed it; where signs of life are records, the last one names a process that can be looked for.
      assert.equal(await owners.isProvenDead(survivor.owner), place.copies === true)
    },
  },
  {
    name: 'what another connection writes wakes followers and subscribers soon',
    needs: 'multi-process',
    async run({ open }) {
      const [here, there] = [await open(), await open()]
      const stream = newStream()
      const following = take(here.events.follow({}), 1)
      const subscribed = take(here.topics.subscribe('results', {}), 1)
      await new Promise((resolve) => setTimeout(resolve, 30))
      const begin = performance.now()
      await grow(there.events, stream, 1)
      await there.topics.publish('results', [{ key: 'k', value: jsonBytes(1) }])
      await Promise.all([following, subscribed])
      assert.ok(performance.now() - begin < 2_000)
    },
  },
  {
    name: 'heads known here do not outlive what another connection appends',
    needs: 'multi-process',
    async run({ open, current }) {
      const [here, there] = [await open(), await open()]
      const stream = newStream()
      for (let round = 0; round < 5; round++) {
        await grow(here.events, stream, 1)
        await current(there)
        await grow(there.events, stream, 2)
        await current(here)
        assert.deepEqual(await here.events.head(stream), await there.events.head(stream))
      }
      assertUnbroken(await readStream(here.events, stream))
    },
  },
  {
    name: 'a process without a projector leaves no hole in its rows',
    needs: 'multi-process',
    async run({ open, current }) {
      const [here, there] = [await open(), await open()]
      const stream = newStream()
      await installRows(here)
      await grow(here.events, stream, 1)
      await current(there)
      await grow(there.events, stream, 2)
      await here.events.barrier()
      assert.deepEqual(
        rowsOf(here, stream).map((row) => row.version),
        [1, 2, 3],
      )
      await grow(there.events, stream, 1)
      await current(here)
      await grow(here.events, stream, 1)
      await current(there)
      assert.deepEqual(
        rowsOf(here, stream).map((row) => row.version),
        [1, 2, 3, 4, 5],
      )
      await installRows(there)
      await grow(there.events, stream, 1)
      await current(here)
      assert.deepEqual(
        rowsOf(here, stream).map((row) => row.version),
        [1, 2, 3, 4, 5, 6],
      )
    },
  },
]
