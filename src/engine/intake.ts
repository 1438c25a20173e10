import { type Clock, isThreadlogError, reject } from '../base/index.ts'
import {
  HUMAN_PROVIDER,
  type Located,
  locate,
  parseResult,
  refused,
  type Settled,
  type Submission,
  type SubmitContext,
  type SubmitDeps,
  settleResult,
  topicSource,
} from '../continuations/index.ts'
import type { Delivery, LogBackend, Positions } from '../log/index.ts'
import { backoffMs, type Place, ReceiptQueue } from './receipts.ts'

/** What the topic's records may answer (R18). */
export interface IntakeRules {
  /** Providers whose results are taken. Default: all except `human`. */
  providers?: { readonly only: readonly string[] } | { readonly except: readonly string[] }
  /**
   * Lets a record of any other provider in, `human` above all: answers who decided, or false. What it throws refuses the record,
   * except a ThreadlogError with disposition `retry`.
   */
  authorize?(submission: Submission, delivery: Delivery): string | false | Promise<string | false>
}

export interface IntakeOptions extends SubmitDeps {
  backend: LogBackend
  rules?: IntakeRules
  signal?: AbortSignal
  /** Called after each verdict, before its receipt is published; accepted results may have made a thread ready. */
  onSettled?(settled: Settled): void
  /** Something failed and is tried again, or the intake stops: see `done`. */
  onError?(error: unknown): void
  /** How often a member that lost looks whether the other one still moves, in milliseconds. Default 2,000. */
  standbyMs?: number
}

export interface Intake extends AsyncDisposable {
  /** Resolves when the intake has stopped; rejects when the log does not let it go on. */
  readonly done: Promise<void>
  /** Stops, after the receipts of what is decided are out. */
  close(): Promise<void>
}

/** Tries of a record that fails without a code. A defect must not hold up everybody else's results for ever. */
const MAX_TRIES = 8
/** How long `close` waits for records being judged. */
const DRAIN_MS = 1000

/**
 * Judges the records of topic `results` and publishes one final receipt for each. Results of one thread are handled in order, threads
 * beside each other. Several processes may run one: results are accepted once by the log, receipts are published once by
 * compare-and-swap on the progress, and whoever loses stands by until the winner stops moving.
 */
export function startIntake(options: IntakeOptions): Intake {
  const stop = new AbortController()
  const end = () => stop.abort()
  options.signal?.addEventListener('abort', end, { once: true })
  if (options.signal?.aborted) end()
  const done = run(options, stop.signal).finally(() => options.signal?.removeEventListener('abort', end))
  done.catch((error) => options.onError?.(error))
  const close = async () => {
    end()
    await done
  }
  return { done, close, [Symbol.asyncDispose]: close }
}

async function run(options: IntakeOptions, signal: AbortSignal): Promise<void> {
  const { clock } = options.store
  for (let failures = 0; !signal.aborted; ) {
    const outcome = await new Member(options, signal).run()
    if (outcome === 'moved') {
      failures = 0
      await standBy(options, signal)
    } else if (outcome === 'failed') await clock.sleep(backoffMs(failures++), signal)
    else return
  }
}

/** Returns when records wait and nobody has moved the progress for a while. */
async function standBy({ backend, store, standbyMs = 2000, onError }: IntakeOptions, signal: AbortSignal): Promise<void> {
  let before: Positions | undefined
  while (!signal.aborted) {
    try {
      const now = await backend.topics.progress('results', GROUP)
      if (before && equal(before, now) && (await hasMore(backend, now))) return
      before = now
    } catch (error) {
      if (!isRetryable(error)) throw error
      onError?.(error)
    }
    await store.clock.sleep(standbyMs, signal)
  }
}

/** Name of the progress that all intakes of a log share. */
const GROUP = 'intake'
/** Records judged at a time. */
const MAX_IN_FLIGHT = 256

const equal = (a: Positions, b: Positions): boolean =>
  a.size === b.size && [...a].every(([partition, offset]) => b.get(partition) === offset)

async function hasMore(backend: LogBackend, from: Positions): Promise<boolean> {
  for await (const batch of backend.topics.scan('results', { from, limit: 1 })) if (batch.length > 0) return true
  return false
}

const isRetryable = (error: unknown): boolean => isThreadlogError(error) && error.disposition === 'retry'

/** One go at being the member that moves the progress. */
class Member {
  readonly #options: IntakeOptions
  readonly #outer: AbortSignal
  readonly #stop = new AbortController()
  readonly #clock: Clock
  readonly #lanes = new Map<string, Promise<void>>()
  #queue!: ReceiptQueue
  #moved = false
  #failure: unknown

  constructor(options: IntakeOptions, signal: AbortSignal) {
    this.#options = options
    this.#outer = signal
    this.#clock = options.store.clock
  }

  /** How it ended: asked to stop, overtaken by another member, or by a passing failure. @throws what stops the intake for good */
  async run(): Promise<'stopped' | 'moved' | 'failed'> {
    const end = () => this.#stop.abort()
    this.#outer.addEventListener('abort', end, { once: true })
    if (this.#outer.aborted) end()
    let passing = false
    try {
      await this.#consume()
    } catch (error) {
      passing = isRetryable(error)
      if (passing) this.#options.onError?.(error)
      else this.#fail(error)
    } finally {
      end()
      this.#outer.removeEventListener('abort', end)
      await this.#drain()
    }
    if (this.#failure) throw this.#failure
    return this.#moved ? 'moved' : passing ? 'failed' : 'stopped'
  }

  async #consume(): Promise<void> {
    const { backend, onError } = this.#options
    const saved = await backend.topics.progress('results', GROUP)
    this.#queue = new ReceiptQueue({
      topics: backend.topics,
      topic: 'results',
      group: GROUP,
      clock: this.#clock,
      saved,
      onMoved: () => {
        this.#moved = true
        this.#stop.abort()
      },
      onError: (error) => onError?.(error),
      onFailed: (error) => this.#fail(error),
    })
    const from = saved.size > 0 ? { from: saved } : {}
    for await (const batch of backend.topics.subscribe('results', { group: GROUP, ...from, signal: this.#stop.signal })) {
      for (const delivery of batch) {
        await this.#queue.room(MAX_IN_FLIGHT, this.#stop.signal)
        if (this.#stop.signal.aborted) return
        await this.#take(delivery)
      }
    }
  }

  async #take(delivery: Delivery): Promise<void> {
    const place = this.#queue.add(delivery)
    const source = topicSource({
      cluster: this.#options.backend.events.id,
      topic: delivery.topic,
      partition: delivery.position.partition,
      offset: delivery.position.offset,
      time: delivery.time,
    })
    const parsed = parseResult(delivery.value, this.#options.limits, this.#options.codec)
    if (!('submission' in parsed)) return this.#finish(place, refused(source, parsed, parsed.refusal))
    const { submission } = parsed
    const located = await this.#locate(submission)
    const lane = located?.stream ?? laneOf(submission)
    const turn = (this.#lanes.get(lane) ?? Promise.resolve()).then(async () => {
      const settled = await this.#settle(submission, delivery, source, located)
      if (settled) this.#finish(place, settled)
    })
    this.#lanes.set(lane, turn)
    void turn.finally(() => {
      if (this.#lanes.get(lane) === turn) this.#lanes.delete(lane)
    })
  }

  async #locate(submission: Submission): Promise<Located | undefined> {
    try {
      return await locate(this.#options, submission)
    } catch {
      // Asked again, and told, when the record is settled.
      return undefined
    }
  }

  #finish(place: Place, settled: Settled): void {
    try {
      this.#options.onSettled?.(settled)
    } catch (error) {
      this.#options.onError?.(error)
    }
    this.#queue.finish(place, settled.receipt)
  }

  /** Undefined when the intake stopped before there was a verdict; the record is then delivered again. */
  async #settle(
    submission: Submission,
    delivery: Delivery,
    source: SubmitContext['source'],
    located: Located | undefined,
  ): Promise<Settled | undefined> {
    for (let failures = 0; !this.#stop.signal.aborted; failures++) {
      try {
        const context = await this.#context(submission, delivery, source)
        return await settleResult(this.#options, submission, context, located)
      } catch (error) {
        const settled = this.#given(error, failures, submission, source)
        if (settled) return settled
        if (this.#failure) return undefined
        this.#options.onError?.(error)
        await this.#clock.sleep(backoffMs(failures), this.#stop.signal)
      }
    }
    return undefined
  }

  /** The verdict an error amounts to, if it is the record's own fault or nothing will help. Stops the intake if the log failed. */
  #given(error: unknown, failures: number, submission: Submission, source: SubmitContext['source']): Settled | undefined {
    const coded = isThreadlogError(error) ? error : undefined
    if (coded?.disposition === 'retry') return undefined
    const ofRecord = coded && ['event_invalid', 'commit_too_large', 'json_invalid'].includes(coded.code)
    if (coded && !ofRecord) this.#fail(coded)
    if (!ofRecord && (coded || failures + 1 < MAX_TRIES)) return undefined
    if (!ofRecord) this.#options.onError?.(error)
    const code = coded?.code ?? 'not_processable'
    return refused(source, submission, { verdict: 'invalid', code, path: '$', expected: 'a result this engine can process' })
  }

  async #context(submission: Submission, delivery: Delivery, source: SubmitContext['source']): Promise<SubmitContext> {
    const { rules = {} } = this.#options
    const { provider } = submission
    const via = `topic:${delivery.topic}`
    if (isOpenTo(rules, provider))
      return { source, actor: { kind: 'provider', id: provider, source: via }, authority: { allows: () => true } }
    const by = await authorized(rules, submission, delivery)
    const kind = provider === HUMAN_PROVIDER ? 'human' : 'provider'
    return { source, actor: { kind, id: by || provider, source: via }, authority: { allows: () => by !== false } }
  }

  #fail(error: unknown): void {
    this.#failure ??= error ?? reject('intake_failed', 'The intake has stopped.')
    this.#stop.abort()
  }

  /** Lets what is being judged come to its verdict, for a while, and publishes what is finished. */
  async #drain(): Promise<void> {
    if (!this.#queue) return
    const enough = new AbortController()
    await Promise.race([Promise.allSettled(this.#lanes.values()), this.#clock.sleep(DRAIN_MS, enough.signal)])
    enough.abort()
    await this.#queue.close()
  }
}

/** Results of one lane keep their order: those of one thread, else of one wait that is not there (yet). */
const laneOf = ({ address, provider }: Submission): string =>
  'continuation_id' in address ? address.continuation_id : `${provider}\0${address.external_id}`

function isOpenTo({ providers = { except: [HUMAN_PROVIDER] } }: IntakeRules, provider: string): boolean {
  return 'only' in providers ? providers.only.includes(provider) : !providers.except.includes(provider)
}

async function authorized(rules: IntakeRules, submission: Submission, delivery: Delivery): Promise<string | false> {
  try {
    return (await rules.authorize?.(submission, delivery)) ?? false
  } catch (error) {
    if (isRetryable(error)) throw error
    return false
  }
}
