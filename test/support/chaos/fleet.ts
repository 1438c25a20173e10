import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Child } from '../processes/child.ts'
import type { Ground } from './ground.ts'

export interface FleetOptions {
  ground: Ground
  paceMs: number
  engines: number
  apis: number
  random: () => number
  dense: boolean
}

/** What is known of one owner of runs: when it could not act. Epoch milliseconds. */
export interface Life {
  killed: number | undefined
  frozen: [from: number, to: number][]
}

interface Slot {
  readonly name: string
  child: Child | undefined
  url: string
  owner: string
  frozen: boolean
}

const TOKEN = 'storm'

/** The processes of a storm: engines and API callers on one file, each killed, frozen and started again. */
export class Fleet {
  readonly #o: FleetOptions
  readonly #engines: Slot[] = []
  readonly #apis: Slot[] = []
  #stopped = false
  readonly lives = new Map<string, Life>()
  readonly counts = {
    logBreaks: 0,
    kills: 0,
    apiKills: 0,
    freezes: 0,
    lockedFreezes: 0,
    startsRepeated: 0,
    asksRepeated: 0,
    postsRepeated: 0,
  }

  private constructor(options: FleetOptions) {
    this.#o = options
  }

  static async start(options: FleetOptions): Promise<Fleet> {
    // Children start in a third of the time, and this storm starts many.
    process.env['NODE_COMPILE_CACHE'] ??= join(options.ground.folder, 'compiled')
    const fleet = new Fleet(options)
    const slot = (name: string): Slot => ({ name, child: undefined, url: '', owner: '', frozen: false })
    for (let i = 0; i < options.engines; i++) fleet.#engines.push(slot(`engine-${i}`))
    for (let i = 0; i < options.apis; i++) fleet.#apis.push(slot(`api-${i}`))
    await Promise.all([
      ...fleet.#engines.map((each) => fleet.#startEngine(each)),
      ...fleet.#apis.map((each) => fleet.#startApi(each)),
    ])
    return fleet
  }

  async #startEngine(slot: Slot): Promise<void> {
    const child = await this.#child('../chaos/engine.ts', { ...this.#options(slot), token: TOKEN })
    const { url, owner } = await child.must<{ url: string; owner: string }>('about')
    this.lives.set(owner, { killed: undefined, frozen: [] })
    Object.assign(slot, { child, url, owner })
  }

  #options({ name }: Slot): object {
    const { ground, paceMs, dense } = this.#o
    return { log: ground.address(name), ledger: ground.ledger, paceMs, dense }
  }

  async #startApi(slot: Slot): Promise<void> {
    slot.child = await this.#child('../chaos/api.ts', this.#options(slot))
  }

  /** A process that cannot open the log yet (a frozen one may hold its lock) is started again, as a supervisor does. */
  async #child(script: string, options: object): Promise<Child> {
    for (let tries = 1; ; tries++)
      try {
        return await Child.start(script, options)
      } catch (error) {
        if (tries === 5) throw error
        this.counts.startsRepeated++
      }
  }

  /** Kills an engine with SIGKILL, if one can be, and starts another in its place a little later. */
  async killEngine(): Promise<boolean> {
    const slot = this.#pick(this.#engines)
    if (!slot) return false
    const { child, owner } = slot
    slot.child = undefined
    const life = this.lives.get(owner)
    if (life) life.killed = Date.now()
    await child?.kill()
    this.counts.kills++
    await delay(this.#o.random() * 300)
    await this.#startEngine(slot)
    return true
  }

  async killApi(): Promise<boolean> {
    const slot = this.#pick(this.#apis)
    if (!slot) return false
    const { child } = slot
    slot.child = undefined
    await child?.kill()
    this.counts.apiKills++
    await this.#startApi(slot)
    return true
  }

  /** Stops an engine where it stands until its runs have been taken over, then lets it go on. `locked`: in the middle of a commit. */
  async freeze(locked: boolean): Promise<boolean> {
    const slot = this.#pick(this.#engines)
    const pid = slot?.child?.pid
    if (!slot || pid === undefined) return false
    const { isLocked, freezeMs } = this.#o.ground
    slot.frozen = true
    const from = Date.now()
    try {
      let held = false
      for (let tries = 0; tries < 500; tries++) {
        process.kill(pid, 'SIGSTOP')
        held = (await isLocked?.()) ?? false
        if (held === locked) break
        process.kill(pid, 'SIGCONT')
        await delay(this.#o.random() * 8)
      }
      process.kill(pid, 'SIGSTOP')
      this.counts[held ? 'lockedFreezes' : 'freezes']++
      await delay(freezeMs[0] + this.#o.random() * (freezeMs[1] - freezeMs[0]))
    } finally {
      process.kill(pid, 'SIGCONT')
      this.lives.get(slot.owner)?.frozen.push([from, Date.now()])
      slot.frozen = false
    }
    return true
  }

  get stopped(): boolean {
    return this.#stopped
  }

  /** Kills what the log runs on, and starts it again. */
  async breakLog(): Promise<boolean> {
    if (this.#stopped) return true
    await this.#o.ground.breakLog?.()
    this.counts.logBreaks++
    return true
  }

  #pick(slots: Slot[]): Slot | undefined {
    const ready = slots.filter((slot) => slot.child && !slot.frozen)
    return ready[Math.floor(this.#o.random() * ready.length)]
  }

  /** Asks API callers until one has answered. Only what may be repeated is asked again. */
  async ask<T>(call: string, argument: unknown): Promise<T> {
    while (!this.#stopped) {
      const child = this.#pick(this.#apis)?.child
      const answer = await child?.ask<{ value: T } | { again: string }>(call, argument)
      if (answer && 'value' in answer) {
        if ('value' in answer.value) return answer.value.value
      } else if (answer && answer.code !== 'exited') throw new Error(`${call}: ${answer.code} ${answer.message}`)
      this.counts.asksRepeated++
      await delay(20)
    }
    return new Promise(() => {})
  }

  /** Posts a result to any engine until one has answered with a receipt; `key` makes it one submission. */
  async post(record: string, key: string): Promise<string> {
    while (!this.#stopped) {
      const slot = this.#pick(this.#engines)
      const verdict = slot && (await post(slot.url, record, key))
      if (verdict) return verdict
      this.counts.postsRepeated++
      await delay(20)
    }
    return new Promise(() => {})
  }

  /** What engines that are alive met and got over, by code. */
  async problems(): Promise<Record<string, number>> {
    const sum: Record<string, number> = {}
    for (const { child } of this.#engines) {
      const answer = await child?.ask<Record<string, number>>('problems')
      if (answer && 'value' in answer) for (const [what, n] of Object.entries(answer.value)) sum[what] = (sum[what] ?? 0) + n
    }
    return sum
  }

  /** Closes everything in good order. @throws if a process does not */
  async close(): Promise<void> {
    this.#stopped = true
    for (const { child } of [...this.#apis, ...this.#engines]) {
      await child?.must('close')
      await child?.kill()
    }
  }

  /** Whatever is still there. Who waits for an answer then waits for ever. */
  async killAll(): Promise<void> {
    this.#stopped = true
    for (const { child } of [...this.#apis, ...this.#engines]) await child?.kill()
  }
}

async function post(url: string, body: string, key: string): Promise<string | undefined> {
  try {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', 'idempotency-key': key }
    const response = await fetch(`${url}/results`, { method: 'POST', headers, body, signal: AbortSignal.timeout(4_000) })
    const { verdict } = (await response.json()) as { verdict?: string }
    return verdict
  } catch {
    // Killed, frozen, or too slow: the same submission goes to another one.
    return undefined
  }
}
