// A support agent settles a refund; its engine is killed three times. Nothing is lost, nothing happens twice.
//   npm run demo -- --help
import { Command, Option } from 'commander'
import { checkAll } from './checks.ts'
import { recordsOf, timeline, verify } from './facts.ts'
import { narrate, report } from './print.ts'
import { CUSTOMER, INPUT, play } from './story.ts'
import { World } from './world.ts'

const o = new Command('npm run demo --')
  .description('A support agent settles a refund; its engine is killed three times. Exit code 1 when a check fails.')
  .option('--json', 'everything that happened, as one JSON document')
  .option('--keep', 'leave the folder with the log')
  .option('--dir <folder>', 'put the log there, and leave it')
  .addOption(
    new Option('--payouts <language>', 'the payout process (default: python, if there is one)').choices(['python', 'node']),
  )
  .option('--kafka', 'on a broker that is found or started, instead of a SQLite file')
  .parse()
  .opts<{ json?: true; keep?: true; dir?: string; payouts?: 'python' | 'node'; kafka?: true }>()
// Whatever is open is cleared away by listeners of `exit`.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, (_: NodeJS.Signals, number: number) => process.exit(128 + number))

const started = performance.now()
await using world = await World.open(o)
const language = await world.startPayouts(o.payouts)
const narrator = narrate(!o.json)
narrator.line(`${world.place.title} · ${world.model} · payouts in ${language}`)
const { result, moments, told } = await play(world, narrator)
await world.publishedTheEnd()
await world.killEngine()
const records = await recordsOf(world.threads, CUSTOMER)
const facts = {
  input: INPUT,
  model: world.model,
  payouts: language,
  result: { status: result.status, output: result.output, failure: result.failure },
  effects: world.effects.all(),
  told,
  kills: moments,
  timeline: timeline(records),
  receipts: await world.place.receipts(world.threads.backend),
  checkpoints: await world.place.checkpoints(world.threads.backend),
  verify: await verify(world.threads, CUSTOMER, records, world.place.address),
}
const checks = checkAll(facts)
const all = { ...facts, checks, seconds: Math.round(performance.now() - started) / 1000, dir: o.keep || o.dir ? world.dir : null }
if (o.json) process.stdout.write(`${JSON.stringify(all, null, 2)}\n`)
else report(all)
if (checks.some((check) => !check.ok)) process.exitCode = 1
