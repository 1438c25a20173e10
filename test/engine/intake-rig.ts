import { systemClock } from '../../src/base/index.ts'
import { decodeReceipt, type Receipt, validatorsOf } from '../../src/continuations/index.ts'
import { type Intake, type IntakeOptions, startIntake } from '../../src/engine/intake.ts'
import type { LogBackend, TopicRecord, Topics } from '../../src/log/index.ts'
import type { ThreadStore } from '../../src/projections/index.ts'
import { HANG_MS } from '../support/hang.ts'
import { type BuiltThread, memoryStore, suspendedThread, TestLookup, type WaitSpec } from '../support/threads.ts'

/** A memory log, threads on it, and a hand on topic `results`. */
export class IntakeRig {
  readonly store: ThreadStore
  readonly lookup = new TestLookup()
  readonly errors: unknown[] = []
  readonly #intakes: Intake[] = []

  private constructor(store: ThreadStore) {
    this.store = store
  }

  static open = async (backend?: LogBackend): Promise<IntakeRig> => new IntakeRig(await memoryStore({ backend }))

  get backend(): LogBackend {
    return this.store.backend
  }

  thread = async (waits: WaitSpec[] = [{}]): Promise<BuiltThread> => this.lookup.add(await suspendedThread(this.store, waits))

  start(o: Partial<IntakeOptions> = {}): Intake {
    const intake = startIntake({
      backend: this.backend,
      store: this.store,
      lookup: this.lookup,
      validators: validatorsOf(),
      application: 'shop',
      standbyMs: 20,
      onError: (error) => this.errors.push(error),
      ...o,
    })
    this.#intakes.push(intake)
    return intake
  }

  /** Appends records to topic `results`; a text stands as it is, an object as JSON. */
  async send(...records: (string | object)[]): Promise<void> {
    const encoded: TopicRecord[] = records.map((record) => ({
      key: 'k',
      value: new TextEncoder().encode(typeof record === 'string' ? record : JSON.stringify(record)),
    }))
    await this.backend.topics.publish('results', encoded)
  }

  async receipts(): Promise<Receipt[]> {
    const receipts: Receipt[] = []
    for await (const batch of this.backend.topics.scan('receipts'))
      receipts.push(...batch.map(({ value }) => decodeReceipt(value)))
    return receipts
  }

  verdicts = async (): Promise<string[]> => (await this.receipts()).map((receipt) => receipt.verdict)

  /** Resolves when `n` receipts are there; fails when nothing more can be hoped for. */
  async until(n: number): Promise<Receipt[]> {
    for (const deadline = performance.now() + HANG_MS; ; ) {
      const receipts = await this.receipts()
      if (receipts.length >= n) return receipts
      if (performance.now() > deadline) throw new Error(`${receipts.length} receipts instead of ${n}`)
      await systemClock.sleep(5)
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#intakes.map((intake) => intake.close()))
    await this.backend.close()
  }
}

export const payout = (thread: BuiltThread, result: unknown, i = 0) => ({
  provider: 'payouts',
  continuation_id: thread.waits[i]?.id,
  result,
})

/** The topics with one method replaced. */
export const withTopics = (backend: LogBackend, change: Partial<Topics>): LogBackend => {
  const { topics } = backend
  const bound: Topics = {
    publish: topics.publish.bind(topics),
    subscribe: topics.subscribe.bind(topics),
    scan: topics.scan.bind(topics),
    transact: topics.transact.bind(topics),
    progress: topics.progress.bind(topics),
    ...(topics.nameOf && { nameOf: topics.nameOf.bind(topics) }),
  }
  return { ...backend, topics: { ...bound, ...change } }
}
