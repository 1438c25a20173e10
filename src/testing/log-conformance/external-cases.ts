import assert from 'node:assert/strict'
import type { LogCase } from './suite.ts'
import { assertUnbroken, grow, newStream, readStream, take } from './writing.ts'

const VALUES: readonly (string | Uint8Array)[] = [
  '{"provider":"payouts","external_id":"e-1","result":{"ok":true,"note":"Grüße 😀"}}',
  'not JSON at {all',
  '',
  new Uint8Array([0, 0, 0, 0, 7, 255, 254, 128, 10]),
]

export const externalCases: LogCase[] = [
  {
    name: 'results of programs in other languages arrive while somebody waits, byte for byte, malformed ones too',
    needs: 'external-writers',
    async run({ open, place }) {
      const { topics } = await open()
      const languages = Object.entries(place.external!)
      const begin = Date.now()
      const arriving = take(topics.subscribe('results', { group: 'intake' }), languages.length * VALUES.length)
      for (const [, write] of languages) for (const value of VALUES) await write(value)
      const results = await arriving
      const expected = languages.flatMap(() => VALUES.map((value) => Buffer.from(value as string).toString('hex')))
      assert.deepEqual(
        results.map((result) => Buffer.from(result.value).toString('hex')),
        expected,
      )
      for (const { time } of results) assert.ok(time >= begin - 2_000 && time <= Date.now() + 2_000)
    },
  },
  {
    name: 'a record no build can decode is a defect of its stream, and the others go on',
    needs: 'external-writers',
    async run({ open, place }) {
      const log = await open()
      const [broken, sound] = [newStream(), newStream()]
      await grow(log.events, broken, 2)
      await grow(log.events, sound, 1)
      const from = await log.events.barrier()
      await place.damage!(broken, 3, new Uint8Array([0, 0, 0, 0, 99, 1, 2, 3]))
      await grow(log.events, sound, 1)
      const [bad, good] = await take(log.events.follow({ from }), 2)
      assert.deepEqual([bad?.stream, bad?.version, bad?.event], [broken, 3, undefined])
      assert.ok(bad?.defect?.code)
      assert.match(bad.hash, /^[0-9a-f]{64}$/)
      assert.deepEqual([good?.stream, good?.version, good?.defect], [sound, 2, undefined])
      assert.deepEqual(
        (await readStream(log.events, broken)).map((event) => event.defect === undefined),
        [true, true, false],
      )
      assertUnbroken(await readStream(log.events, sound))
      // The damaged stream can still be appended to: that is how it is repaired.
      await grow(log.events, broken, 1)
      assert.equal((await log.events.head(broken))?.version, 4)
    },
  },
]
