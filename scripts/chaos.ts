// A storm over one log: many threads, engines and callers killed and frozen at random, results doubled, contradictory and late.
//   npm run chaos -- --minutes 3 [--seed S] [--threads 200] [--kills 50] [--freezes N] [--locked N] [--keep]
// Exit code 1 when anything was lost, doubled or answered wrongly; the folder is then kept.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { audit } from '../test/support/chaos/audit.ts'
import { reportText } from '../test/support/chaos/report.ts'
import { storm } from '../test/support/chaos/storm.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '3' },
    seed: { type: 'string' },
    threads: { type: 'string', default: '200' },
    kills: { type: 'string', default: '50' },
    freezes: { type: 'string' },
    locked: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
})

const number = (name: string, text: string, least: number): number => {
  const n = Number(text)
  if (text.trim() !== '' && Number.isFinite(n) && n >= least) return n
  console.error(`--${name}: a number of at least ${least}, not ${text}`)
  process.exit(2)
}
const minutes = number('minutes', values.minutes, 0.1)
const seed = number('seed', values.seed ?? String(Math.floor(Math.random() * 2 ** 31)), 0)
const folder = mkdtempSync(join(tmpdir(), 'threadlog-chaos-'))
const file = join(folder, 'log.db')
const say = (line: string) => console.error(line)

say(`seed ${seed}, ${minutes} min, in ${folder}`)
const left = await storm({
  file,
  ledger: join(folder, 'ledger.jsonl'),
  seed,
  threads: number('threads', values.threads, 1),
  kills: number('kills', values.kills, 0),
  freezes: number('freezes', values.freezes ?? String(Math.ceil(minutes * 2)), 0),
  lockedFreezes: number('locked', values.locked ?? String(Math.floor(minutes / 2)), 0),
  durationMs: minutes * 60_000,
  onProgress: say,
})
say(`over after ${Math.round(left.seconds)} s; looking at what is left`)
const result = await audit(left, file)
await left.threads.close()
console.log(reportText(result))
console.log(`seed ${seed}; the SQL producer was ${left.language}`)
const bad = result.violations.length > 0
if (bad || values.keep) {
  console.log(`kept: ${folder}`)
  console.log(`look at it with: npm run threadlog -- threads --log sqlite:${file}`)
  console.log(`            and: npm run threadlog -- show <thread> --app storm --log sqlite:${file}`)
} else rmSync(folder, { recursive: true, force: true })
process.exit(bad ? 1 : 0)
