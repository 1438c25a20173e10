// One fixed event per type. `node test/support/golden-events.ts` adds types that have none yet; what is recorded is never rewritten.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { type JsonValue, Payload, sha256Hex } from '../../src/base/index.ts'
import { type CommitMeta, catalogue, type EventDraft, type EventType, encodeCommit, eventTypes } from '../../src/events/index.ts'

export const goldenFile = new URL('../fixtures/events-1.json', import.meta.url)

/** `data` holds payloads as `{"$payload": value}`. */
export interface GoldenEvent {
  type: string
  data: JsonValue
  hash: string
  bytes: string
}

export const readGolden = (): GoldenEvent[] =>
  existsSync(goldenFile) ? (JSON.parse(readFileSync(goldenFile, 'utf8')) as { events: GoldenEvent[] }).events : []

export const goldenMeta: CommitMeta = {
  stream: sha256Hex('stream'),
  base: 299,
  previous: sha256Hex('previous'),
  id: '019a3c5e7b007000800000000000002a',
  time: 1_760_000_000_000,
  actor: { kind: 'library', id: 'worker-1', source: 'run' },
  causation: { command_id: 'command-1', source: null },
  run_id: 'run-00000000000000000000000000000001',
}

/** A fixed draft: every second absent-able field is absent. */
export function sample(type: EventType): EventDraft {
  let n = 0
  const value = (schema: z.ZodType, name: string): unknown => {
    n++
    if (schema instanceof z.ZodNullable) return n % 2 ? null : value(schema.unwrap() as z.ZodType, name)
    if (schema instanceof z.ZodArray) return [value(schema.element as z.ZodType, name), value(schema.element as z.ZodType, name)]
    if (schema instanceof z.ZodEnum) return schema.options[n % (schema.options.length - 1)]
    if (schema instanceof z.ZodObject)
      return Object.fromEntries(Object.entries(schema.shape).map(([key, field]) => [key, value(field as z.ZodType, key)]))
    const { avro } = schema.meta() as { avro: string | { type: string } }
    switch (typeof avro === 'object' ? avro.type : avro) {
      case 'string':
        return `${name} ${n} – ✓`
      case 'long':
        return n % 3 === 0 ? 2 ** 53 - n : n * 100
      case 'boolean':
        return n % 2 === 0
      case 'bytes':
        return Payload.of({ field: name, 10: [], 9: {}, number: n / 4, text: 'é\ud800' })
      default:
        return sha256Hex(`${name} ${n}`)
    }
  }
  return { type, data: value(catalogue[type], type) } as EventDraft
}

/** Payloads to and from the fixture's form. */
export function pack(value: unknown): JsonValue {
  if (value instanceof Payload) return { $payload: value.value }
  if (Array.isArray(value)) return value.map(pack)
  if (typeof value !== 'object' || value === null) return value as JsonValue
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, pack(item)]))
}
export function unpack(value: JsonValue): unknown {
  if (Array.isArray(value)) return value.map(unpack)
  if (typeof value !== 'object' || value === null) return value
  if ('$payload' in value) return Payload.of(value['$payload'] as JsonValue)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, unpack(item)]))
}

if (import.meta.main) {
  const known = readGolden()
  const missing = eventTypes.filter((type) => !known.some((event) => event.type === type))
  const added = missing.map((type): GoldenEvent => {
    const draft = sample(type)
    const { bytes, hash } = encodeCommit(goldenMeta, [draft]).records[0]!
    return { type, data: pack(draft.data), hash, bytes: Buffer.from(bytes).toString('hex') }
  })
  writeFileSync(goldenFile, `${JSON.stringify({ events: [...known, ...added] }, null, 1)}\n`)
  console.log(`${added.length} events added`)
}
