import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { decodeReceipt, type Receipt } from '../../src/continuations/index.ts'
import { edgeCodec, fileSchemas, memorySchemas, type SchemaSource } from '../../src/events/index.ts'
import { encodeResult } from '../../src/index.ts'
import { fetchResultSchemas } from '../../src/log/kafka/index.ts'
import { cli } from '../cli/support/cli.ts'
import { example, needed, printed, python } from '../support/clients/programs.ts'
import { OUTSIDE, openShop, type Shop } from '../support/clients/shop.ts'
import { describeKafka } from '../support/kafka/index.ts'
import { type OwnRegistry, ownRegistry, ownRegistryMissing } from '../support/registry/index.ts'

const OK = '{"ok": true}'
const UNKNOWN_ID = 987_654

describeKafka('Python with a schema registry', () => {
  test('row 74: a result in Avro resumes its run; the registry may be killed under the engine and come back', async (context) => {
    const missing = ownRegistryMissing()
    needed(missing === undefined ? { path: '' } : { missing }, context)
    const path = needed(await python(), context)
    await using registry = await ownRegistry()
    // Its ids are not those of this package: somebody else was there first.
    await registerForeign(registry, 40)
    expect(await cli(['schemas', 'register', '--registry', registry.url])).toMatchObject({ code: 0 })
    const resultSchemas = await fetchResultSchemas({ url: registry.url })
    await using shop = await openShop({ resultSchemas })
    const ended = async (thread: string, send: (externalId: string) => Promise<unknown>) => {
      const { externalId } = await shop.waiting(thread)
      await send(externalId)
      return shop.ended(thread)
    }
    const byPython = (externalId: string) =>
      printed(path, [example('send_result_avro'), ...shop.where, registry.url, OUTSIDE, externalId, OK])

    expect(await ended('t_before', byPython)).toBe('done')

    await registry.kill()
    await expect(
      promisify(execFile)(path, [example('send_result_avro'), ...shop.where, registry.url, OUTSIDE, 'x', OK]),
    ).rejects.toThrow()
    expect(await ended('t_away', (externalId) => publish(shop, resultSchemas, externalId))).toBe('done')
    await publish(shop, withId(UNKNOWN_ID), 'nobody')

    await registry.start()
    expect(await ended('t_back', byPython)).toBe('done')
    expect((await receiptsOf(shop, 4)).map(({ verdict }) => verdict).sort()).toEqual([
      'accepted',
      'accepted',
      'accepted',
      'unreadable',
    ])
  }, 240_000)
})

async function registerForeign({ url }: OwnRegistry, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const schema = JSON.stringify({ type: 'record', name: `Foreign${i}`, fields: [{ name: 'n', type: 'long' }] })
    await fetch(`${url}/subjects/foreign-${i}/versions`, {
      method: 'POST',
      headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
      body: JSON.stringify({ schema }),
    })
  }
}

function withId(id: number): SchemaSource {
  const files = fileSchemas()
  return memorySchemas([{ ...files.schema(files.id('result/1')!)!, id }])
}

/** As a client does that has kept the schema's id. */
async function publish({ threads }: Shop, schemas: SchemaSource, externalId: string): Promise<void> {
  const value = encodeResult({ provider: OUTSIDE, external_id: externalId, result: { ok: true } }, {}, edgeCodec(schemas))
  await threads.backend.topics.publish('results', [{ key: externalId, value }])
}

async function receiptsOf({ threads }: Shop, count: number): Promise<Receipt[]> {
  const found: Receipt[] = []
  const from = new Map(Array.from({ length: threads.backend.events.partitions }, (_, partition) => [partition, 0n]))
  for await (const batch of threads.backend.topics.subscribe('receipts', { from })) {
    found.push(...batch.map(({ value }) => decodeReceipt(value)))
    if (found.length >= count) break
  }
  return found
}
