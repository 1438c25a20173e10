import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { audit } from '../../support/chaos/audit.ts'
import { kafkaGround } from '../../support/chaos/on-kafka.ts'
import { reportText } from '../../support/chaos/report.ts'
import { storm } from '../../support/chaos/storm.ts'
import { kcat, needed } from '../../support/clients/programs.ts'
import { describeOwnKafka, ownBroker } from '../../support/kafka/index.ts'

const SEED = Number(process.env['THREADLOG_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

describeOwnKafka('chaos', () => {
  // The short form of `npm run chaos -- --kafka`.
  test(`a storm over engines, callers and their broker loses, doubles and misjudges nothing (THREADLOG_SEED=${SEED})`, async (context) => {
    needed(await kcat(), context)
    await using broker = await ownBroker()
    const folder = mkdtempSync(join(tmpdir(), 'threadlog-chaos-'))
    const ground = await kafkaGround({ broker, prefix: 'storm', folder })
    const o = {
      threads: 16,
      kills: 3,
      freezes: 1,
      lockedFreezes: 0,
      logBreaks: 4,
      durationMs: 25_000,
      idleMs: 1_500,
      dense: true,
    }
    const left = await storm({ ground, seed: SEED, ...o })
    const result = await audit(left)
    await left.close()
    expect(result.violations, reportText(result)).toEqual([])
    expect(result.counts).toMatchObject({ kills: 3, freezes: 1 })
    expect(result.counts['logBreaks']).toBeGreaterThan(0)
    rmSync(folder, { recursive: true, force: true })
  }, 240_000)
})
