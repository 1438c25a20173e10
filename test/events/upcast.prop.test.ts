import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Payload, sha256Hex } from '../../src/base/index.ts'
import { catalogue, decodeEnvelope, decodeEvent, type EventDraft, type EventType, upcasters } from '../../src/events/index.ts'
import { encodeState, foldStream } from '../../src/projections/index.ts'
import { metas, plain, valuesOf } from '../support/event-arbitraries.ts'
import { encodeThread, legalThreads, recordsOf } from '../support/legal-threads.ts'
import { olderBuild, rewritten } from '../support/older-build.ts'

const retired = Object.keys(upcasters)

test.each(retired)('whatever was written as %s is read as its successor, under the hash of what is stored', (type) => {
  const { from, to } = upcasters[type]!
  const property = fc.property(metas(), valuesOf(from), (meta, data) => {
    const { bytes, hash } = olderBuild.encodeCommit(meta, [{ type, data } as never as EventDraft]).records[0]!
    expect(decodeEnvelope(bytes)).toMatchObject({ type, hash })
    const event = decodeEvent(bytes)
    expect(event).toMatchObject({ type: to, hash: sha256Hex(bytes.subarray(5)), version: meta.base + 1 })
    const { error } = catalogue[to as EventType].safeParse(event.data)
    expect(error).toBeUndefined()
    expect(plain(decodeEvent(Uint8Array.from(bytes)))).toStrictEqual(plain(event))
  })
  fc.assert(property, { numRuns: 200 })
})

test('details that say what they were meant to say come through', () => {
  const property = fc.property(
    metas(),
    fc.stringMatching(/^[A-Za-z_][\w.]{0,63}$/),
    fc.option(fc.integer({ min: 100, max: 599 })),
    (meta, error_type, status) => {
      const details = Payload.of(status === null ? { error_type } : { error_type, status })
      const draft = { type: 'model.failed/1', data: { step: 1, code: 'x', retryable: true, details } }
      const { bytes } = olderBuild.encodeCommit(meta, [draft as never as EventDraft]).records[0]!
      expect(decodeEvent(bytes).data).toStrictEqual({
        ...{ step: 1, code: 'x', retryable: true },
        ...{ error_type, status, retry_after_ms: null },
      })
    },
  )
  fc.assert(property, { numRuns: 100 })
})

test('a thread written before folds to the same state after every commit, hashes aside', () => {
  let told = 0
  const property = fc.property(legalThreads(), (thread) => {
    const now = recordsOf(encodeThread(thread))
    const before = rewritten(now.map((record) => record.event!))
    const stored = before.flatMap((commit) => commit.records)
    const read = recordsOf(before).map((record) => ({ ...record, event: decodeEvent(record.bytes) }))
    told += stored.filter(({ event }) => (event.type as string) === 'model.failed/1').length
    expect(read.map((record) => record.event.hash)).toEqual(stored.map((record) => record.hash))
    for (let end = 1; end <= now.length; end++) {
      const [a, b] = [foldStream(now.slice(0, end)), foldStream(read.slice(0, end))]
      expect(b.quarantine).toBeUndefined()
      expect(encodeState({ ...b.state, hash: '' })).toEqual(encodeState({ ...a.state, hash: '' }))
    }
  })
  fc.assert(property, { numRuns: 40 })
  expect(told).toBeGreaterThan(0)
})
