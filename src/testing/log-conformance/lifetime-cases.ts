import assert from 'node:assert/strict'
import { installRows, requestsOf, rowsOf } from './projector-cases.ts'
import type { LogCase } from './suite.ts'
import { assertRefused, assertUnbroken, commitOn, grow, jsonBytes, newStream, readStream, scanAll, take } from './writing.ts'

export const lifetimeCases: LogCase[] = [
  {
    name: 'close decides what was sent, ends every iterator, and may be called again',
    async run({ open }) {
      const log = await open()
      const stream = newStream()
      const following = take(log.events.follow({}), 99)
      const subscribed = take(log.topics.subscribe('results', {}), 99)
      await new Promise((resolve) => setTimeout(resolve, 20))
      const pending = log.events.append(commitOn(stream, undefined))
      await Promise.all([log.close(), log.close()])
      assert.equal((await pending).accepted, true)
      await Promise.all([following, subscribed])
      await log[Symbol.asyncDispose]()
    },
  },
  {
    name: 'a closed log refuses',
    async run({ open }) {
      const log = await open()
      const stream = newStream()
      await grow(log.events, stream, 1)
      await log.close()
      await assertRefused(log.events.append(commitOn(stream, undefined)), 'log_closed')
      await assertRefused(log.events.head(stream), 'log_closed')
      await assertRefused(readStream(log.events, stream), 'log_closed')
      await assertRefused(log.topics.publish('results', []), 'log_closed')
      await assertRefused(
        log.cache(() => {}),
        'log_closed',
      )
      assert.throws(() => log.events.follow({}), { code: 'log_closed' })
      assert.throws(() => log.tables.all('SELECT 1'), { code: 'log_closed' })
    },
  },
  {
    name: 'this process is alive in its own eyes, and an owner nobody knows is dead',
    async run({ open }) {
      const { owners } = await open()
      assert.equal(await owners.isDead(owners.self), false)
      assert.equal(await owners.isProvenDead(owners.self), false)
      // A log that has just been opened may wait for a sign of life before it says so.
      while (!(await owners.isDead('nobody'))) await new Promise((resolve) => setTimeout(resolve, 50))
    },
  },
  {
    name: 'events, topics, progress and identity are there after the log is opened again',
    needs: 'durable',
    async run({ open }) {
      const first = await open()
      const stream = newStream()
      const commit = commitOn(stream, undefined, 2)
      const appended = await first.events.append(commit)
      await grow(first.events, stream, 3)
      const end = await first.topics.publish('results', [{ key: 'a', value: jsonBytes(1) }])
      await first.topics.transact({ publish: {}, progress: { topic: 'results', group: 'g', next: end } })
      const [before, barrier] = [await readStream(first.events, stream), await first.events.barrier()]
      await first.close()

      const again = await open()
      assert.equal(again.events.id, first.events.id)
      assert.equal(again.events.partitions, first.events.partitions)
      assert.deepEqual(await readStream(again.events, stream), before)
      assert.deepEqual(await again.events.barrier(), barrier)
      assert.deepEqual(await again.topics.progress('results', 'g'), end)
      assert.equal((await scanAll(again, 'results')).length, 1)
      assert.deepEqual(await again.events.append(commit), appended)
      await grow(again.events, stream, 1)
      assertUnbroken(await readStream(again.events, stream))
    },
  },
  {
    name: 'projection tables go on after the log is opened again, and what came between is caught up',
    needs: 'durable',
    async run({ open }) {
      const stream = newStream()
      const first = await open()
      await installRows(first)
      await grow(first.events, stream, 2)
      assert.equal((await requestsOf(first, 2)).length, 2)
      await first.close()
      const without = await open()
      await grow(without.events, stream, 3)
      await without.close()
      const again = await open()
      await installRows(again)
      await grow(again.events, stream, 1)
      assert.deepEqual(
        rowsOf(again, stream).map((row) => row.version),
        [1, 2, 3, 4, 5, 6],
      )
      assert.deepEqual(
        (await requestsOf(again, 6)).map((record) => record.key),
        [1, 2, 3, 4, 5, 6].map((version) => `${stream} ${version}`),
      )
    },
  },
]
