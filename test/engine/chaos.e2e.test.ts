import { expect, test } from 'vitest'
import { audit } from '../support/chaos/audit.ts'
import { sqliteGround } from '../support/chaos/on-sqlite.ts'
import { reportText } from '../support/chaos/report.ts'
import { storm } from '../support/chaos/storm.ts'
import { places } from '../support/processes/place.ts'

const place = places()
const SEED = Number(process.env['THREADLOG_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

// The short form of `npm run chaos`.
test(`a storm of kills, freezes, doubled and late results loses, doubles and misjudges nothing (THREADLOG_SEED=${SEED})`, async () => {
  const files = place()
  const o = { threads: 40, kills: 10, freezes: 1, lockedFreezes: 0, durationMs: 13_000, idleMs: 1_500, dense: true }
  const left = await storm({ ground: sqliteGround(files), seed: SEED, ...o })
  const result = await audit(left)
  await left.close()
  expect(result.violations, reportText(result)).toEqual([])
  expect(result.counts).toMatchObject({ kills: 10, freezes: 1 })
}, 90_000)
