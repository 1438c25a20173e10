import type { RunHandle, RunResult, Wait } from '../../src/index.ts'
import { text } from './notes.ts'
import type { World } from './world.ts'

export const CUSTOMER = { user: 'u-17', thread: 'order_991' }
export const INPUT = 'Please refund order 991. The cups arrived broken.'
const PATIENCE_MS = 60_000

/** A moment of the story worth marking in the timeline. */
export interface Moment {
  time: number
  what: string
}

export interface Story {
  result: RunResult
  moments: Moment[]
  /** What the payout process was told about its results. */
  told: { result_id: string; verdict: string }[]
}

/** `headline` opens a chapter, `line` goes on with it. */
export interface Narrator {
  headline(words: string): void
  line(words: string): void
}

/** A refund, three deaths, and a payout that is sent three times. */
export async function play(world: World, narrator: Narrator): Promise<Story> {
  const teller = new Teller(world, narrator)
  narrator.headline(`A customer writes: “${INPUT}”`)
  await world.startEngine('lookup_order')
  const run = await world.threads.start({ agent: 'support', ...CUSTOMER, input: INPUT })
  await teller.dieInLookup()
  const result = await teller.answerWaits(run)
  return { result, moments: teller.moments, told: await teller.receipts() }
}

class Teller {
  readonly moments: Moment[] = []
  readonly #world: World
  readonly #narrator: Narrator

  constructor(world: World, narrator: Narrator) {
    this.#world = world
    this.#narrator = narrator
  }

  async dieInLookup(): Promise<void> {
    const { engine } = this.#world
    this.#narrator.headline('The model calls lookup_order. It runs, and before it can return:')
    await engine?.says('effect', (line) => line['tool'] === 'lookup_order', PATIENCE_MS)
    await this.#kill('in the middle of lookup_order')
    const next = await this.#restart()
    await next.says('effect', (line) => line['tool'] === 'lookup_order', PATIENCE_MS)
    this.#narrator.line('lookup_order is declared retryable: it ran again, under the same idempotency key')
  }

  /** Until the run ends: a person decides on approvals, the payout process answers for itself; each time with the engine dead. */
  async answerWaits(run: RunHandle): Promise<RunResult> {
    const ended = run.result({ signal: AbortSignal.timeout(PATIENCE_MS) })
    ended.catch(() => {})
    const waits = this.#world.threads.waits({ ...CUSTOMER, follow: true })[Symbol.asyncIterator]()
    for (;;) {
      const next = await Promise.race([waits.next(), ended.then(() => undefined)])
      if (next === undefined || next.done) return ended
      await (next.value.kind === 'approval' ? this.#approve(next.value) : this.#payOut(next.value))
    }
  }

  async #approve(wait: Wait): Promise<void> {
    this.#narrator.headline(`The model proposes ${wait.tool} ${text(wait.arguments)}; a person must approve.`)
    await this.#kill('while the approval waits')
    const { verdict } = await this.#world.threads.approve(wait.id, { digest: wait.digest, by: 'shift-lead' })
    this.#narrator.line(`no engine is alive; shift-lead approves: ${verdict}`)
    await this.#restart()
  }

  async #payOut(wait: Wait): Promise<void> {
    const { payouts } = this.#world
    this.#narrator.headline(`The model calls ${wait.tool} ${text(wait.arguments)}; the payout process must answer.`)
    await payouts?.says('request')
    await this.#kill('while the payout waits')
    await payouts?.says('answered')
    this.#narrator.line('no engine is alive; the payout process sends its result, then the same again, then another')
    await this.#restart()
  }

  async receipts(): Promise<Story['told']> {
    const { payouts } = this.#world
    for (const id of ['bank-1', 'bank-1-again', 'bank-2']) await payouts?.says('receipt', (line) => line['result_id'] === id)
    const lines = payouts?.lines.filter((line) => line.event === 'receipt') ?? []
    return lines.map((line) => ({ result_id: String(line['result_id']), verdict: String(line['verdict']) }))
  }

  async #kill(when: string): Promise<void> {
    const pid = await this.#world.killEngine()
    this.moments.push({ time: Date.now(), what: `kill -9 ${when}` })
    this.#narrator.line(`kill -9 ${pid}, ${when}`)
  }

  async #restart() {
    const engine = await this.#world.startEngine()
    this.#narrator.line(`a new engine starts: process ${engine.pid}`)
    return engine
  }
}
