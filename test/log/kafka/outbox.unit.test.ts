import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/index.ts'
import type { RecordedEvent } from '../../../src/log/index.ts'
import { Outbox } from '../../../src/log/kafka/outbox.ts'
import { openReplica } from '../../../src/log/kafka/replica.ts'
import { type Connection, EventStore, Heads } from '../../../src/log/store/index.ts'
import { commitOn, newStream } from '../../../src/testing/log-conformance/writing.ts'

const REPLICA = { cluster: 'c', prefix: 'p', partitions: 2 }
const open = (): Promise<Connection> => openReplica(join(folder, 'replica.db'), REPLICA, systemClock)
let folder: string
let connection: Connection
let outbox: Outbox

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'threadlog-'))
  connection = await open()
  outbox = new Outbox(connection, new EventStore(connection, new Heads(connection)))
  outbox.install([
    {
      ...{ name: 'test', version: 1, schema: '', drop: '', publishes: true },
      apply(tx, events) {
        for (const { position } of events) tx.publish('requests', { key: String(position.offset), value: new Uint8Array() })
      },
    },
  ])
  outbox.assign(new Set([0]))
})
afterEach(() => {
  connection.close()
  rmSync(folder, { recursive: true, force: true })
})

/** A commit of `size` events that stands at `offset`. */
function eventsAt(offset: bigint, size: number, partition = 0): RecordedEvent[] {
  const { stream, records } = commitOn(newStream(), undefined, size)
  return records.map((record, i) => ({ ...record, stream, position: { partition, offset: offset + BigInt(i) } }))
}

function store(...commits: RecordedEvent[][]): void {
  outbox.begin(connection.dataVersion())
  for (const events of commits) outbox.accepted(events)
  outbox.committed()
}

const taken = (next: bigint) => {
  const found = outbox.take(0, next)
  return found && { keys: (found.publish.requests ?? []).map(({ key }) => key), next: found.next }
}

test('what was stored since a place is taken from there, again until it is done, and never what is older', () => {
  store(eventsAt(10n, 2), eventsAt(15n, 1))
  expect(taken(9n)).toBeUndefined()
  expect(taken(10n)).toEqual({ keys: ['10', '11', '15'], next: 16n })
  expect(taken(12n)).toEqual({ keys: ['15'], next: 16n })
  outbox.done(0, 12n)
  expect(taken(10n)).toBeUndefined()
  outbox.done(0, 16n)
  expect(taken(16n)).toEqual({ keys: [], next: 16n })
  store(eventsAt(20n, 1))
  expect(taken(16n)).toEqual({ keys: ['20'], next: 21n })
})

test('a transaction that is rolled back leaves nothing', () => {
  store(eventsAt(10n, 1))
  outbox.begin(connection.dataVersion())
  outbox.accepted(eventsAt(11n, 1))
  outbox.rolledBack()
  store(eventsAt(12n, 1))
  expect(taken(10n)).toEqual({ keys: ['10', '12'], next: 13n })
})

test('after another process has stored events nothing is known, at once and from the next transaction on', async () => {
  store(eventsAt(10n, 1))
  expect(taken(10n)).toBeDefined()
  const other = await open()
  other.run("INSERT INTO meta(name, value) VALUES ('other', 1)")
  other.close()
  await new Promise((resolve) => setImmediate(resolve))
  expect(taken(10n)).toBeUndefined()
  store(eventsAt(30n, 1))
  expect(taken(10n)).toBeUndefined()
  expect(taken(30n)).toEqual({ keys: ['30'], next: 31n })
})

test('a partition that was lost begins anew, and one that is not ours is passed over', () => {
  store(eventsAt(10n, 1), eventsAt(5n, 1, 1))
  expect(outbox.take(1, 5n)).toBeUndefined()
  outbox.assign(new Set())
  outbox.assign(new Set([0]))
  expect(taken(10n)).toBeUndefined()
})

test('a publisher that does not keep up reads what has been dropped from the table', () => {
  for (let i = 0n; i < 1_001n; i++) store(eventsAt(i, 1))
  expect(taken(0n)).toBeUndefined()
  expect(taken(501n)).toMatchObject({ next: 601n })
})
