import { describe, expect, test } from 'vitest'
import { isThreadlogError, Payload, type ThreadlogError } from '../../src/base/index.ts'
import {
  COMMIT_LIMITS,
  decodeEnvelope,
  decodeEvent,
  type EventDraft,
  encodeCommit,
  eventTypes,
  ZERO_HASH,
} from '../../src/events/index.ts'
import { goldenMeta as meta, sample } from '../support/golden-events.ts'
import { ends } from '../support/hang.ts'

const armed: EventDraft = { type: 'continuation.armed/1', data: { continuation_id: 'c-1', revision: 1 } }
const written = (value: Payload): EventDraft => ({
  type: 'capability.written/1',
  data: { capability_id: 'notes', version: '1', data: value },
})
const only = (draft: EventDraft, change: Partial<typeof meta> = {}) => encodeCommit({ ...meta, ...change }, [draft]).records[0]!

function refusal(act: () => unknown): ThreadlogError {
  try {
    act()
  } catch (error) {
    if (isThreadlogError(error)) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('wire form', () => {
  test('0x00, schema id, stream bytes first; ids are fixed bytes', () => {
    const bytes = Buffer.from(only(armed).bytes)
    expect(bytes.subarray(0, 5).toString('hex')).toBe('0000000013')
    expect(bytes.subarray(5, 37).toString('hex')).toBe(meta.stream)
    expect(bytes.subarray(38, 38 + 20).toString()).toBe('continuation.armed/1')
    expect(bytes.includes(Buffer.from(meta.id, 'hex'))).toBe(true)
    expect(bytes.subarray(-5).toString('hex')).toBe('06632d3102')
  })

  test('a decoded event is made of plain objects, so a literal equals it strictly', () => {
    const event = decodeEvent(only(armed).bytes)
    expect(event).toStrictEqual({
      ...{ stream: meta.stream, type: 'continuation.armed/1', version: 300, previous: meta.previous, time: meta.time },
      ...{ commit: { id: meta.id, base: 299, index: 0, size: 1 }, actor: meta.actor, causation: meta.causation },
      ...{ run_id: meta.run_id, attempt: null, sealing: 'none', data: armed.data, hash: only(armed).hash },
    })
    expect(Object.getPrototypeOf(event.commit)).toBe(Object.prototype)
  })

  test('each record has its own memory of exactly its size', () => {
    for (const { bytes } of encodeCommit(meta, [armed, sample('run.suspended/1')]).records)
      expect(bytes.buffer.byteLength).toBe(bytes.byteLength)
  })

  test('a payload is not parsed by decoding, and keeps canonical key order live and in replay', () => {
    const { bytes, event } = only(written(Payload.of({ b: 1, a: [], 10: {}, 9: -0 })))
    for (const read of [event, decodeEvent(bytes)] as EventDraft<'capability.written/1'>[]) {
      expect(Buffer.from(read.data.data.bytes).toString()).toBe('{"10":{},"9":0,"a":[],"b":1}')
      expect(JSON.stringify(read.data.data.value)).toBe('{"9":0,"10":{},"a":[],"b":1}')
    }
  })

  test.each([0, 63, 64, 2 ** 30 - 1, 2 ** 30, 2 ** 31, 2 ** 32, 2 ** 52, 2 ** 53 - 2, 2 ** 53 - 1])(
    'count %i survives',
    (revision) => {
      const { bytes } = only({ type: 'continuation.armed/1', data: { continuation_id: 'c', revision } })
      expect(decodeEvent(bytes).data).toEqual({ continuation_id: 'c', revision })
    },
  )

  test('a live event does not follow later changes of the value it was made from', () => {
    const value = { a: 1 }
    const { event } = only(written(Payload.of(value)))
    value.a = 2
    expect((event as EventDraft<'capability.written/1'>).data.data.value).toEqual({ a: 1 })
  })
})

describe('hash', () => {
  test('covers the type: equal fields under another type hash differently', () => {
    const data = { continuation_id: 'c-1', revision: 1 }
    expect(only({ type: 'continuation.armed/1', data }).hash).not.toBe(only({ type: 'continuation.claimed/1', data }).hash)
    const { bytes, hash } = only(armed)
    const renamed = Buffer.from(bytes)
    renamed.write('continuation.armee/1', 38)
    expect(decodeRefusal(renamed)).toBe('body')
    expect(hash).toBe(decodeEvent(bytes).hash)
  })

  test.each(['stream', 'base', 'previous', 'id', 'time', 'actor', 'causation', 'run_id', 'attempt'] as const)(
    'covers %s',
    (field) => {
      const other = {
        stream: ZERO_HASH,
        base: 1,
        previous: ZERO_HASH,
        id: '0'.repeat(32),
        time: 1,
        causation: null,
        run_id: 'run-2',
        attempt: 2,
      }
      const change = field === 'actor' ? { actor: { ...meta.actor, id: 'worker-2' } } : { [field]: other[field] }
      expect(only(armed, change).hash).not.toBe(only(armed).hash)
    },
  )

  test('equal failures hash equally', () => {
    // An Error carries a stack and an identity; only code and message are stored, so the instance cannot reach the hash.
    const failed = (error: Error & { code: string }): EventDraft => ({
      type: 'run.failed/1',
      data: { run_id: 'run-1', failure: { code: error.code, message: error.message, retryable: false }, details: Payload.of({}) },
    })
    const make = () => Object.assign(new Error('The tool threw.'), { code: 'tool_threw' })
    const [first, second] = [make(), make()]
    expect(only(failed(first)).hash).toBe(only(failed(second)).hash)
    expect(only(failed(first)).bytes).toEqual(only(failed(second)).bytes)
  })

  test('does not depend on field or key order, nor on how absent is spelled', () => {
    const a: EventDraft = {
      type: 'capability.written/1',
      data: { capability_id: 'x', version: '1', data: Payload.of({ a: 1, b: 2 }) },
    }
    const b: EventDraft = {
      type: 'capability.written/1',
      data: { data: Payload.of({ b: 2, a: 1 }), version: '1', capability_id: 'x' },
    }
    expect(only(a).hash).toBe(only(b).hash)
    expect(only(armed, { run_id: null }).hash).toBe(only(armed, { run_id: undefined }).hash)
  })
})

describe('refusals of encodeCommit', () => {
  test('no events', () => {
    expect(refusal(() => encodeCommit(meta, [])).code).toBe('commit_empty')
  })

  test('too many events, too many bytes together, too many in one', () => {
    const { records, bytes } = COMMIT_LIMITS
    expect(encodeCommit(meta, Array(records).fill(armed)).records).toHaveLength(records)
    const many = refusal(() => encodeCommit(meta, Array(records + 1).fill(armed)))
    expect(many).toMatchObject({
      code: 'commit_too_large',
      disposition: 'reject',
      details: { unit: 'records', limit: records, found: records + 1 },
    })
    const half = written(Payload.of('x'.repeat(bytes / 2)))
    expect(refusal(() => encodeCommit(meta, [half, half])).details).toMatchObject({ unit: 'bytes', limit: bytes })
    const whole = refusal(() => encodeCommit(meta, [written(Payload.of('x'.repeat(bytes)))]))
    expect(whole).toMatchObject({ code: 'commit_too_large', details: { unit: 'bytes', limit: bytes } })
    expect(whole.details['found']).toBeGreaterThan(bytes)
  })

  test('the limit is exact', () => {
    const overhead = encodeCommit(meta, [written(Payload.of('x'.repeat(800_000)))]).records[0]!.bytes.length - 800_000
    const fits = written(Payload.of('x'.repeat(COMMIT_LIMITS.bytes - overhead)))
    expect(encodeCommit(meta, [fits]).records[0]!.bytes.length).toBe(COMMIT_LIMITS.bytes)
    const over = written(Payload.of('x'.repeat(COMMIT_LIMITS.bytes - overhead + 1)))
    expect(refusal(() => encodeCommit(meta, [over])).code).toBe('commit_too_large')
  })

  const secret = 'payload text that must not leak'
  const misfits: [string, () => unknown, string][] = [
    ['unknown type', () => only({ type: 'thread.vanished/1', data: {} } as never), '$.events[0].type'],
    ['a type named like a property of objects', () => only({ type: 'constructor', data: {} } as never), '$.events[0].type'],
    [
      'missing field',
      () => only({ type: 'continuation.armed/1', data: { revision: 1 } } as never),
      '$.events[0].data.continuation_id',
    ],
    ['absent data', () => only({ type: 'continuation.armed/1' } as never), '$.events[0].data'],
    [
      'unknown field',
      () => only({ type: 'continuation.armed/1', data: { ...armed.data, note: secret } } as never),
      '$.events[0].data.note',
    ],
    [
      'text for a count',
      () => only({ type: 'continuation.armed/1', data: { continuation_id: 'c', revision: secret } } as never),
      '$.events[0].data.revision',
    ],
    [
      '2^53',
      () => only({ type: 'continuation.armed/1', data: { continuation_id: 'c', revision: 2 ** 53 } }),
      '$.events[0].data.revision',
    ],
    [
      'negative count',
      () => only({ type: 'continuation.armed/1', data: { continuation_id: 'c', revision: -1 } }),
      '$.events[0].data.revision',
    ],
    [
      'lone surrogate',
      () => only({ type: 'continuation.armed/1', data: { continuation_id: `${secret}\ud800`, revision: 1 } }),
      '$.events[0].data.continuation_id',
    ],
    [
      'raw JSON for a payload',
      () => only({ type: 'capability.written/1', data: { capability_id: 'a', version: '1', data: { secret } } } as never),
      '$.events[0].data.data',
    ],
    ['payload of nothing', () => only(written(Payload.of(undefined as never))), '$.events[0].data.data'],
    ['payload of a bigint', () => only(written(Payload.of(1n as never))), '$.events[0].data.data'],
    ['upper-case hash', () => only(armed, { stream: 'AB'.repeat(32) }), '$.envelope.stream'],
    ['short commit id', () => only(armed, { id: 'ab' }), '$.envelope.commit.id'],
    ['actor without kind', () => only(armed, { actor: { id: secret, source: 's' } as never }), '$.envelope.actor.kind'],
    [
      'the reader-only symbol',
      () => only({ type: 'request.composed/1', data: { step: 1, message: Payload.of(1), state: 'unrecognised' } }),
      '$.events[0].data.state',
    ],
  ]
  test.each(misfits)('%s', (_name, act, path) => {
    const error = refusal(act)
    expect(error).toMatchObject({ code: 'event_invalid', disposition: 'reject', path })
    expect(error.expected).toBeTruthy()
    expect(JSON.stringify(error) + error.stack + String(error.cause)).not.toContain(secret)
  })

  test('a path leads into lists', () => {
    const suspended = structuredData('run.suspended/1') as { batch: { deadline: unknown }[] }
    suspended.batch[1]!.deadline = 'soon'
    const draft = { type: 'run.suspended/1', data: suspended } as never
    expect(refusal(() => encodeCommit(meta, [armed, draft])).path).toBe('$.events[1].data.batch[1].deadline')
  })
})

const structuredData = (type: (typeof eventTypes)[number]): unknown => sample(type).data

const decodeRefusal = (bytes: Uint8Array, decode: (bytes: Uint8Array) => unknown = decodeEvent): unknown => {
  const error = refusal(() => decode(bytes))
  expect(error).toMatchObject({ code: 'event_undecodable', disposition: 'fatal' })
  expect(error.cause).toBeUndefined()
  return error.details['reason']
}

describe('refusals of decodeEvent', () => {
  const { bytes } = only(armed)
  const changed = (at: number, value: number) => Uint8Array.from(bytes, (byte, i) => (i === at ? value : byte))

  test.each([0, 1, 4])('framing: %i bytes', (length) => expect(decodeRefusal(bytes.subarray(0, length))).toBe('framing'))
  test('framing: other magic byte', () => expect(decodeRefusal(changed(0, 1))).toBe('framing'))
  test('unknown schema', () => expect(decodeRefusal(changed(1, 0x7f))).toBe('unknown-schema'))
  test('schema of another type', () => expect(decodeRefusal(changed(4, 22))).toBe('body'))
  test('cut short', () => expect(decodeRefusal(bytes.subarray(0, -1))).toBe('body'))
  test('trailing byte', () => expect(decodeRefusal(Uint8Array.from([...bytes, 0]))).toBe('body'))
  test('negative count', () => expect(decodeRefusal(changed(bytes.length - 1, 1))).toBe('body'))

  test.each([
    ['2^40 items', [0x80, 0x80, 0x80, 0x80, 0x80, 0x40]],
    ['a block of −2^40 items', [0xff, 0xff, 0xff, 0xff, 0xff, 0x3f, 0x02]],
    ['an endless number', Array(300).fill(0x80)],
  ])('a list that claims %s is refused, however long it would take to read', (_name, size) => {
    const draft: EventDraft = { type: 'run.suspended/1', data: { run_id: 'r', batch: [] } }
    const whole = only(draft).bytes
    expect(ends(() => decodeRefusal(Uint8Array.from([...whole.subarray(0, -1), ...size])))).toBe('body')
  })

  test('an enum symbol this build does not know is no symbol', () => {
    const { bytes } = only({
      type: 'model.responded/1',
      data: { step: 1, message: Payload.of(1), usage: Payload.of(1), replaces_previous: true },
    })
    const sealing = bytes.length - 1 - 2 - 2 - 1 - 1
    expect(bytes[sealing]).toBe(0)
    expect(decodeRefusal(Uint8Array.from(bytes, (byte, i) => (i === sealing ? 40 : byte)))).toBe('body')
  })
})

describe('decodeEnvelope', () => {
  test('reads every type', () => {
    for (const type of eventTypes) {
      const { bytes, event, hash } = only(sample(type))
      const { data: _, ...envelope } = event
      expect(decodeEnvelope(bytes)).toStrictEqual({ ...envelope, hash })
    }
  })

  test('reads a type this build does not know, so that every reader accepts the same commits', () => {
    const { bytes, event } = only(armed)
    const newer = Buffer.from(bytes)
    newer.writeUInt32BE(900, 1)
    newer.write('continuation.paused/', 38)
    expect(decodeRefusal(newer)).toBe('unknown-schema')
    expect(decodeEnvelope(newer)).toMatchObject({
      stream: event.stream,
      version: 300,
      commit: event.commit,
      previous: event.previous,
    })
  })

  test('refuses a known type behind an unknown or a foreign schema id', () => {
    const bytes = Buffer.from(only(armed).bytes)
    for (const id of [900, 22]) {
      bytes.writeUInt32BE(id, 1)
      expect(decodeRefusal(bytes, decodeEnvelope)).toBe('body')
    }
  })

  test('does not look at the fields', () => {
    const { bytes } = only(armed)
    expect(decodeEnvelope(bytes.subarray(0, -3)).version).toBe(300)
  })
})
