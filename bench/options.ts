import { parseArgs } from 'node:util'

export const BENCHES = ['append', 'cycle', 'resume', 'fold', 'recovery', 'length', 'listing', 'latency', 'peers'] as const
export type Bench = (typeof BENCHES)[number]

export interface Options {
  benches: Bench[]
  inFlight: number[]
  /** Threads of `append`, `cycle`, `resume` and `peers`; each bench has its own default. */
  threads: number | undefined
  rounds: number
  json: boolean
  log: string
  /** Folder for CPU profiles of the engine under `resume`. */
  profile: string | undefined
  /** Count the engine's requests to its broker, under `resume` and `cycle` on Kafka. */
  requests: boolean
  /** Events of `fold`. */
  events: number
  /** Waiting threads of `recovery`. */
  waits: number[]
  /** Open waits of `listing`. */
  listed: number[]
  /** Events in the thread of `length`. */
  lengths: number[]
  /** Milliseconds of `latency`. */
  delays: number[]
}

export const HELP = `npm run bench -- [bench ...] [options]

benches   append cycle resume fold recovery length listing (all of these unless named); peers; latency, on Kafka only
--in-flight 1,16,64     results or rows on their way at a time
--threads N             threads of append, cycle, resume, peers (4,000; 1,000 at 1 in flight)
--rounds R              do everything R times, benches in turn; adds a line of medians (1)
--json                  one JSON object a line
--log sqlite:PATH       where the files go (sqlite:.tmp/bench/bench.db), or memory, or kafka: append, cycle, resume, peers and latency
                        on a broker that is started for the run, with Java and the jars of scripts/kafka/broker.sh
--events N              events of fold (200,000)
--waits 1000,10000      waiting threads of recovery
--listed 100000         open waits of listing
--lengths 100,10000,100000   events in the thread of length
--delays 1,50,250       milliseconds by which the broker's answers come late in latency
--profile FOLDER        also writes CPU profiles of the engine under resume
--requests              on Kafka: counts the engine's requests by kind, through a proxy, which costs a little`

/** @throws Error with a text for people */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      'in-flight': { type: 'string', default: '1,16,64' },
      threads: { type: 'string' },
      rounds: { type: 'string', default: '1' },
      json: { type: 'boolean', default: false },
      log: { type: 'string', default: 'sqlite:.tmp/bench/bench.db' },
      events: { type: 'string', default: '200000' },
      waits: { type: 'string', default: '1000,10000' },
      listed: { type: 'string', default: '100000' },
      lengths: { type: 'string', default: '100,10000,100000' },
      delays: { type: 'string', default: '1,50,250' },
      profile: { type: 'string' },
      requests: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return undefined
  for (const name of positionals)
    if (!BENCHES.includes(name as Bench)) throw new Error(`no bench ${name}; there are ${BENCHES.join(', ')}`)
  for (const name of positionals as Bench[])
    if (values.log === 'kafka' ? !ON_KAFKA.includes(name) : name === 'latency')
      throw new Error(`${name} does not run on --log ${values.log}`)
  return {
    benches: positionals.length > 0 ? (positionals as Bench[]) : usual(values.log),
    inFlight: counts('in-flight', values['in-flight']),
    threads: values.threads === undefined ? undefined : count('threads', values.threads),
    rounds: count('rounds', values.rounds),
    json: values.json,
    log: values.log,
    profile: values.profile,
    requests: values.requests,
    events: count('events', values.events),
    waits: counts('waits', values.waits),
    listed: counts('listed', values.listed),
    lengths: counts('lengths', values.lengths),
    delays: counts('delays', values.delays),
  }
}

const ON_KAFKA: readonly Bench[] = ['append', 'cycle', 'resume', 'latency', 'peers']

/** Those that run unless others are named. */
const usual = (log: string): Bench[] =>
  BENCHES.filter((name) => name !== 'peers' && (log === 'kafka' ? ON_KAFKA.includes(name) : name !== 'latency'))

const counts = (name: string, list: string): number[] => list.split(',').map((text) => count(name, text))

function count(name: string, text: string): number {
  const value = Number(text.replaceAll('_', ''))
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} ${text}: expected a number above 0`)
  return value
}
