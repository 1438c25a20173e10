import assert from 'node:assert/strict'
import type { Delivery, LogBackend } from '../../log/index.ts'
import type { LogCase } from './suite.ts'
import { assertRefused, jsonBytes, scanAll, take } from './writing.ts'

const keys = (records: readonly Delivery[]) => records.map((record) => record.key)
/** All of `expected` and nothing else, in that order within each partition. */
function assertInOrder(records: readonly Delivery[], expected: readonly string[]): void {
  assert.equal(records.length, expected.length)
  for (const partition of new Set(records.map(({ position }) => position.partition))) {
    const found = keys(records.filter(({ position }) => position.partition === partition))
    assert.deepEqual(
      found,
      expected.filter((key) => found.includes(key)),
    )
  }
}

/** Keys that live in one partition. */
const together = ({ events }: LogBackend, count: number): string[] =>
  Array.from({ length: 100 }, (_, i) => `key ${i}`)
    .filter((key) => events.partitionOf(key) === events.partitionOf('key 0'))
    .slice(0, count)

const record = (key: string) => ({ key, value: jsonBytes({ key }) })

export const topicCases: LogCase[] = [
  {
    name: 'a published record arrives as it was, in order, before and after it is asked for',
    async run({ open }) {
      const { topics } = await open()
      const before = Date.now()
      await topics.publish('requests', [
        { key: 'k', value: new Uint8Array([0, 255, 10, 13]), headers: { a: '1', 'ce-type': 'ü' } },
        record('b'),
      ])
      const arriving = take(topics.subscribe('requests', {}), 3)
      await topics.publish('requests', [record('c')])
      const arrived = await arriving
      assertInOrder(arrived, ['k', 'b', 'c'])
      const first = arrived.find(({ key }) => key === 'k')
      assert.deepEqual(
        [first?.topic, first?.key, [...(first?.value ?? [])], first?.headers],
        ['requests', 'k', [0, 255, 10, 13], { a: '1', 'ce-type': 'ü' }],
      )
      assert.equal(arrived.find(({ key }) => key === 'b')?.headers, undefined)
      assert.ok(first!.time >= before - 1_000 && first!.time <= Date.now() + 1_000)
    },
  },
  {
    name: 'topics do not mix',
    async run({ open }) {
      const log = await open()
      for (const topic of ['requests', 'results', 'receipts', 'checkpoints'] as const)
        await log.topics.publish(topic, [record(topic)])
      for (const topic of ['requests', 'results', 'receipts', 'checkpoints'] as const)
        assert.deepEqual(keys(await scanAll(log, topic)), [topic])
    },
  },
  {
    name: 'publish answers with the positions behind the records',
    async run({ open }) {
      const { topics } = await open()
      const end = await topics.publish('receipts', [record('a'), record('b')])
      const arriving = take(topics.subscribe('receipts', { from: end }), 1)
      await topics.publish('receipts', [record('c')])
      assert.deepEqual(keys(await arriving), ['c'])
    },
  },
  {
    name: 'scan gives what exists, from a position, up to a limit, and ends',
    async run({ open }) {
      const log = await open()
      await log.topics.publish(
        'checkpoints',
        Array.from({ length: 600 }, (_, i) => record(`${i}`)),
      )
      const all = await scanAll(log, 'checkpoints')
      assertInOrder(
        all,
        Array.from({ length: 600 }, (_, i) => `${i}`),
      )
      const from = new Map(all.slice(0, 590).map(({ position }) => [position.partition, position.offset + 1n]))
      const some = []
      for await (const page of log.topics.scan('checkpoints', { from, limit: 3 })) some.push(...page)
      assert.deepEqual(keys(some), keys(all.slice(590, 593)))
      assert.deepEqual(await scanAll(log, 'requests'), [])
    },
  },
  {
    name: 'scan does not run after what is published meanwhile',
    async run({ open }) {
      const { topics } = await open()
      const existing = Array.from({ length: 300 }, (_, i) => record(`${i}`))
      await topics.publish('receipts', existing)
      const seen: Delivery[] = []
      for await (const page of topics.scan('receipts')) {
        seen.push(...page)
        if (seen.length < 1_000) await topics.publish('receipts', [record('more')])
      }
      assertInOrder(
        seen,
        existing.map(({ key }) => key),
      )
    },
  },
  {
    name: 'a group goes on from its saved progress, another from the beginning',
    needs: 'transactional-edges',
    async run({ open }) {
      const log = await open()
      const { topics } = log
      const three = together(log, 3)
      await topics.publish(
        'results',
        three.map((key) => record(key)),
      )
      assert.deepEqual(await topics.progress('results', 'intake'), new Map())
      const [, b] = await take(topics.subscribe('results', { group: 'intake' }), 3)
      const next = new Map([[b!.position.partition, b!.position.offset + 1n]])
      await topics.transact({ publish: {}, progress: { topic: 'results', group: 'intake', next } })
      assert.deepEqual(await topics.progress('results', 'intake'), next)
      assert.deepEqual(keys(await take(topics.subscribe('results', { group: 'intake' }), 1)), [three[2]])
      assert.deepEqual(keys(await take(topics.subscribe('results', { group: 'other' }), 3)), three)
    },
  },
  {
    name: 'records and progress are written together',
    needs: 'transactional-edges',
    async run({ open }) {
      const log = await open()
      await log.topics.publish('results', [record('r')])
      const [result] = await take(log.topics.subscribe('results', { group: 'g' }), 1)
      const next = new Map([[result!.position.partition, result!.position.offset + 1n]])
      await log.topics.transact({
        publish: { receipts: [record('x')], checkpoints: [record('y')] },
        progress: { topic: 'results', group: 'g', next },
      })
      assert.deepEqual(keys(await scanAll(log, 'receipts')), ['x'])
      assert.deepEqual(keys(await scanAll(log, 'checkpoints')), ['y'])
      assert.deepEqual(await log.topics.progress('results', 'g'), next)
    },
  },
  {
    name: 'of two members that handled the same record, one writes and the other writes nothing',
    needs: 'transactional-edges',
    async run({ open }) {
      const log = await open()
      await log.topics.publish('results', [record('r')])
      const [result] = await take(log.topics.subscribe('results', { group: 'g' }), 1)
      const { partition, offset } = result!.position
      const progress = {
        topic: 'results',
        group: 'g',
        expect: new Map([[partition, offset]]),
        next: new Map([[partition, offset + 1n]]),
      } as const
      const both = ['one', 'two'].map((key) => log.topics.transact({ publish: { receipts: [record(key)] }, progress }))
      const [one, two] = await Promise.allSettled(both)
      assert.equal(one?.status, 'fulfilled')
      await assertRefused(two?.status === 'rejected' ? Promise.reject(two.reason) : Promise.resolve(), 'progress_moved')
      assert.deepEqual(keys(await scanAll(log, 'receipts')), ['one'])
    },
  },
  {
    name: 'subscribers end when their signal aborts',
    async run({ open }) {
      const { topics } = await open()
      const stop = new AbortController()
      const records = topics.subscribe('results', { signal: stop.signal })[Symbol.asyncIterator]()
      const first = records.next()
      await topics.publish('results', [record('a')])
      assert.deepEqual(keys((await first).value), ['a'])
      const second = records.next()
      stop.abort()
      assert.equal((await second).done, true)
    },
  },
]
