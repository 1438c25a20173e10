import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { edgeCodec, fileSchemas, memorySchemas } from '../../src/events/index.ts'
import { encodeResult, openThreadlog } from '../../src/index.ts'
import { fetchResultSchemas, registerSchemas } from '../../src/log/kafka/index.ts'
import { describeKafka, kafkaPlace } from '../support/kafka/index.ts'
import { describeRegistry } from '../support/registry/index.ts'
import { cli } from './support/cli.ts'

const HEADERS = { 'content-type': 'application/vnd.schemaregistry.v1+json' }

/** Schemas get other ids than those pinned here: a shared registry is never only ours. */
async function registerForeign(url: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const schema = JSON.stringify({ type: 'record', name: `Foreign${i}`, fields: [{ name: 'n', type: 'long' }] })
    await fetch(`${url}/subjects/foreign-${i}/versions`, { method: 'POST', headers: HEADERS, body: JSON.stringify({ schema }) })
  }
}

describeRegistry('schemas in a registry', (url) => {
  test('are registered once, each subject at its level, and compared', async () => {
    await registerForeign(url(), 40)
    expect(await cli(['schemas', 'check', '--registry', url()])).toMatchObject({ code: 1 })
    const first = await cli(['schemas', 'register', '--registry', url(), '-o', 'json'])
    expect(first.code).toBe(0)
    const { schemas } = JSON.parse(first.out)
    expect(schemas).toHaveLength(fileSchemas().all().length)
    expect(schemas.every(({ id, pinned_id }: Record<string, number>) => id !== pinned_id)).toBe(true)
    expect((await cli(['schemas', 'register', '--registry', url(), '-o', 'json'])).out).toBe(first.out)
    expect(await cli(['schemas', 'check', '--registry', url()])).toMatchObject({ code: 0 })

    const level = `${url()}/config/threadlog.edges.Result`
    expect(await (await fetch(level)).json()).toMatchObject({ compatibilityLevel: 'FULL_TRANSITIVE' })
    await fetch(level, { method: 'PUT', headers: HEADERS, body: '{"compatibility":"NONE"}' })
    const changed = await cli(['schemas', 'check', '--registry', url(), '-o', 'json'])
    expect(changed.code).toBe(1)
    expect(JSON.parse(changed.out).findings).toMatchObject([
      { subject: 'threadlog.edges.Result', problem: 'level', found: 'NONE' },
    ])
    expect((await cli(['schemas', 'register', '--registry', url()])).code).toBe(0)
  })

  test('that others made incompatible are refused', async () => {
    const subject = 'threadlog.events.CapabilityDeleted1'
    await fetch(`${url()}/config/${subject}`, { method: 'PUT', headers: HEADERS, body: '{"compatibility":"NONE"}' })
    const other = {
      type: 'record',
      name: 'CapabilityDeleted1',
      namespace: 'threadlog.events',
      fields: [{ name: 'other', type: 'int' }],
    }
    const body = JSON.stringify({ schema: JSON.stringify(other) })
    expect((await fetch(`${url()}/subjects/${subject}/versions`, { method: 'POST', headers: HEADERS, body })).ok).toBe(true)
    // What is registered stays: an old version is asked for again. Only the check sees the newer one.
    const { out, code } = await cli(['schemas', 'check', '--registry', url(), '-o', 'json'])
    expect(code).toBe(1)
    expect(JSON.parse(out).findings).toContainEqual(expect.objectContaining({ subject, problem: 'newer' }))
  })
})

test('a registry that is away, hangs, fails, refuses or is none: a clear error', async () => {
  const answers: Record<string, [number, string] | 'hang'> = {
    registry_unavailable: [500, '{"error_code":50001,"message":"secret"}'],
    registry_unauthorized: [401, '{}'],
    registry_invalid: [200, '<html>'],
    hang: 'hang',
  }
  let now: [number, string] | 'hang' = 'hang'
  const server = createServer((_, response) => {
    if (now !== 'hang') response.writeHead(now[0], { 'content-type': 'application/json' }).end(now[1])
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    for (const [code, answer] of Object.entries(answers)) {
      now = answer
      const wanted = answer === 'hang' ? 'registry_unavailable' : code
      for (const ask of [registerSchemas, fetchResultSchemas])
        await expect(ask({ url, timeoutMs: 300 })).rejects.toMatchObject({ code: wanted })
      await expect(registerSchemas({ url, timeoutMs: 300 })).rejects.not.toThrow('secret')
    }
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  await expect(fetchResultSchemas({ url })).rejects.toMatchObject({ code: 'registry_unavailable', disposition: 'retry' })
  await expect(fetchResultSchemas({ url: 'http://user:pw@host' })).rejects.toMatchObject({ code: 'registry_url_invalid' })
  expect((await cli(['schemas', 'check', '--registry', url])).code).toBe(3)
})

describeKafka('results in Avro with ids of a registry', () => {
  describeRegistry('of a real one', (url) => {
    test('are read; an id that it does not know is a verdict', async () => {
      await registerForeign(url(), 40)
      await registerSchemas({ url: url() })
      await using place = await kafkaPlace()
      const resultSchemas = await fetchResultSchemas({ url: url() }, { topic: `${place.prefix}.results` })
      const id = resultSchemas.id('result/1')!
      expect(id).not.toBe(fileSchemas().id('result/1'))
      const log = await place.open()
      await using threads = await openThreadlog({ log, application: 'shop', resultSchemas })
      await using _engine = await threads.serve()
      const result = { provider: 'bank', external_id: 'none-such', result: { reference: 'R-1' } } as const
      const ours = fileSchemas().schema(fileSchemas().id('result/1')!)!
      const written = (schemaId: number) => encodeResult(result, {}, edgeCodec(memorySchemas([{ ...ours, id: schemaId }])))
      for (const value of [written(id), written(987_654), written(ours.id)])
        await log.topics.publish('results', [{ key: 'k', value }])
      const verdicts: string[] = []
      for await (const batch of log.topics.subscribe('receipts', { from: new Map([0, 1, 2, 3].map((p) => [p, 0n])) })) {
        for (const { value } of batch) verdicts.push(JSON.parse(Buffer.from(value).toString()).verdict)
        if (verdicts.length === 3) break
      }
      expect(verdicts).toEqual(['unknown', 'unreadable', 'unreadable'])
    })
  })
})
