import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { AGENTS, cli as run } from './support/cli.ts'
import { temporaryFolder } from './support/shop.ts'

const place = temporaryFolder()
const log = join(place.folder, 'cancel.db')
const cli = (...args: string[]) => run(args, { log })
afterAll(() => place.remove())

test('ends a suspended thread with its waits, and a queued one; says so in both forms', async () => {
  await cli('run', AGENTS, 'shop/u-1/order_2', 'Refund order 2')
  expect(JSON.parse((await cli('waits', '--json')).out).waits).toHaveLength(1)
  const { code, out } = await cli('cancel', 'shop/u-1/order_2', '--reason', 'fraud', '--json')
  expect({ code, status: JSON.parse(out).status }).toEqual({ code: 0, status: 'idle' })
  expect(JSON.parse((await cli('waits', '--json')).out).waits).toEqual([])
  await cli('start', 'nobody', 'shop/u-1/order_3', 'hello')
  expect(await cli('cancel', 'shop/u-1/order_3')).toMatchObject({
    code: 0,
    out: 'shop/u-1/order_3 has nothing running or waiting\n',
  })
  expect(JSON.parse((await cli('threads', '--state', 'cancelled', '--json')).out).threads).toHaveLength(2)
})

test('an unknown thread is refused with 4', async () => {
  expect(await cli('cancel', 'shop/u-1/order_9')).toMatchObject({ code: 4 })
})
