// The benchmarks of threadlog; what they measure is told in BENCHMARKS.md.
//   npm run bench -- [append|cycle|resume|fold|recovery|length|listing|latency|peers ...] [--help]
import { mkdirSync } from 'node:fs'
import { measureCycle } from './cycle.ts'
import { measureFloor } from './floor.ts'
import { measureFold } from './fold.ts'
import { measureKafkaFloor, measureLatency } from './kafka/measure.ts'
import { measureLength } from './length.ts'
import { measureListing } from './listing.ts'
import { Logs } from './logs.ts'
import { type Bench, HELP, type Options, parseOptions } from './options.ts'
import { measureRestate } from './peers.ts'
import { measureRecovery } from './recovery.ts'
import { type Line, Report } from './report.ts'
import { type Measured, measureResume } from './resume.ts'
import { Rounds } from './rounds.ts'
import { load, settingsOf } from './settings.ts'

/** Threads of the run whose only purpose is the size of a row. */
const PROBE = { threads: 50, warmUp: 10, inFlight: 8 }

const options = readOptions()
const logs = await Logs.open(options.log)
if (options.profile) mkdirSync(options.profile, { recursive: true })
const report = new Report(options.json)
process.on('exit', () => logs.close())
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))

const settings = settingsOf(logs)
report.say(
  Object.entries(settings)
    .map(([name, value]) => `${name} ${value}`)
    .join(' · '),
)
const rounds = new Rounds(report)
const rowBytes = await rowSize()
for (let round = 1; round <= options.rounds; round++) for (const bench of options.benches) await measure(bench, round)
rounds.summarise()
// The broker's proxy listens until then.
process.exit()

function readOptions(): Options {
  try {
    const read = parseOptions(process.argv.slice(2))
    if (read) return read
    console.log(HELP)
    process.exit()
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`)
    process.exit(2)
  }
}

/** Mean size of the rows a resume writes, so that the floor writes such rows too. */
async function rowSize(): Promise<number> {
  if (!options.benches.some((bench) => ['append', 'cycle', 'resume', 'peers'].includes(bench))) return 0
  const { details } = await measureResume({ log: 'memory', ...PROBE })
  return Math.round(details['row_bytes'] ?? 0)
}

async function measure(bench: Bench, round: number): Promise<void> {
  if (bench === 'fold') return add(bench, round, options.events, null, await measureFold(logs, options.events))
  if (bench === 'length') {
    for (const events of options.lengths) add(bench, round, 1, 1, await measureLength(logs, events))
    return
  }
  if (bench === 'listing') {
    for (const waits of options.listed) add(bench, round, waits, 1, await measureListing(logs, waits))
    return
  }
  if (bench === 'recovery') {
    if (logs.kind === 'memory') return report.say('recovery: a log in memory does not survive its process')
    for (const waits of options.waits)
      for (const [name, measured] of Object.entries(await measureRecovery(logs, waits))) add(name, round, waits, null, measured)
    return
  }
  if (bench === 'latency') {
    for (const delay of options.delays) add(bench, round, 1, 1, await measureLatency(logs, delay))
    return
  }
  for (const inFlight of options.inFlight) await measureAt(bench, round, inFlight)
}

async function measureAt(bench: Bench, round: number, inFlight: number): Promise<void> {
  const threads = options.threads ?? (inFlight === 1 ? 1_000 : 4_000)
  const warmUp = Math.min(300, threads)
  const floor = await floorAt(round, inFlight, threads)
  if (bench === 'append') return
  const common = { log: await logs.next(options.requests), threads, warmUp, inFlight, requests: requestCounter() }
  if (bench === 'cycle') return add(bench, round, threads, inFlight, await measureCycle(common), floor)
  const profile = bench === 'resume' && options.profile ? `${options.profile}/resume-${inFlight}.cpuprofile` : undefined
  add('resume', round, threads, inFlight, await measureResume({ ...common, profile }), floor)
  if (bench === 'peers')
    add('restate', round, threads, inFlight, await measureRestate(logs.newFolder('restate'), { threads, warmUp, inFlight }))
}

/** What the engine has asked the broker so far, where that is wanted. */
function requestCounter(): (() => ReadonlyMap<string, number>) | undefined {
  const { broker } = logs
  return options.requests && broker ? () => broker.proxy.requests.get('threadlog') ?? new Map() : undefined
}

/** The floor at that number in flight, measured once a round. */
async function floorAt(round: number, inFlight: number, threads: number): Promise<number> {
  const known = report.lines.find((line) => line.bench === 'append' && line.round === round && line.in_flight === inFlight)
  if (known) return known.per_second as number
  const rows = inFlight === 1 ? Math.min(3_000, threads * 10) : threads * 10
  const measured = logs.broker
    ? await measureKafkaFloor(logs.broker, { records: rows, recordBytes: rowBytes, inFlight })
    : await measureFloor({ file: logs.newFile(), streams: threads, rows, rowBytes, inFlight })
  add('append', round, threads, inFlight, measured)
  return measured.per_second as number
}

function add(bench: string, round: number, threads: number, inFlight: number | null, measured: Measured, floor?: number): void {
  const line: Line = {
    bench,
    log: bench === 'restate' ? 'restate' : logs.kind,
    threads,
    in_flight: inFlight,
    per_second: measured.per_second,
    p50_ms: measured.p50_ms,
    p99_ms: measured.p99_ms,
    rows_per_second: measured.rows_per_second,
    floor_per_second: floor ?? null,
    efficiency: floor && measured.per_second ? (measured.per_second * 10) / floor : null,
    settings: { ...settings, load: load(), row_bytes: rowBytes },
    round,
    details: measured.details,
  }
  rounds.add(line)
  logs.remove()
}
