import { setTimeout as delay } from 'node:timers/promises'
import { openThreadlog, type Threadlog } from '../../../src/index.ts'
import { seeded } from '../processes/place.ts'
import { stormAgent } from './agent.ts'
import { Carrier } from './carrier.ts'
import { Fleet } from './fleet.ts'
import { type Ground, openGround } from './ground.ts'
import { followJobs } from './jobs.ts'
import { Orders, type Turn } from './orders.ts'
import { type Submission, Submissions } from './submissions.ts'
import { Watcher } from './watcher.ts'
import { weather } from './weather.ts'

export interface StormOptions {
  /** Where it is let loose; new. */
  ground: Ground
  seed: number
  threads: number
  kills: number
  freezes: number
  /** Freezes in the middle of a commit, beside the others: nobody can write until the process goes on. */
  lockedFreezes: number
  logBreaks?: number
  durationMs: number
  engines?: number
  apis?: number
  /** Upper bound of the milliseconds a tool spends before and after its effect. */
  paceMs?: number
  /** Upper bound of the milliseconds between two orders of a thread. */
  idleMs?: number
  /** More of the rare cards, for a storm of few orders. */
  dense?: boolean
  /** Milliseconds without an event after which what has not ended is stuck. */
  stuckMs?: number
  onProgress?: (line: string) => void
}

/** What a storm leaves behind, for the audit. */
export interface Aftermath {
  threads: Threadlog
  ground: Ground
  /** The producer of results makes one record of each insert. */
  once: boolean
  turns: readonly Turn[]
  sent: readonly Submission[]
  fleet: Fleet
  watcher: Watcher
  dealt: Carrier['dealt']
  /** What was seen to be wrong on the way. */
  violations: string[]
  language: string
  /** More of the rare cards and jobs than a long storm has. */
  dense: boolean
  problems: Record<string, number>
  seconds: number
  close(): Promise<void>
}

/** Milliseconds after which an owner whose process was frozen is taken for dead, the cancel of its run is carried out, and some. */
const STUCK_MS = 60_000

/** Runs a storm until every order has ended and all processes are closed. The log stays open for whoever looks at what is left. */
export async function storm(o: StormOptions): Promise<Aftermath> {
  const { ground, seed, paceMs = 15, engines = 3, apis = 2, dense = false } = o
  const agents = [stormAgent({ ledger: ground.ledger, paceMs: 0, dense })]
  const backend = await openGround(ground.address('watcher'))
  const threads = await openThreadlog({ log: backend, application: 'storm', agents })
  const close = async () => {
    await threads.close()
    await backend.close()
  }
  const violations: string[] = []
  const violate = (what: string) => {
    violations.push(what)
    o.onProgress?.(`VIOLATION ${what}`)
  }
  const fleet = await Fleet.start({ ground, paceMs, engines, apis, random: seeded(seed + 1), dense })
  const inserter = await ground.produce()
  const watcher = new Watcher(threads.backend, (request) =>
    carrier.take(request, (error) => violate(`answering failed: ${String(error)}`)),
  )
  watcher.done.catch((error: unknown) => violate(`following the log ended: ${String(error)}`))
  const submissions = new Submissions({ fleet, inserter, watcher, random: seeded(seed + 2) })
  const orders = new Orders(fleet, watcher)
  const carrier = new Carrier({ orders, watcher, submissions, random: seeded(seed + 3), dense })
  const begun = Date.now()
  const over = new AbortController()
  const jobs = followJobs(ground.ledger, over.signal, (job) =>
    carrier.begun(job, (error) => violate(`a job failed: ${String(error)}`)),
  ).catch((error: unknown) => violate(`following jobs ended: ${String(error)}`))
  const tell = () => o.onProgress?.(progressLine(begun, fleet, watcher, orders.turns, submissions.sent))
  const telling = setInterval(tell, 5_000)
  try {
    const all = Promise.all([
      weather(fleet, ground, { ...o, happened: () => watcher.seen.events + submissions.sent.length, random: seeded(seed + 4) }),
      ...Array.from({ length: o.threads }, (_, i) => thread(i, orders, o, begun)),
    ]).then(() => carrier.idle())
    all.catch((error: unknown) => violate(`the storm broke off: ${String(error)}`))
    await Promise.race([all.catch(() => {}), stuck(begun + o.durationMs, o.stuckMs ?? STUCK_MS, watcher)])
    for (const turn of orders.turns) if (!turn.ended) violate(`${turn.order} has not ended`)
    const problems = await fleet.problems()
    await inserter.close()
    await fleet.close().catch((error: unknown) => violate(`closing failed: ${String(error)}`))
    await watcher.caughtUp()
    tell()
    const seconds = (Date.now() - begun) / 1000
    const { turns } = orders
    const { language, once } = inserter
    const { sent } = submissions
    return {
      threads,
      ground,
      once,
      turns,
      sent,
      fleet,
      watcher,
      dealt: carrier.dealt,
      violations,
      language,
      dense,
      problems,
      seconds,
      close,
    }
  } finally {
    clearInterval(telling)
    over.abort()
    await jobs
    await fleet.killAll()
    await watcher.close().catch(() => {})
  }
}

/** Gives one thread orders until the time is over; some are cancelled at any moment. */
async function thread(i: number, orders: Orders, o: StormOptions, begun: number): Promise<void> {
  const random = seeded(o.seed * 1_000 + i)
  const idleMs = o.idleMs ?? 3_000
  await delay(random() * Math.min(idleMs, o.durationMs / 3))
  for (let turn = 0; Date.now() < begun + o.durationMs; turn++) {
    await orders.give(i, String(turn), i + turn)
    if (random() < 0.02) {
      await delay(random() * 200)
      await orders.cancel(i, `stop-${i}-${turn}`)
    }
    await orders.quiet(i)
    await delay(random() * idleMs)
  }
}

/** Resolves when the time is over and nothing has happened for a while. */
async function stuck(end: number, ms: number, { seen }: Watcher): Promise<void> {
  while (Date.now() < end || Date.now() - seen.lastEventAt < ms) await delay(500)
}

function progressLine(begun: number, fleet: Fleet, { seen }: Watcher, turns: readonly Turn[], sent: readonly unknown[]): string {
  const { logBreaks, kills, apiKills, freezes, lockedFreezes } = fleet.counts
  const ended = turns.filter((turn) => turn.ended).length
  const seconds = Math.round((Date.now() - begun) / 1000)
  return (
    `${seconds} s: ${seen.events} events, orders ${ended}/${turns.length}, results sent ${sent.length}, recoveries ${seen.recoveries}, ` +
    `kills ${kills} engines ${apiKills} callers ${logBreaks} brokers, freezes ${freezes + lockedFreezes} (${lockedFreezes} with the write lock)`
  )
}
