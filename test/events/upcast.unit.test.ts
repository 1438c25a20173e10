import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Payload } from '../../src/base/index.ts'
import type { AvroRecord, AvroSchema } from '../../src/events/avro-schema.ts'
import { count, flag, text } from '../../src/events/fields.ts'
import {
  catalogue,
  decodeEvent,
  type EventDraft,
  eventCodec,
  fileSchemas,
  memorySchemas,
  type Upcasters,
  upcaster,
  upcasters,
} from '../../src/events/index.ts'
import { openThreadlog } from '../../src/index.ts'
import { openSqliteLog } from '../../src/log/index.ts'
import { foldStream, harnessState, verifyRecords } from '../../src/projections/index.ts'
import { temporaryFolder } from '../log/support/sqlite-place.ts'
import { agentOf, eventsOf, says } from '../support/agents.ts'
import { goldenMeta as meta } from '../support/golden-events.ts'
import { olderBuild, rewritten } from '../support/older-build.ts'

const failed = (details: unknown) =>
  ({
    type: 'model.failed/1',
    data: { step: 2, code: 'x', retryable: false, details: Payload.of(details as never) },
  }) as never as EventDraft
const write = (draft: EventDraft) => olderBuild.encodeCommit(meta, [draft]).records[0]!

describe('model.failed/1', () => {
  test.each<[string, unknown, string, number | null]>([
    ['as it was written', { error_type: 'APICallError', status: 503 }, 'APICallError', 503],
    ['without a status', { error_type: 'ScriptedDisconnect' }, 'ScriptedDisconnect', null],
    ['with nothing', {}, 'Error', null],
    ['with a list', [1], 'Error', null],
    ['with words of a provider', { error_type: 'You said: my secret', message: 'secret', status: 'x' }, 'Error', null],
    ['with a status that is none', { error_type: 'E', status: -1 }, 'E', null],
    ['with a fraction', { error_type: 'E', status: 1.5 }, 'E', null],
  ])('%s', (_, details, error_type, status) => {
    const { bytes, hash } = write(failed(details))
    const event = decodeEvent(bytes)
    expect(event).toMatchObject({ type: 'model.failed/2', hash, previous: meta.previous, time: meta.time })
    expect(event.data).toStrictEqual({ step: 2, code: 'x', retryable: false, error_type, status, retry_after_ms: null })
    expect(JSON.stringify(event)).not.toContain('secret')
  })

  test('cannot be written any more', () => {
    expect(() => eventCodec(fileSchemas()).encodeCommit(meta, [failed({})])).toThrow(
      expect.objectContaining({ code: 'event_invalid', path: '$.events[0].type' }),
    )
  })

  test('whose details are no JSON puts its thread in quarantine, not the process to an end', () => {
    const { bytes } = write(failed('payload'))
    const broken = Buffer.from(bytes)
    broken.set(Buffer.from('"payload!'), broken.indexOf('"payload"'))
    expect(() => decodeEvent(broken)).toThrow(
      expect.objectContaining({ code: 'event_undecodable', details: expect.objectContaining({ reason: 'upcast' }) }),
    )
  })
})

test('a file that an older build wrote is read, verified and gone on with', async () => {
  const folder = temporaryFolder()
  const file = `${folder.path}/old.db` as const
  const model = agentOf([{ parts: [], fail_before: true }, says('at last'), says('and again')], [])
  const clock = { now: () => 1_700_000_000_000, monotonic: () => 0, sleep: async () => {} }
  const now = await openThreadlog({ clock })
  expect(await now.run(model, { thread: 'old_1', input: 'hello' })).toMatchObject({ status: 'completed', output: 'at last' })
  const events = await eventsOf(now, 'old_1')
  const state = await now.thread('old_1').state()
  await now.close()

  const { stream } = events[0]!
  const commits = rewritten(events.map((record) => record.event!))
  const old = await openSqliteLog({ file })
  for (const commit of commits) expect((await old.events.append(commit)).accepted).toBe(true)
  await old.close()

  const threads = await openThreadlog({ log: `sqlite:${file}`, clock })
  const records = await eventsOf(threads, 'old_1')
  expect(records.map((record) => record.hash)).toEqual(commits.flatMap((commit) => commit.records.map((record) => record.hash)))
  expect(records.map((record) => record.event?.type)).toEqual(events.map((record) => record.event?.type))
  expect(records.map((record) => record.event?.data)).toEqual(events.map((record) => record.event?.data))
  expect(verifyRecords(stream, records).damage).toBeUndefined()
  expect((await threads.thread('old_1').state()).toJSON()).toEqual(state.toJSON())
  expect(harnessState(foldStream(records).state).toJSON()).toEqual(state.toJSON())
  expect(await threads.run(model, { thread: 'old_1', input: 'more' })).toMatchObject({ status: 'completed', output: 'and again' })
  await threads.close()
  folder.remove()
})

// An imaginary past: the event was called something else, twice.
describe('a chain', () => {
  const packaged = fileSchemas()
  const schema = packaged.schema(packaged.id('model.failed/2')!)!
  const field = (name: string, type: AvroSchema) => ({ name, type })
  const avro = (name: string, ...fields: ReturnType<typeof field>[]): AvroRecord => ({
    type: 'record',
    name,
    namespace: 'threadlog.events',
    fields: [schema.avro.fields[0]!, field('step', 'long'), field('code', 'string'), ...fields],
  })
  const first = { step: count, code: text, fatal: flag }
  const second = { step: count, code: text, retryable: flag, error_type: text }
  const steps: Upcasters = {
    'model.crashed/1': upcaster(first, 'model.crashed/2', ({ fatal, ...rest }, { actor }) => ({
      ...{ ...rest, retryable: !fatal, error_type: actor.kind },
    })),
    'model.crashed/2': upcaster(second, 'model.failed/2', (data) => ({ ...data, status: null, retry_after_ms: null })),
  }
  const source = memorySchemas([
    { id: 1, type: 'model.crashed/1', avro: avro('ModelCrashed1', field('fatal', 'boolean')) },
    { id: 2, type: 'model.crashed/2', avro: avro('ModelCrashed2', field('retryable', 'boolean'), field('error_type', 'string')) },
    { ...schema, id: 3 },
  ])
  const declarations = { ...catalogue, 'model.crashed/1': z.strictObject(first), 'model.crashed/2': z.strictObject(second) }
  const old = eventCodec(source, { declarations, upcasters: {} })
  const written = (type: string, data: object) => old.encodeCommit(meta, [{ type, data } as never]).records[0]!

  test('is followed from wherever an event stands on it', () => {
    const codec = eventCodec(source, { upcasters: steps })
    const common = { step: 3, code: 'x', retryable: false }
    const expected = { ...common, status: null, retry_after_ms: null }
    const one = written('model.crashed/1', { step: 3, code: 'x', fatal: true })
    const two = written('model.crashed/2', { ...common, error_type: 'E' })
    const three = written('model.failed/2', { ...expected, error_type: 'E' })
    expect(codec.decodeEvent(one.bytes).data).toStrictEqual({
      ...common,
      error_type: 'library',
      status: null,
      retry_after_ms: null,
    })
    for (const { bytes, hash } of [two, three]) {
      expect(codec.decodeEvent(bytes)).toMatchObject({ type: 'model.failed/2', hash })
      expect(codec.decodeEvent(bytes).data).toStrictEqual({ ...common, error_type: 'E', status: null, retry_after_ms: null })
    }
    expect(codec.decodeEnvelope(one.bytes).type).toBe('model.crashed/1')
  })

  const { bytes } = written('model.crashed/1', { step: 3, code: 'x', fatal: true })
  const wrong = (up: () => object): Upcasters => ({ 'model.crashed/1': upcaster(first, 'model.crashed/9', up) })

  test.each<[string, Upcasters, string]>([
    ['leads nowhere', wrong(() => ({})), 'upcasters_invalid'],
    ['leads in a circle', { 'model.crashed/1': upcaster(first, 'model.crashed/1', (data) => data) }, 'upcasters_invalid'],
    [
      'gives what its target is not',
      { 'model.crashed/1': { ...upcasters['model.failed/1']!, from: z.strictObject(first), up: () => ({ step: 'secret' }) } },
      'event_undecodable',
    ],
    [
      'throws',
      {
        'model.crashed/1': {
          ...upcasters['model.failed/1']!,
          up: () => {
            throw new Error('secret')
          },
        },
      },
      'event_undecodable',
    ],
  ])('that %s is refused', (_, broken, code) => {
    const codec = eventCodec(source, { upcasters: broken })
    const refusal = expect.objectContaining({ code, message: expect.not.stringContaining('secret') })
    expect(() => codec.decodeEvent(bytes)).toThrow(refusal)
  })

  test('is never followed by who does not know it: the event stays unknown', () => {
    expect(() => eventCodec(source, { upcasters: {} }).decodeEvent(bytes)).toThrow(
      expect.objectContaining({ details: expect.objectContaining({ reason: 'unknown-schema' }) }),
    )
  })
})

test('every retired type leads to a type that is written', () => {
  for (const [type, { to }] of Object.entries(upcasters)) {
    expect(Object.keys(catalogue)).not.toContain(type)
    expect([...Object.keys(catalogue), ...Object.keys(upcasters)]).toContain(to)
  }
})
