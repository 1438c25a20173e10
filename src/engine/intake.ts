import { type Clock, eitherSignal, isThreadlogError, reject, whenAborted } from '../base/index.ts'
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
import type { Delivery, LogBackend } from '../log/index.ts'
import { backoffMs, type Place, ReceiptQueue } from './receipts.ts'
import { isRetryable, standBy } from './standby.ts'

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
 * compare-and-swap on the progress of their partition, and whoever loses there stands by until the winner stops moving. Where the log's
 * work is shared in partitions, each process judges those it has, and what it loses goes to the next one from the saved progress.
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
    const began = clock.monotonic()
    if (!(await new Member(options, signal).run())) return
    if (clock.monotonic() - began > WELL_MS) failures = 0
    await clock.sleep(backoffMs(failures++), signal)
  }
}

/** Name of the progress that all intakes of a log share. */
const GROUP = 'intake'
/** Records judged at a time. */
const MAX_IN_FLIGHT = 256
/** Milliseconds after which a member that fails is not failing again. */
const WELL_MS = 10_000

/** One go at judging the partitions of this process. */
class Member {
  readonly #options: IntakeOptions
  readonly #outer: AbortSignal
  readonly #stop = new AbortController()
  readonly #clock: Clock
  readonly #lanes = new Map<string, Promise<void>>()
  readonly #queue: ReceiptQueue
  /** Partitions in which another member is ahead, each with its watch. */
  readonly #standing = new Map<number, AbortController>()
  #round = new AbortController()
  #failure: unknown

  constructor(options: IntakeOptions, signal: AbortSignal) {
    this.#options = options
    this.#outer = signal
    this.#clock = options.store.clock
    this.#queue = new ReceiptQueue({
      topics: options.backend.topics,
      topic: 'results',
      group: GROUP,
      clock: this.#clock,
      onMoved: (partition) => this.#standBy(partition),
      onError: (error) => options.onError?.(error),
      onFailed: (error) => this.#fail(error),
    })
  }

  /** True if it ended by a passing failure, false when it was asked to. @throws what stops the intake for good */
  async run(): Promise<boolean> {
    const end = () => this.#stop.abort()
    this.#outer.addEventListener('abort', end, { once: true })
    if (this.#outer.aborted) end()
    const unlisten = this.#options.backend.assignment?.onChange(() => this.#reassigned())
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
      unlisten?.()
      await this.#drain()
    }
    if (this.#failure) throw this.#failure
    return passing
  }

  async #consume(): Promise<void> {
    const { topics } = this.#options.backend
    while (!this.#stop.signal.aborted) {
      this.#round = new AbortController()
      const { signal, release } = eitherSignal(this.#stop.signal, this.#round.signal)
      try {
        // Where others are ahead in everything that is ours, nothing is read meanwhile.
        if (this.#standing.size >= this.#share()) await whenAborted(signal)
        else {
          const from = this.#queue.next
          const options = { group: GROUP, ...(from.size > 0 && { from }), signal }
          for await (const batch of topics.subscribe('results', options)) if (!(await this.#takeAll(batch, signal))) break
        }
      } finally {
        release()
      }
    }
  }

  /** How many partitions are this process's to judge. */
  #share(): number {
    const { assignment, events } = this.#options.backend
    return Math.max(1, assignment?.share?.size ?? events.partitions)
  }

  /** False when the rest is not wanted. */
  async #takeAll(batch: readonly Delivery[], signal: AbortSignal): Promise<boolean> {
    for (const delivery of batch) {
      await this.#queue.room(MAX_IN_FLIGHT, signal)
      if (signal.aborted) return false
      if (!this.#queue.follows(delivery)) await this.#open(delivery.position.partition)
      await this.#take(delivery)
    }
    return !signal.aborted
  }

  /** Begins a partition, or begins it again: others may have gone on in it meanwhile. */
  async #open(partition: number): Promise<void> {
    const saved = await this.#options.backend.topics.progress('results', GROUP)
    if (this.#isMine(partition)) this.#queue.open(partition, saved.get(partition))
  }

  #isMine(partition: number): boolean {
    return this.#options.backend.assignment?.share?.has(partition) ?? true
  }

  /** What is judged of a lost partition is for its new owner; a gained one is opened by its first record. */
  #reassigned(): void {
    if (this.#standing.size > 0) this.#round.abort()
    for (const partition of this.#queue.next.keys()) if (!this.#isMine(partition)) this.#queue.drop(partition)
    for (const [partition, watch] of this.#standing) {
      if (this.#isMine(partition)) continue
      this.#queue.drop(partition)
      watch.abort()
    }
  }

  /** Another member has gone on in a partition: it is taken up again when that one stops moving and records wait. */
  #standBy(partition: number): void {
    const watch = new AbortController()
    this.#standing.set(partition, watch)
    if (this.#standing.size >= this.#share()) this.#round.abort()
    const { backend, store, standbyMs, onError } = this.#options
    const o = { backend, clock: store.clock, group: GROUP, partition, ms: standbyMs, onError }
    const { signal, release } = eitherSignal(this.#stop.signal, watch.signal)
    const over = standBy(o, signal).finally(release)
    over.then(
      () => {
        this.#standing.delete(partition)
        if (watch.signal.aborted) return
        this.#queue.drop(partition)
        this.#round.abort()
      },
      (error: unknown) => this.#fail(error),
    )
  }

  async #take(delivery: Delivery): Promise<void> {
    const place = this.#queue.add(delivery)
    if (!place) return
    const { events, topics } = this.#options.backend
    const source = topicSource({
      cluster: events.id,
      topic: topics.nameOf?.(delivery.topic) ?? delivery.topic,
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
