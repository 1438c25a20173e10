import { expect, test } from 'vitest'
import { type JsonObject, sha256Hex } from '../../src/base/index.ts'
import { loadContent, stateStoreOn, storeContent } from '../../src/harness/index.ts'
import { openMemoryLog } from '../../src/log/index.ts'
import { HarnessState } from '../../src/messages/index.ts'

const picture = (byte: number, size: number) => ({
  kind: 'binary',
  data: Buffer.alloc(size, byte).toString('base64'),
  media_type: 'image/png',
  identifier: 'i',
  vendor_metadata: null,
})

const stateWith = (...pictures: JsonObject[]) =>
  HarnessState.parse({
    schema_version: '1',
    thread_id: 'thread_a',
    message_history: [
      {
        kind: 'request',
        parts: [{ part_kind: 'user-prompt', content: ['look', ...pictures], timestamp: '2026-01-01T00:00:00Z' }],
        timestamp: '2026-01-01T00:00:00Z',
      },
    ],
    agent_context_state: { entries: { pics: { version: '1', data: { last: pictures[0] ?? null } } } },
    environment_states: {},
  })

test('case 147, in the content store of a log: large content of a state is kept once, and comes back', async () => {
  await using log = await openMemoryLog()
  const store = stateStoreOn(log.content)
  const large = picture(7, 70_000)
  const state = stateWith(large, large, picture(8, 65_536))
  const exported = await storeContent(state, store)
  const digest = sha256Hex(Buffer.alloc(70_000, 7))
  expect(exported.toJSON()['refs']).toEqual([{ key: `content/${digest}`, digest, size: 70_000 }])
  expect(exported.toText().length).toBeLessThan(100_000)
  expect(log.tables.all('SELECT DISTINCT digest FROM content')).toEqual([{ digest }])
  const loaded = (await loadContent(exported, store)).toJSON()
  expect({ ...loaded, refs: [] }).toEqual({ ...state.toJSON(), refs: [] })
})

test('a content that is gone is a StateError that names its key', async () => {
  await using log = await openMemoryLog()
  await using other = await openMemoryLog()
  const exported = await storeContent(stateWith(picture(7, 70_000)), stateStoreOn(log.content))
  await expect(loadContent(exported, stateStoreOn(other.content))).rejects.toMatchObject({
    code: 'content_missing',
    kind: 'StateError',
    details: { key: `content/${sha256Hex(Buffer.alloc(70_000, 7))}` },
  })
})
