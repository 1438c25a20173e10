import { openSync, writeSync } from 'node:fs'
import { expect, test } from 'vitest'
import { cli } from './support/cli.ts'
import { shopLog } from './support/shop.ts'

test('doctor finds a file sound, and damage in it', async () => {
  const shop = await shopLog()
  try {
    const sound = await cli(['doctor', '-o', 'json'], { log: shop.log })
    expect(sound.code).toBe(0)
    const { ok, checks } = JSON.parse(sound.out)
    expect(ok).toBe(true)
    expect(checks.map(({ check }: { check: string }) => check)).toEqual(
      expect.arrayContaining(['integrity', 'wal', 'owners', 'projectors']),
    )
    // The pages of the middle, where rows and indexes are.
    const file = openSync(shop.log, 'r+')
    for (let page = 20; page < 40; page++) writeSync(file, Buffer.alloc(4096, 0x5a), 0, 4096, page * 4096)
    const damaged = await cli(['doctor'], { log: shop.log })
    expect([damaged.code, damaged.out]).toEqual([1, expect.stringContaining('error')])
  } finally {
    shop.remove()
  }
})
