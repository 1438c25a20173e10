import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { canonicalJson, fatal, isThreadlogError } from '../../src/base/index.ts'
import { type LogBackend, openMemoryLog, openSqliteLog, type TopicRecord, type Topics } from '../../src/log/index.ts'
import { IntakeRig, payout, withTopics } from '../engine/intake-rig.ts'

const RUNS = Math.ceil(Number(process.env['THREADLOG_PROP_RUNS'] ?? 3_000) / 10)

interface Sent {
  wait: number
  value: string
  id: string | undefined
}

const sent: fc.Arbitrary<Sent> = fc.record({
  wait: fc.nat(2),
  value: fc.constantFrom('a', 'b'),
  id: fc.constantFrom(undefined, 'r1', 'r2'),
})
/** The process dies in its n-th transaction of receipts: before the log has it, or before it hears so. */
const deaths = fc.array(fc.constantFrom('before', 'after', 'no'), { maxLength: 5 })

/** What each record must be told, in order: the first one answers its wait. */
function expected(records: readonly Sent[]): string[] {
  const first = new Map<number, Sent>()
  return records.map((record) => {
    const answered = first.get(record.wait)
    if (!answered) first.set(record.wait, record)
    if (!answered || (answered.value === record.value && record.id !== undefined && answered.id === record.id)) return 'accepted'
    return answered.value === record.value ? 'duplicate' : 'conflict'
  })
}

const isDeath = (error: unknown): boolean => isThreadlogError(error, 'killed')

test('each record has one receipt, and the right one, wherever the intake dies', async () => {
  const played = fc.asyncProperty(fc.array(sent, { minLength: 1, maxLength: 12 }), deaths, async (records, plan) => {
    const rig = await IntakeRig.open()
    try {
      const thread = await rig.thread([{}, {}, {}])
      await rig.send(...records.map(({ wait, value, id }) => ({ ...payout(thread, value, wait), result_id: id })))
      const left = [...plan]
      const transact: Topics['transact'] = async (o) => {
        const death = left.shift()
        if (death === 'before') throw fatal('killed', 'The process is gone.')
        await rig.backend.topics.transact(o)
        if (death === 'after') throw fatal('killed', 'The process is gone.')
      }
      for (let lives = 0; (await rig.receipts()).length < records.length && lives <= plan.length; lives++) {
        const intake = rig.start({ backend: withTopics(rig.backend, { transact }) })
        await Promise.race([intake.done.catch((error) => expect(isDeath(error)).toBe(true)), rig.until(records.length)])
        await intake.close().catch(() => {})
      }
      const receipts = await rig.receipts()
      expect(receipts.map(({ source }) => ('offset' in source ? source.offset : 0))).toEqual(records.map((_, i) => i + 1))
      expect(receipts.map(({ verdict }) => verdict)).toEqual(expected(records))
      expect(await rig.backend.topics.progress('results', 'intake')).toEqual(new Map([[0, BigInt(records.length + 1)]]))
    } finally {
      await rig.close()
    }
  })
  await fc.assert(played, { numRuns: RUNS })
})

const place = mkdtempSync(join(tmpdir(), 'threadlog-edges-'))
afterAll(() => rmSync(place, { recursive: true, force: true }))

const logs: [string, () => Promise<LogBackend>][] = [
  ['memory', () => openMemoryLog()],
  ['sqlite', () => openSqliteLog({ file: join(place, 'log.db') })],
]

// Receipts and progress written one after the other leave a progress without its receipts when the second write fails, and nobody ever
// makes them. Here the second write is one that no log can do.
test.each(logs)('%s: progress does not move without its receipts', async (_, open) => {
  const backend = await open()
  const { topics } = backend
  try {
    const unwritable = { key: 'k', value: new Uint8Array(1), headers: { n: 1n } } as unknown as TopicRecord
    const progress = { topic: 'results', group: 'intake', next: new Map([[0, 5n]]) } as const
    await expect(topics.transact({ publish: { receipts: [unwritable] }, progress })).rejects.toThrow()
    expect((await topics.progress('results', 'intake')).get(0)).toBeUndefined()
    const moved = { ...progress, expect: new Map([[0, 3n]]) }
    const receipt = { key: 'k', value: new TextEncoder().encode(canonicalJson({})) }
    await expect(topics.transact({ publish: { receipts: [receipt] }, progress: moved })).rejects.toThrow()
    for await (const batch of topics.scan('receipts')) expect(batch).toEqual([])
  } finally {
    await backend.close()
  }
})
