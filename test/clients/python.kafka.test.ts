import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Child } from '../../examples/support/child.ts'
import { externalIdKey } from '../../src/index.ts'
import { example, type Found, needed, printed, python } from '../support/clients/programs.ts'
import { OUTSIDE, openShop, type Shop } from '../support/clients/shop.ts'
import { describeKafka } from '../support/kafka/index.ts'

const schemas = fileURLToPath(new URL('../../schemas/', import.meta.url))
const OK = '{"ok": true}'

describeKafka('the Python examples', () => {
  let found: Found
  let path: string
  let shop: Shop
  const children: Child[] = []

  beforeAll(async () => {
    found = await python()
    shop = await openShop()
  }, 180_000)
  beforeEach((context) => {
    path = needed(found, context)
  })
  afterAll(async () => {
    await Promise.all(children.map((child) => child.kill()))
    await shop?.[Symbol.asyncDispose]()
  })

  /** An example that reads on until it is killed. */
  function reader(name: string, ...args: string[]): Child {
    const child = new Child(name, path, [example(name), ...shop.where, ...args])
    children.push(child)
    return child
  }
  const send = async (name: string, ...args: string[]) =>
    JSON.parse(await printed(path, [example(name), ...shop.where, ...args])) as { partition: number; offset: number }

  test('a result in JSON resumes its run, and each sent record has its receipt', async () => {
    const receipts = reader('read_receipts')
    const { externalId } = await shop.waiting('t_json')
    const sent = [
      await send('send_result_json', OUTSIDE, externalId, OK, 'r-1'),
      await send('send_result_json', OUTSIDE, externalId, OK, 'r-1'),
      await send('send_result_json', OUTSIDE, externalId, '{"ok": false}', 'r-2'),
    ]
    expect(await shop.ended('t_json')).toBe('done')

    const told = []
    for (const { partition, offset } of sent)
      told.push(await receipts.says<Receipt>('receipt', (line) => isOf(line, partition, offset)))
    expect(told.map(({ receipt }) => receipt.verdict)).toEqual(['accepted', 'accepted', 'conflict'])
    expect(new Set(told.map(({ id }) => id)).size).toBe(3)
    const { source } = told[0]!.receipt
    expect(told[0]!.headers).toMatchObject({
      ce_specversion: '1.0',
      ce_id: `${source.topic}/${source.partition}/${source.offset}/${source.record_time}/1`,
      ce_source: `/threadlog/log/${encodeURIComponent(source.cluster)}`,
      ce_type: 'threadlog.receipt/1',
      ce_subject: externalIdKey(OUTSIDE, externalId),
      ce_time: new Date(source.record_time).toISOString(),
      'content-type': 'application/json',
    })
  })

  test('a result in Avro resumes its run, framed with the id of the packaged schema', async () => {
    const { externalId } = await shop.waiting('t_avro')
    await send('send_result_avro_file', schemas, OUTSIDE, externalId, OK)
    expect(await shop.ended('t_avro')).toBe('done')
  })

  test('a request is taken with what its answer needs, and taken back when its run is cancelled', async () => {
    const taker = reader('take_requests', OUTSIDE)
    const wait = await shop.waiting('t_asked')
    const request = await taker.says('request', (line) => line['continuation_id'] === wait.id)
    expect(request).toMatchObject({
      application_id: 'shop',
      provider: OUTSIDE,
      external_id: wait.externalId,
      schema_id: wait.schemaId,
      arguments: { n: 1 },
    })

    await shop.threads.thread('t_asked').cancel()
    const back = await taker.says('cancelled', (line) => line['continuation_id'] === wait.id)
    expect(back).toMatchObject({ idempotency_key: request['idempotency_key'] })
  })

  test('checkpoints are followed, and one that is not newer is dropped', async () => {
    const follower = reader('read_checkpoints')
    const wait = await shop.waiting('t_stands')
    const of = (status: string) => (line: Record<string, unknown>) =>
      line['thread_id'] === 't_stands' && line['status'] === status
    const suspended = await follower.says<Checkpoint>('checkpoint', of('suspended'))
    expect(suspended.waits).toEqual([wait.id])
    expect(suspended.headers).toMatchObject({
      ce_specversion: '1.0',
      ce_source: '/threadlog/shop',
      ce_type: 'threadlog.checkpoint/1',
      ce_subject: 'shop/default/t_stands',
      'content-type': 'application/json',
    })
    await send('send_result_json', OUTSIDE, wait.externalId, OK)
    const completed = await follower.says<Checkpoint>('checkpoint', of('completed'))
    expect(completed.version).toBeGreaterThan(suspended.version)
    expect(completed.headers['ce_id']).not.toBe(suspended.headers['ce_id'])

    const { stream, version } = suspended
    const old = { thread_id: 't_stands', stream, version, status: 'suspended', waits: [] }
    const { topics } = shop.threads.backend
    await topics.publish('checkpoints', [{ key: stream, value: Buffer.from(JSON.stringify(old)) }])
    expect(await follower.says('dropped')).toMatchObject({ stream, version })
  })
})

type Receipt = {
  event: 'receipt'
  id: string
  headers: Record<string, string>
  receipt: { verdict: string; source: { cluster: string; topic: string; partition: number; offset: number; record_time: number } }
}
type Checkpoint = { event: string; headers: Record<string, string>; stream: string; version: number; waits: string[] }

const isOf = ({ receipt: { source } }: Receipt, partition: number, offset: number) =>
  source.partition === partition && source.offset === offset
