import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Found, kcat, needed, printed } from '../support/clients/programs.ts'
import { OUTSIDE, openShop, type Shop } from '../support/clients/shop.ts'
import { describeKafka } from '../support/kafka/index.ts'

describeKafka('kcat', () => {
  let found: Found
  let path: string
  let shop: Shop

  beforeAll(async () => {
    found = await kcat()
    shop = await openShop()
  })
  beforeEach((context) => {
    path = needed(found, context)
  })
  afterAll(() => shop?.[Symbol.asyncDispose]())

  const [brokers, topic] = [() => shop.where[0], (name: string) => `${shop.where[1]}.${name}`]
  const send = (key: string, text: string) => printed(path, ['-P', '-b', brokers(), '-t', topic('results'), '-k', key], text)

  /** Lines of headers and value of the records of a topic up to now. */
  async function records(name: string): Promise<Row[]> {
    const format = ['-f', '%k\t%h\t%s\n']
    const text = await printed(path, ['-C', '-b', brokers(), '-t', topic(name), '-o', 'beginning', '-e', '-q', ...format])
    const lines = text.split('\n').filter((line) => line !== '')
    return lines.map((line) => {
      const [key = '', headers = '', value = ''] = line.split('\t')
      return { key, headers: headers.split(','), value: JSON.parse(value) }
    })
  }
  /** Reads again until it `has` what must come. */
  async function until(name: string, has: (rows: Row[]) => boolean): Promise<Row[]> {
    for (;;) {
      const rows = await records(name)
      if (has(rows)) return rows
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }

  test('sends results, reads their receipts and the checkpoints of the runs they resumed', async () => {
    const { externalId } = await shop.waiting('t_one')
    const record = { provider: OUTSIDE, external_id: externalId, result: { ok: true } }
    // A line is a record; the last one is no JSON.
    await send(externalId, `${JSON.stringify(record)}\n{"provider": "outs\n`)
    expect(await shop.ended('t_one')).toBe('done')

    const receipts = await until('receipts', (rows) => rows.length === 2)
    expect(receipts.map(({ value }) => value['verdict']).sort()).toEqual(['accepted', 'unreadable'])
    const accepted = receipts.find(({ value }) => value['verdict'] === 'accepted')
    expect(accepted?.headers).toEqual(
      expect.arrayContaining(['ce_specversion=1.0', 'ce_type=threadlog.receipt/1', 'content-type=application/json']),
    )

    const checkpoints = await until('checkpoints', (rows) => rows.length === 2)
    expect(checkpoints.map(({ value }) => value['status'])).toEqual(['suspended', 'completed'])
    expect(new Set(checkpoints.map(({ key }) => key)).size).toBe(1)
    expect(checkpoints[0]?.headers).toContain('ce_subject=shop/default/t_one')
  })
})

type Row = { key: string; headers: string[]; value: Record<string, unknown> }
