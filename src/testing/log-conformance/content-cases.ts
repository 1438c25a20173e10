import assert from 'node:assert/strict'
import { Payload, systemIds } from '../../base/index.ts'
import { type Commit, encodeCommit, type StreamKey, ZERO_HASH } from '../../events/index.ts'
import { CONTENT_LIMIT, type LogBackend } from '../../log/index.ts'
import type { LogCase } from './suite.ts'
import { assertRefused, newStream, readStream } from './writing.ts'

/** Bytes that differ from chunk to chunk. */
const bytesOf = (size: number, seed: number): Uint8Array =>
  Uint8Array.from({ length: size }, (_, i) => (i * 31 + (i >> 8) + seed) & 0xff)

const SIZES = [0, 1, 262_144, 262_145, 1_500_000]

/** A first commit whose one payload is kept in the log's content store. */
function commitOf(stream: StreamKey, data: Payload): Commit {
  const time = Date.now()
  const actor = { kind: 'library', id: 'conformance', source: 'test' }
  const meta = { stream, base: 0, previous: ZERO_HASH, id: systemIds.commit(time), time, actor }
  return encodeCommit(meta, [{ type: 'capability.written/1', data: { capability_id: 'large', version: '1', data } }])
}

async function appendKept(log: LogBackend, text: string): Promise<StreamKey> {
  const stream = newStream()
  const data = Payload.of(text)
  data.keep(await log.content.put(data.bytes, 'application/json'))
  assert.equal((await log.events.append(commitOf(stream, data))).accepted, true)
  return stream
}

async function keptValue(log: LogBackend, stream: StreamKey): Promise<unknown> {
  const [record] = await readStream(log.events, stream)
  const event = record?.event
  assert.ok(event?.type === 'capability.written/1')
  assert.notEqual(event.data.data.kept, undefined)
  return event.data.data.value
}

export const contentCases: LogCase[] = [
  {
    name: 'content comes back as it was put, in any size, under its digest; equal content is one',
    async run({ open }) {
      const { content } = await open()
      for (const [seed, size] of SIZES.entries()) {
        const bytes = bytesOf(size, seed)
        const ref = await content.put(bytes, 'application/octet-stream')
        assert.equal(ref.size, size)
        assert.deepEqual(await content.put(bytesOf(size, seed), 'application/octet-stream'), ref)
        assert.deepEqual(Buffer.from((await content.get(ref)) as Uint8Array), Buffer.from(bytes))
      }
      assert.equal(await content.get({ digest: 'f'.repeat(64), size: 3, media_type: 'text/plain' }), undefined)
    },
  },
  {
    name: 'content above the limit is refused with the limit',
    async run({ open }) {
      const { content } = await open()
      await assertRefused(content.put(new Uint8Array(CONTENT_LIMIT + 1), 'application/octet-stream'), 'content_too_large')
    },
  },
  {
    name: 'content is there after the log is opened again, and so is what refers to it',
    needs: 'durable',
    async run({ open, current }) {
      const log = await open()
      const text = 'd'.repeat(700_000)
      const stream = await appendKept(log, text)
      await log.close()
      const again = await open()
      await current(again)
      assert.equal(await keptValue(again, stream), text)
    },
  },
  {
    name: 'another process reads what an event refers to as soon as it reads the event, in both directions',
    needs: 'multi-process',
    async run({ open, current }) {
      const [one, two] = [await open(), await open()]
      for (const [i, [from, to]] of (
        [
          [one, two],
          [two, one],
          [one, two],
        ] as const
      ).entries()) {
        const text = String(i).repeat(400_000 + i)
        const stream = await appendKept(from, text)
        await current(to)
        assert.equal(await keptValue(to, stream), text)
      }
    },
  },
  {
    name: 'an event whose content was never put is read, its value is not, and the log goes on',
    async run({ open, current }) {
      const log = await open()
      const stream = newStream()
      const lost = Payload.fromReference({ digest: 'e'.repeat(64), size: 70_000, media_type: 'application/json' })
      assert.equal((await log.events.append(commitOf(stream, lost))).accepted, true)
      await current(log)
      await assertRefused(keptValue(log, stream), 'content_missing')
      const text = 'n'.repeat(100_000)
      assert.equal(await keptValue(log, await appendKept(log, text)), text)
    },
  },
]
