import { beforeAll, describe, expect, test } from 'vitest'
import type { RecordedEvent } from '../../src/log/index.ts'
import { stateHash, verifyRecords } from '../../src/projections/index.ts'
import { type BuiltThread, memoryStore, suspendedThread } from '../support/threads.ts'

let thread: BuiltThread
let records: RecordedEvent[] = []
beforeAll(async () => {
  const store = await memoryStore()
  thread = await suspendedThread(store, [{ kind: 'approval' }, { kind: 'external' }])
  for await (const batch of store.backend.events.read(thread.stream)) records = [...records, ...batch]
  await store.backend.close()
})

/** The records with one of them as somebody changed it. */
const changed = (version: number, change: (record: RecordedEvent) => RecordedEvent | undefined): RecordedEvent[] =>
  records.flatMap((record) => (record.version === version ? (change(record) ?? []) : record))

/** One bit of the stored bytes turned, `at` counted from the end when negative. What a log would read back is not looked at. */
const flipped =
  (at: number) =>
  (record: RecordedEvent): RecordedEvent => {
    const bytes = Uint8Array.from(record.bytes)
    bytes[at < 0 ? bytes.length + at : at]! ^= 1
    return { ...record, bytes }
  }

const faultOf = (found: readonly RecordedEvent[]) => {
  const { damage } = verifyRecords(thread.stream, found)
  return damage && { code: damage.code, version: damage.version, offset: damage.position?.offset }
}

describe('records as they were accepted', () => {
  test('have a head and a state, and no fault', () => {
    const { events, head, damage, folded } = verifyRecords(thread.stream, records)
    expect({ events, head, damage }).toEqual({
      events: records.length,
      head: { version: thread.state.version, hash: thread.state.hash },
      damage: undefined,
    })
    expect(stateHash(folded.state)).toBe(stateHash(thread.state))
  })

  test('may be none', () => {
    expect(verifyRecords(thread.stream, [])).toMatchObject({ events: 0, damage: undefined })
  })
})

describe('damage', () => {
  const offset = (version: number) => records[version - 1]?.position.offset

  test('a changed body is the record its successor does not name', () => {
    for (let version = 1; version < records.length; version++)
      expect(faultOf(changed(version, flipped(-1)))).toEqual({ code: 'hash-mismatch', version, offset: offset(version) })
  })

  test('a changed link is told from a changed body before it', () => {
    const version = 4
    const previous = Buffer.from(records[version - 2]?.hash ?? '', 'hex')
    const bytes = Buffer.from(records[version - 1]?.bytes ?? [])
    const at = bytes.indexOf(previous)
    expect(at).toBeGreaterThan(0)
    expect(faultOf(changed(version, flipped(at)))).toEqual({ code: 'hash-mismatch', version, offset: offset(version) })
  })

  test('a record that is gone is missing; what stands in its place is named', () => {
    expect(faultOf(changed(3, () => undefined))).toEqual({ code: 'missing', version: 3, offset: offset(4) })
    expect(faultOf(changed(1, () => undefined))).toEqual({ code: 'missing', version: 1, offset: offset(2) })
  })

  test('the end of a commit that is gone leaves it incomplete', () => {
    expect(faultOf(records.slice(0, -1))).toEqual({ code: 'commit-incomplete', version: records.length, offset: undefined })
  })

  test('bytes that are no event, at the end of the chain', () => {
    const last = records.length
    const garbage = (record: RecordedEvent) => ({ ...record, bytes: Uint8Array.of(1, 2, 3), event: undefined })
    expect(faultOf(changed(last, garbage))).toEqual({ code: 'undecodable', version: last, offset: offset(last) })
  })

  test('an event of another thread', () => {
    expect(verifyRecords('0'.repeat(64), records).damage).toMatchObject({ code: 'misplaced', version: 1 })
  })

  test('a first event that follows another one', () => {
    const rest = records.slice(3).map((record, i) => ({ ...record, version: i + 1 }))
    expect(faultOf(rest)).toMatchObject({ code: 'hash-mismatch', version: 1 })
  })
})
