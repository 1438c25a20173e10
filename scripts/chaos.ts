// A storm over one log: many threads, engines and callers killed and frozen at random, results doubled, contradictory and late.
//   npm run chaos -- --help
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { audit } from '../test/support/chaos/audit.ts'
import { kafkaGround } from '../test/support/chaos/on-kafka.ts'
import { sqliteGround } from '../test/support/chaos/on-sqlite.ts'
import { reportText } from '../test/support/chaos/report.ts'
import { storm } from '../test/support/chaos/storm.ts'
import { OwnBroker } from '../test/support/kafka/jars.ts'

const atLeast = (least: number) => (text: string) => {
  const n = Number(text)
  if (text.trim() !== '' && Number.isFinite(n) && n >= least) return n
  throw new InvalidArgumentError(`A number of at least ${least}.`)
}
const o = new Command('npm run chaos --')
  .description(
    'A storm over one log: engines and callers killed and frozen at random. Exit code 1 when anything was lost, doubled or answered wrongly; the folder is then kept.',
  )
  .option('--minutes <n>', 'how long', atLeast(0.1), 3)
  .option('--seed <s>', 'the same plan again (default: a new one)', atLeast(0))
  .option('--kafka', 'on a broker of its own, from jars, that is killed every few seconds and started again')
  .option('--threads <n>', 'threads at a time (default: 200; 40 on Kafka)', atLeast(1))
  .option('--kills <n>', 'processes killed (default: 50; 6 a minute on Kafka)', atLeast(0))
  .option('--freezes <n>', 'processes frozen (default: 2 a minute)', atLeast(0))
  .option('--locked <n>', 'freezes inside of a transaction, on SQLite (default: 1 in two minutes)', atLeast(0))
  .option('--breaks <n>', 'kills of the broker, on Kafka (default: 9 a minute)', atLeast(0))
  .option('--keep', 'keep the folder in any case')
  .parse()
  .opts<{
    minutes: number
    seed?: number
    kafka?: true
    threads?: number
    kills?: number
    freezes?: number
    locked?: number
    breaks?: number
    keep?: true
  }>()
const { minutes, seed = Math.floor(Math.random() * 2 ** 31) } = o
const folder = mkdtempSync(join(tmpdir(), 'threadlog-chaos-'))
const say = (line: string) => console.error(line)

say(`seed ${seed}, ${minutes} min, in ${folder}`)
const file = join(folder, 'log.db')
const broker = o.kafka ? await OwnBroker.start() : undefined
const ground = broker
  ? await kafkaGround({ broker, prefix: 'storm', folder })
  : sqliteGround({ file, ledger: join(folder, 'ledger.jsonl') })
const left = await storm({
  ground,
  seed,
  threads: o.threads ?? (broker ? 40 : 200),
  kills: o.kills ?? (broker ? Math.ceil(minutes * 6) : 50),
  freezes: o.freezes ?? Math.ceil(minutes * 2),
  lockedFreezes: broker ? 0 : (o.locked ?? Math.floor(minutes / 2)),
  logBreaks: broker ? (o.breaks ?? Math.ceil(minutes * 9)) : 0,
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
if (bad || o.keep) {
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
