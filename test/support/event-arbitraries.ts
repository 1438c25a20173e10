import fc from 'fast-check'
import { z } from 'zod'
import { type JsonValue, Payload } from '../../src/base/index.ts'
import { type CommitMeta, catalogue, type EventDraft, type EventType, eventTypes, ZERO_HASH } from '../../src/events/index.ts'

/** Well-formed text, mostly short, with everything JSON and UTF-8 find hard. */
export const texts = (): fc.Arbitrary<string> =>
  fc.oneof({ arbitrary: fc.string({ maxLength: 12 }), weight: 3 }, fc.string({ unit: 'binary', maxLength: 80 }))

/** `bytes` bytes as lower-case hex. */
export const hex = (bytes: number): fc.Arbitrary<string> =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((value) => Buffer.from(value).toString('hex'))

/** Whole numbers from 0 to 2^53 − 2 (the largest that plain avsc takes), small ones more often. */
export const counts = (): fc.Arbitrary<number> =>
  fc.oneof(fc.nat({ max: 300 }), fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER - 1 }))

const roundsInJson = (value: number) => Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21

const numbers = (): fc.Arbitrary<number> =>
  fc.oneof(
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (roundsInJson(value) || value === 0 ? 0 : value)),
  )

/** Keys that break naive code: `__proto__`, integer-like ones, lone surrogates. */
const keys = (): fc.Arbitrary<string> =>
  fc.oneof(
    fc.string({ maxLength: 6 }),
    fc.constantFrom('__proto__', 'constructor', 'toJSON', '9', '10', '', 'é', '\ud800', '\\', '\n', '$settled'),
  )

/** Any JSON value this library accepts, lone surrogates in strings included. */
export const jsonValues = (maxDepth = 4): fc.Arbitrary<JsonValue> =>
  fc.letrec<{ value: JsonValue; list: JsonValue[]; object: { [key: string]: JsonValue } }>((tie) => ({
    value: fc.oneof(
      { maxDepth, depthIdentifier: 'json' },
      fc.oneof(fc.constant(null), fc.boolean(), numbers(), texts(), fc.constant('\udfff')),
      tie('list'),
      tie('object'),
    ),
    list: fc.array(tie('value'), { maxLength: 4, depthIdentifier: 'json' }),
    object: fc
      .array(fc.tuple(keys(), tie('value')), { maxLength: 4, depthIdentifier: 'json' })
      .map((entries) => Object.fromEntries(entries)),
  })).value

export const payloads = (): fc.Arbitrary<Payload> => jsonValues().map((value) => Payload.of(value))

/** Values of a catalogue declaration as a writer may give them; absent ones are null or undefined. */
export function valuesOf(schema: z.ZodType): fc.Arbitrary<unknown> {
  if (schema instanceof z.ZodNullable) return fc.oneof(fc.constantFrom(null, undefined), valuesOf(schema.unwrap() as z.ZodType))
  if (schema instanceof z.ZodArray) return fc.array(valuesOf(schema.element as z.ZodType), { maxLength: 4 })
  if (schema instanceof z.ZodEnum) return fc.constantFrom(...schema.options.filter((symbol) => symbol !== 'unrecognised'))
  if (schema instanceof z.ZodObject)
    return fc.record(
      Object.fromEntries(Object.entries(schema.shape).map(([name, field]) => [name, valuesOf(field as z.ZodType)])),
    )
  const { avro } = schema.meta() as { avro: string | { type: string } }
  const leaf = leaves[typeof avro === 'object' ? avro.type : avro]
  if (!leaf) throw new Error(`no values known for ${JSON.stringify(avro)}`)
  return leaf()
}

const leaves: Record<string, () => fc.Arbitrary<unknown>> = {
  string: texts,
  long: counts,
  boolean: fc.boolean,
  bytes: payloads,
  'threadlog.events.Hash': () => hex(32),
  'threadlog.events.CommitId': () => hex(16),
}

/** Drafts of one event type, or of any. */
export const drafts = <T extends EventType = EventType>(...types: T[]): fc.Arbitrary<EventDraft<T>> =>
  fc.oneof(
    ...(types.length > 0 ? types : eventTypes).map((type) =>
      valuesOf(catalogue[type]).map((data) => ({ type, data }) as EventDraft<T>),
    ),
  )

/** What surrounds a commit; on an empty stream unless `base` and `previous` are overridden. */
export const metas = (fixed: Partial<CommitMeta> = {}): fc.Arbitrary<CommitMeta> =>
  fc
    .record({
      stream: hex(32),
      id: hex(16),
      time: counts(),
      actor: fc.record({ kind: texts(), id: texts(), source: texts() }),
      causation: fc.option(fc.record({ command_id: fc.option(texts()), source: fc.option(texts()) })),
      run_id: fc.option(texts(), { nil: undefined }),
      attempt: fc.option(counts()),
    })
    .map((meta) => ({ base: 0, previous: ZERO_HASH, ...meta, ...fixed }))

/** The value with each payload replaced by its canonical text: test runners see no private fields, so payloads would all be equal. */
export function plain(value: unknown): unknown {
  if (value instanceof Payload) return { $payload: Buffer.from(value.bytes).toString() }
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString('hex') }
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]))
}
