// A storm over one log: many threads, engines and callers killed and frozen at random, results doubled, contradictory and late.
//   npm run chaos -- --minutes 3 [--seed S] [--threads 200] [--kills 50] [--freezes N] [--locked N] [--keep]
//   npm run chaos -- --kafka --minutes 3 [--seed S] [--threads 40] [--kills N] [--freezes N] [--breaks N] [--keep]
// With --kafka on a broker of its own (from jars, so Java is needed), which is killed with SIGKILL every few seconds and started again.
// Exit code 1 when anything was lost, doubled or answered wrongly; the folder is then kept.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { audit } from '../test/support/chaos/audit.ts'
import { kafkaGround } from '../test/support/chaos/on-kafka.ts'
import { sqliteGround } from '../test/support/chaos/on-sqlite.ts'
import { reportText } from '../test/support/chaos/report.ts'
import { storm } from '../test/support/chaos/storm.ts'
import { OwnBroker } from '../test/support/kafka/jars.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '3' },
    seed: { type: 'string' },
    kafka: { type: 'boolean', default: false },
    threads: { type: 'string' },
    kills: { type: 'string' },
    breaks: { type: 'string' },
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
const say = (line: string) => console.error(line)

say(`seed ${seed}, ${minutes} min, in ${folder}`)
const file = join(folder, 'log.db')
const broker = values.kafka ? await OwnBroker.start() : undefined
const ground = broker
  ? await kafkaGround({ broker, prefix: 'storm', folder })
  : sqliteGround({ file, ledger: join(folder, 'ledger.jsonl') })
const left = await storm({
  ground,
  seed,
  threads: number('threads', values.threads ?? (broker ? '40' : '200'), 1),
  kills: number('kills', values.kills ?? (broker ? String(Math.ceil(minutes * 6)) : '50'), 0),
  freezes: number('freezes', values.freezes ?? String(Math.ceil(minutes * 2)), 0),
  lockedFreezes: broker ? 0 : number('locked', values.locked ?? String(Math.floor(minutes / 2)), 0),
  logBreaks: broker ? number('breaks', values.breaks ?? String(Math.ceil(minutes * 9)), 0) : 0,
  stuckMs: broker ? 90_000 : undefined,
  durationMs: minutes * 60_000,
  onProgress: say,
})
say(`over after ${Math.round(left.seconds)} s; looking at what is left`)
const result = await audit(left)
await left.close()
console.log(reportText(result))
console.log(`seed ${seed}; the producer of results was ${left.language}`)
const bad = result.violations.length > 0
if (bad || values.keep) {
  console.log(`kept: ${folder}`)
  if (broker) {
    await broker.kill()
    console.log(`the broker's directory: ${broker.folder}`)
  } else {
    console.log(`look at it with: npm run threadlog -- threads --log sqlite:${file}`)
    console.log(`            and: npm run threadlog -- show <thread> --app storm --log sqlite:${file}`)
  }
} else {
  await broker?.remove()
  rmSync(folder, { recursive: true, force: true })
}
process.exit(bad ? 1 : 0)
