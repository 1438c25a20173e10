import assert from 'node:assert/strict'
import { COMMIT_LIMITS } from '../../events/index.ts'
import type { LogCase } from './suite.ts'
import { after, assertRefused, assertUnbroken, commitIds, commitOn, grow, newStream, readStream } from './writing.ts'

export const appendCases: LogCase[] = [
  {
    name: 'a commit on an empty stream is accepted, and head and events are what was sent',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      assert.equal(await events.head(stream), undefined)
      const commit = commitOn(stream, undefined, 3)
      const { accepted, head } = await events.append(commit)
      assert.equal(accepted, true)
      assert.deepEqual({ version: head?.version, hash: head?.hash }, after(commit))
      assert.deepEqual(await events.head(stream), head)
      const stored = await readStream(events, stream)
      assert.deepEqual(
        stored.map((event) => [event.version, event.hash, event.event, event.defect]),
        commit.records.map((record) => [record.version, record.hash, record.event, undefined]),
      )
      assert.deepEqual(
        stored.map((event) => Buffer.from(event.bytes)),
        commit.records.map((record) => Buffer.from(record.bytes)),
      )
      assert.deepEqual(stored[2]!.position, head?.position)
      assert.equal(stored[0]!.position.partition, events.partitionOf(stream))
    },
  },
  {
    name: 'a stale base is refused with the head of the stream, and nothing of it is read',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      const one = await grow(events, stream, 1)
      const two = await grow(events, stream, 1)
      const { accepted, head } = await events.append(commitOn(stream, one, 2))
      assert.equal(accepted, false)
      assert.deepEqual({ version: head?.version, hash: head?.hash }, two)
      assert.equal((await readStream(events, stream)).length, 2)
    },
  },
  {
    name: 'a base the stream has not reached is refused',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      const head = await grow(events, stream, 1)
      const ahead = await events.append(commitOn(stream, { ...head, version: 2 }))
      assert.equal(ahead.accepted, false)
      assert.equal(ahead.head?.version, 1)
      assert.equal((await events.append(commitOn(newStream(), head))).accepted, false)
      assertUnbroken(await readStream(events, stream))
    },
  },
  {
    name: 'the right base on another event is refused',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      const head = await grow(events, stream, 2)
      const other = commitOn(stream, { version: 2, hash: 'f'.repeat(64) })
      assert.equal((await events.append(other)).accepted, false)
      assert.equal((await events.append(commitOn(stream, head))).accepted, true)
    },
  },
  {
    name: 'of writers on one base exactly one wins',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      let head: { version: number; hash: string } | undefined
      for (let round = 0; round < 5; round++) {
        const commits = Array.from({ length: 8 }, (_, i) => commitOn(stream, head, 1 + (i % 3)))
        const outcomes = await Promise.all(commits.map((commit) => events.append(commit)))
        const winners = commits.filter((_, i) => outcomes[i]?.accepted)
        assert.equal(winners.length, 1)
        head = after(winners[0]!)
        for (const outcome of outcomes) assert.equal(outcome.head?.version, head.version)
      }
      assertUnbroken(await readStream(events, stream))
    },
  },
  {
    name: 'two commits of one stream sent at once are decided in order',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      const first = commitOn(stream, undefined, 2)
      const second = commitOn(stream, after(first), 2)
      const late = commitOn(stream, after(first), 1)
      const outcomes = await Promise.all([first, second, late].map((commit) => events.append(commit)))
      assert.deepEqual(
        outcomes.map((outcome) => [outcome.accepted, outcome.head?.version]),
        [
          [true, 2],
          [true, 4],
          [false, 4],
        ],
      )
      assertUnbroken(await readStream(events, stream))
    },
  },
  {
    name: 'the same commit again is accepted again, with the same answer, and stored once',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      const commit = commitOn(stream, undefined, 2)
      const [first, twin] = await Promise.all([events.append(commit), events.append(commit)])
      assert.equal(first.accepted, true)
      assert.deepEqual(twin, first)
      assert.deepEqual(await events.append(commit), first)
      await grow(events, stream, 3)
      assert.deepEqual(await events.append(commit), first)
      assert.equal((await readStream(events, stream)).length, 5)
    },
  },
  {
    name: 'a refused commit stays refused',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      await grow(events, stream, 1)
      const refused = commitOn(stream, undefined)
      for (let i = 0; i < 3; i++) {
        assert.equal((await events.append(refused)).accepted, false)
        await grow(events, stream, 1)
      }
    },
  },
  {
    name: 'what no log would accept is refused before it is sent',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      const commit = commitOn(stream, undefined, 2)
      const [one, two] = commit.records as [(typeof commit.records)[0], (typeof commit.records)[0]]
      await assertRefused(events.append({ ...commit, records: [] }), 'commit_empty')
      await assertRefused(
        events.append({ ...commit, records: Array.from({ length: COMMIT_LIMITS.records + 1 }, () => one) }),
        'commit_too_large',
      )
      const large = { ...one, bytes: new Uint8Array(COMMIT_LIMITS.bytes + 1) }
      await assertRefused(events.append({ ...commit, records: [large] }), 'commit_too_large')
      await assertRefused(events.append({ ...commit, records: [two, one] }), 'commit_malformed')
      await assertRefused(events.append({ ...commit, records: [one] }), 'commit_malformed')
      await assertRefused(events.append({ ...commit, stream: newStream() }), 'commit_malformed')
      assert.equal(await events.head(stream), undefined)
      assert.equal((await events.append(commit)).accepted, true)
    },
  },
  {
    name: 'the largest commit is accepted whole',
    async run({ open }) {
      const { events } = await open()
      const stream = newStream()
      assert.equal((await events.append(commitOn(stream, undefined, COMMIT_LIMITS.records))).accepted, true)
      assertUnbroken(await readStream(events, stream))
    },
  },
  {
    name: 'many writers on few streams leave no gap, no loss and no double',
    async run({ open }) {
      const { events } = await open()
      const streams = Array.from({ length: 4 }, newStream)
      const acknowledged = new Map(streams.map((stream) => [stream, new Set<string>()]))
      const writer = async (seed: number) => {
        for (let i = 0; i < 25; i++) {
          const stream = streams[(seed * 7 + i * 3) % streams.length]!
          const commit = commitOn(stream, await events.head(stream), 1 + ((seed + i) % 3))
          if ((await events.append(commit)).accepted) acknowledged.get(stream)!.add(commit.id)
        }
      }
      await Promise.all(Array.from({ length: 8 }, (_, seed) => writer(seed)))
      for (const stream of streams) {
        const stored = await readStream(events, stream)
        assertUnbroken(stored)
        assert.deepEqual(new Set(commitIds(stored)), acknowledged.get(stream))
      }
    },
  },
  {
    name: 'records of a refused commit stay in the log, are counted, and are never read',
    needs: 'keeps-void',
    async run({ open, place }) {
      const log = await open()
      const { events } = log
      const stream = newStream()
      await grow(events, stream, 1)
      const partition = events.partitionOf(stream)
      const before = (await events.barrier(partition)).get(partition)!
      const refused = commitOn(stream, undefined, 2)
      await place.send!(refused)
      assert.ok((await events.barrier(partition)).get(partition)! > before)
      assert.deepEqual(log.voids!().get(partition), 2)
      assert.equal((await readStream(events, stream)).length, 1)
      assert.equal((await events.append(refused)).accepted, false)
      await grow(events, stream, 1)
      assertUnbroken(await readStream(events, stream))
    },
  },
]
