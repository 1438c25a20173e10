import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Ajv, type Options, type ValidateFunction } from 'ajv'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { asyncapiText } from '../../scripts/asyncapi.ts'
import { openThreadlog, type Threadlog } from '../../src/index.ts'
import type { Delivery, TopicName } from '../../src/log/index.ts'
import { toKafkaHeaders } from '../../src/log/kafka/headers.ts'
import { agentOf, calls, says, toolbox } from '../support/agents.ts'

const text = readFileSync(new URL('../../asyncapi.yaml', import.meta.url), 'utf8')
const document = parse(text)
const official = createRequire(import.meta.url)('@asyncapi/specs/schemas/3.0.0.json')

/** Formats are told, not checked; the official schema describes Avro and OpenAPI with keywords of their own. */
const ajv = (more: Options = {}) => new Ajv({ strict: false, validateFormats: false, ...more })
const faults = (validate: ValidateFunction, value: unknown) => (validate(value) ? [] : validate.errors)

describe('asyncapi.yaml', () => {
  // It brings the schema of JSON Schema itself.
  const conforms = ajv({ meta: false, validateSchema: false }).compile(official)

  test('follows from the code', () => {
    expect(text).toBe(asyncapiText())
  })

  test('is an AsyncAPI document by the official schema, which refuses a wrong one', () => {
    expect(faults(conforms, document)).toEqual([])
    const { requests } = document.channels
    const wrong = { ...document, channels: { requests: { ...requests, adress: requests.address } } }
    expect(faults(conforms, wrong)).not.toEqual([])
  })

  test('every reference leads somewhere', () => {
    const refs = [...text.matchAll(/\$ref: "#\/(.+)"/g)].map(([, path]) => path!)
    expect(refs.length).toBeGreaterThan(10)
    for (const path of refs)
      expect(
        path.split('/').reduce((node, name) => node?.[name], document),
        path,
      ).toBeDefined()
  })
})

describe('the records of an engine', () => {
  const found = new Map<TopicName, Delivery[]>()
  let threads: Threadlog

  beforeAll(async () => {
    const { tools } = toolbox()
    const agent = agentOf(
      (prompt) => (prompt.at(-1)?.role === 'tool' ? says('done') : calls(['c1', 'far', { n: 1 }])),
      [tools.far],
    )
    threads = await openThreadlog({ application: 'shop', agents: [agent] })
    const { topics } = threads.backend
    const engine = await threads.serve()
    const run = await threads.start({ agent: 'agent', thread: 't_answered', input: 'go' })
    const wait = await first(threads.waits({ thread: 't_answered', follow: true }))
    const record = { provider: wait.provider, external_id: wait.externalId, result: { ok: true } }
    const results = [JSON.stringify(record), '{', JSON.stringify({ ...record, result: { ok: false } })]
    await topics.publish(
      'results',
      results.map((value) => ({ key: 'k', value: Buffer.from(value) })),
    )
    await run.result()
    await threads.start({ agent: 'agent', thread: 't_cancelled', input: 'go' })
    await first(threads.waits({ thread: 't_cancelled', follow: true }))
    await threads.thread('t_cancelled').cancel()
    await threads.submit({ ...record, provider: 'other' })
    await engine.close()
    for (const topic of ['requests', 'receipts', 'checkpoints', 'results'] as const)
      for await (const batch of topics.scan(topic)) found.set(topic, [...(found.get(topic) ?? []), ...batch])
  })
  afterAll(() => threads?.close())

  test.each([
    ['requests', 'Request', 3],
    ['receipts', 'Receipt', 4],
    ['checkpoints', 'Checkpoint', 4],
  ] as const)('of %s are what it says, headers too', (topic, name, count) => {
    const { payload, headers } = document.components.messages[name]
    const [valueFits, headersFit] = [ajv().compile(payload), ajv().compile(headers)]
    const records = found.get(topic) ?? []
    expect(records).toHaveLength(count)
    for (const { value, headers: held } of records) {
      const read = JSON.parse(Buffer.from(value).toString())
      expect(faults(valueFits, read)).toEqual([])
      // Nothing it does not name.
      expect(Object.keys(read).filter((field) => !(field in payload.properties))).toEqual([])
      expect(faults(headersFit, toKafkaHeaders(held ?? {}))).toEqual([])
    }
    expect(faults(valueFits, {})).not.toEqual([])
    expect(faults(headersFit, {})).not.toEqual([])
  })

  test('of results: a good one fits, one with an unknown field does not', () => {
    const fits = ajv().compile(document.components.messages.ResultJson.payload)
    const sent = JSON.parse(Buffer.from(found.get('results')![0]!.value).toString())
    expect(faults(fits, sent)).toEqual([])
    expect(faults(fits, { ...sent, extern_id: 'x' })).not.toEqual([])
  })
})

async function first<T>(items: AsyncIterable<T>): Promise<T> {
  for await (const item of items) return item
  throw new Error('there is none')
}
