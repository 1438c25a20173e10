import { setTimeout as delay } from 'node:timers/promises'
import { continuationSchemaId, type ResultRecord } from '../../../src/continuations/index.ts'
import type { Effect } from '../processes/ledger.ts'
import { CARRIER } from './agent.ts'
import { FREIGHT, isEarly, jobId } from './jobs.ts'
import { type Orders, threadOf } from './orders.ts'
import { type Card, dealer } from './plan.ts'
import type { Sending, Submissions } from './submissions.ts'
import type { Request, Watcher } from './watcher.ts'

export interface CarrierOptions {
  orders: Orders
  watcher: Watcher
  submissions: Submissions
  random: () => number
  dense: boolean
}

/** Answers every request of a storm, the carrier's and a person's, well or badly, as the cards say. */
export class Carrier {
  readonly #o: CarrierOptions
  readonly #deal: () => Card
  readonly #busy = new Set<Promise<void>>()
  readonly dealt: Partial<Record<Card | 'job' | 'early', number>> = {}
  readonly #finished = new Set<string>()
  #count = 0

  constructor(options: CarrierOptions) {
    this.#o = options
    this.#deal = dealer(options.random, options.dense)
  }

  /** Takes a request. What goes wrong is told to `failed`. */
  take(request: Request, failed: (error: unknown) => void): void {
    this.#do(this.#work(request), failed)
  }

  /** Takes a job that has begun. One that is done at once has its result here and now, before its wait, if one will ever be. */
  begun({ call, key }: Effect, failed: (error: unknown) => void): void {
    const [order = ''] = call.split('/')
    const { dense } = this.#o
    if (isEarly(order, dense)) this.#do(this.#finish(jobId(order, key, dense), true), failed)
  }

  #do(work: Promise<void>, failed: (error: unknown) => void): void {
    const busy = work.catch(failed)
    this.#busy.add(busy)
    void busy.finally(() => this.#busy.delete(busy))
  }

  #work(request: Request): Promise<void> {
    if (request.provider === FREIGHT) return this.#finish(request.external_id, false)
    return request.provider === CARRIER ? this.#answer(request) : this.#decide(request)
  }

  /** The result of a job, once, however often it was begun and asked for. */
  async #finish(job: string, early: boolean): Promise<void> {
    if (this.#finished.has(job)) return
    this.#finished.add(job)
    const card = early ? 'early' : 'job'
    this.dealt[card] = (this.dealt[card] ?? 0) + 1
    const record = { provider: FREIGHT, external_id: job, result_id: `done-${job}`, result: { load: job } }
    if (!early) await delay(this.#o.random() * 40)
    await this.#o.submissions.send(record, { early }).verdict
  }

  /** Resolves when every request taken so far has been dealt with. */
  async idle(): Promise<void> {
    while (this.#busy.size > 0) await Promise.all(this.#busy)
  }

  async #decide({ continuation_id: id, proposal_digest: digest }: Request): Promise<void> {
    await delay(this.#o.random() * 40)
    await this.#o.submissions.decide(this.#o.random() < 0.25 ? 'deny' : 'approve', id, digest)
  }

  async #answer(request: Request): Promise<void> {
    const card = this.#deal()
    this.dealt[card] = (this.dealt[card] ?? 0) + 1
    const { random, submissions, orders, watcher } = this.#o
    const { continuation_id: id } = request
    const thread = threadOf(request.arguments.order)
    const n = this.#count++
    const result = (parcel: string, resultId?: string): ResultRecord => ({
      provider: CARRIER,
      ...(random() < 0.5 ? { continuation_id: id } : { external_id: id }),
      ...(resultId === undefined ? {} : { result_id: resultId }),
      result: { parcel },
    })
    const send = (record: ResultRecord, o: Sending = {}) => submissions.send(record, o).verdict
    await delay(random() * 40)
    switch (card) {
      case 'plain':
        return void (await send(result(`P-${n}`, random() < 0.5 ? `r-${n}` : undefined), { first: true }))
      case 'failure': {
        const { result: _, ...address } = result('')
        return void (await send({ ...address, failure: { code: 'carrier_down' } }, { first: true }))
      }
      case 'again':
        return this.#twice(result(`P-${n}`, `r-${n}`), result(`P-${n}`, `r-${n}`))
      case 'double':
        return this.#twice(result(`P-${n}`, `r-${n}`), result(`P-${n}`, `r-${n}-again`))
      case 'contradiction':
        return this.#twice(result(`P-${n}`, `r-${n}`), result(`Q-${n}`, random() < 0.5 ? `r-${n}` : `r-${n}-other`))
      case 'late-cancelled':
        await orders.cancel(thread, `cancel-${n}`)
        return void (await send(result(`P-${n}`)))
      case 'late-superseded':
        await orders.give(thread, `s${n}`, n)
        await watcher.withdrawn.when(id)
        return void (await send(result(`P-${n}`)))
      case 'race-cancelled': {
        const sent = send(result(`P-${n}`))
        await delay(random() * 15)
        await Promise.all([sent, orders.cancel(thread, `cancel-${n}`)])
        return
      }
      case 'noise':
        await this.#noise(id, n)
        return void (await send(result(`P-${n}`)))
    }
  }

  /** The second one after the first has its verdict, or at once, perhaps by another way. */
  async #twice(a: ResultRecord, b: ResultRecord): Promise<void> {
    const { random, submissions } = this.#o
    const inOrder = random() < 0.6
    const first = submissions.send(a, { first: inOrder })
    if (inOrder) await first.verdict
    else await delay(random() * 10)
    await Promise.all([first.verdict, submissions.send(b).verdict])
  }

  /** Records no wait will ever take. */
  async #noise(id: string, n: number): Promise<void> {
    const { submissions, random } = this.#o
    const good: ResultRecord = { provider: CARRIER, continuation_id: id, result: { parcel: `N-${n}` } }
    const kinds: (readonly [ResultRecord, Sending])[] = [
      [good, { fixed: 'unreadable', way: random() < 0.5 ? 'sql' : 'topic', raw: Buffer.from('{"provider":') }],
      [
        { ...good, provider: 'human', result: { approved: true } },
        { fixed: 'forbidden', way: random() < 0.5 ? 'sql' : 'http' },
      ],
      [{ ...good, continuation_id: `${id}x` }, { fixed: 'unknown' }],
      [{ ...good, provider: 'other' }, { fixed: 'unknown' }],
      [{ ...good, schema_id: continuationSchemaId({ type: 'string' }) }, { fixed: 'schema-mismatch' }],
      [{ ...good, result: { parcel: n } }, { misfit: true }],
    ]
    const [record, sending] = kinds[Math.floor(random() * kinds.length)] as (typeof kinds)[number]
    await submissions.send(record, sending).verdict
  }
}
