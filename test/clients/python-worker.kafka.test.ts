import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Child } from '../../examples/support/child.ts'
import { example, type Found, needed, python } from '../support/clients/programs.ts'
import { OUTSIDE, openShop, type Shop } from '../support/clients/shop.ts'
import { describeKafka } from '../support/kafka/index.ts'
import { places } from '../support/processes/place.ts'

const place = places()

describeKafka('the Python worker', () => {
  let found: Found
  let path: string
  let shop: Shop
  beforeAll(async () => {
    found = await python()
    shop = await openShop()
  }, 180_000)
  beforeEach((context) => {
    path = needed(found, context)
  })
  afterAll(() => shop?.[Symbol.asyncDispose]())

  test('answers every request, each job done once, though it is killed over and over', async () => {
    const { file } = place()
    const names = Array.from({ length: 12 }, (_, i) => `t_${i}`)
    const start = () => new Child('worker', path, [example('worker'), ...shop.where, OUTSIDE, file])
    let worker = start()
    const waits = await Promise.all(names.map((name) => shop.waiting(name)))
    const answered = new Set<string>()
    // It is killed right after an answer: some are written and not yet committed, so that they are taken again.
    for (let kills = 0; kills < 4; kills++) {
      const { external_id: id } = await worker.says('answered', (line) => !answered.has(String(line['external_id'])), 50_000)
      await worker.kill()
      for (const line of worker.lines) if (line.event === 'answered') answered.add(String(line['external_id']))
      answered.add(String(id))
      worker = start()
    }
    try {
      for (const name of names) expect(await shop.ended(name)).toBe('done')
    } finally {
      await worker.kill()
    }
    const ledger = new DatabaseSync(file)
    expect(ledger.prepare('SELECT count(*) AS jobs FROM done').get()).toEqual({ jobs: waits.length })
    ledger.close()
  })
})
