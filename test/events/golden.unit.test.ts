import { expect, test } from 'vitest'
import { decodeEvent, type EventDraft, encodeCommit, eventTypes, fileSchemas, upcasters } from '../../src/events/index.ts'
import { goldenMeta, pack, readGolden, unpack } from '../support/golden-events.ts'

// Bytes as the first release wrote them. A log outlives every build: these must decode to the same events and hashes for ever, those
// of a retired type to its successor.
const golden = readGolden()

test('every event type has a recorded event', () => {
  const types = [...eventTypes, ...Object.keys(upcasters)]
  expect(golden.map((event) => event.type).sort(), 'run node test/support/golden-events.ts').toEqual(types.sort())
})

test.each(golden)('$type', ({ type, data, hash, bytes }) => {
  const event = decodeEvent(Buffer.from(bytes, 'hex'))
  const retired = upcasters[type]
  expect(event).toMatchObject({
    type: retired?.to ?? type,
    hash,
    version: 300,
    stream: goldenMeta.stream,
    previous: goldenMeta.previous,
    time: goldenMeta.time,
  })
  if (retired) return
  expect(pack(event.data)).toMatchObject(data as object)
  // Since then the type may have got optional fields, and with them another schema id.
  if (Buffer.from(bytes, 'hex').readUInt32BE(1) !== fileSchemas().id(type)) return
  const [record] = encodeCommit(goldenMeta, [{ type, data: unpack(data) } as EventDraft]).records
  expect(Buffer.from(record!.bytes).toString('hex')).toBe(bytes)
  expect(record!.hash).toBe(hash)
})
