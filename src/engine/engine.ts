import { eitherSignal, errorClass, isThreadlogError, reject, retryLater, type ThreadlogError } from '../base/index.ts'
import { expireDue, type HeldSweep, type SubmitDeps, sweepHeld, type Validators } from '../continuations/index.ts'
import type { StreamKey } from '../events/index.ts'
import type { Agent, AttemptEnd } from '../harness/index.ts'
import { type Decision, type Tail, type ThreadState, type ThreadStore, threadStatus } from '../projections/index.ts'
import { CANCEL_GRACE_MS, cut, isUncut } from './cancel.ts'
import type { HttpIntake, HttpOptions, SettleRecord } from './http.ts'
import { type Intake, type IntakeRules, startIntake } from './intake.ts'
import { type DriveOptions, openDispatches, type Runner } from './runner.ts'
import { sweep } from './sweeps.ts'
import { Watchdog } from './watchdog.ts'

export interface ServeOptions {
  /** Runs driven at once. Default 64. */
  concurrency?: number
  /** Checks of results beside those of the agents' own tools. */
  validators?: Validators
  /** Takes results over HTTP too, on this host and with a token unless told otherwise. */
  http?: HttpOptions
  /** Who may approve and answer through a topic: without it such records are `forbidden` (R18). */
  intake?: { human?: { topic: 'results'; authorize: NonNullable<IntakeRules['authorize']> } }
  /** Milliseconds between sweeps. Default 1,000. */
  sweepMs?: number
  /**
   * Milliseconds after which an open wait is told to `onProblem`, once, as `wait_unanswered`: perhaps nobody is there to answer it. What frees its thread is an
   * answer, a cancel, new input, or a deadline. Default: none is.
   */
  unansweredMs?: number
  /** Told of what went wrong and will be tried again; nothing is lost. Default: silent. */
  onProblem?: (problem: { where: string; code: string; message: string }) => void
}

interface EngineDeps {
  store: ThreadStore
  tail: Tail
  runner: Runner
  active: Set<string>
  agents: ReadonlyMap<string, Agent>
  submit: SubmitDeps
  settle: SettleRecord
}

const COOL_DOWN_MS = 1_000
/** Milliseconds in which an engine that lost a partition lets calls in flight settle and records them; after that they count as lost. */
const HANDOVER_MS = 10_000
/** Milliseconds that closing waits for what is in flight: it may wait for a log that is away. */
const CLOSE_MS = 7_000

/**
 * Runs threads for everybody who asks (design §7): takes requested runs, resumes resolved ones, recovers those whose owner died, and
 * turns results into events and receipts. Any number of engines may serve one log; the log decides who was first.
 */
export class Engine implements AsyncDisposable {
  readonly #d: EngineDeps
  readonly #o: ServeOptions
  readonly #stop = new AbortController()
  readonly #jobs = new Map<StreamKey, { done: Promise<void>; stop: AbortController }>()
  readonly #again = new Set<StreamKey>()
  readonly #queue = new Set<StreamKey>()
  #sweeping: Promise<unknown> = Promise.resolve()
  #intake: Intake | undefined
  #http: HttpIntake | undefined
  readonly #closed = Promise.withResolvers<void>()
  readonly #failed = Promise.withResolvers<unknown>()
  /** Threads whose last job failed, for a moment: a standing fault must not spin. */
  readonly #cooling = new Set<StreamKey>()
  /** Ends the pause between two sweeps. */
  #hurry = new AbortController()
  #unlisten = () => {}
  #leave = async () => {}

  /** @internal Use `threadlog.serve()`. */
  constructor(deps: EngineDeps, options: ServeOptions) {
    this.#d = deps
    this.#o = options
  }

  get #concurrency(): number {
    return this.#o.concurrency ?? 64
  }

  /** Resolves when the engine is told to stop. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  /** Resolves with the error if results can no longer be taken: the log needs somebody to look at it. */
  get failed(): Promise<unknown> {
    return this.#failed.promise
  }

  /** The HTTP intake, if it was asked for. */
  get http(): HttpIntake | undefined {
    return this.#http
  }

  async start(): Promise<void> {
    if (!(this.#concurrency >= 1))
      throw reject('concurrency_invalid', 'An engine needs to run something.', {
        path: 'concurrency',
        expected: 'a number from 1 on',
      })
    if (this.#o.unansweredMs !== undefined && !(this.#o.unansweredMs > 0))
      throw reject('option_invalid', 'No wait is answered before it is open.', {
        path: 'unansweredMs',
        expected: 'milliseconds above 0',
      })
    if (this.#o.http) this.#http = await (await import('./http.ts')).serveHttp(this.#o.http, this.#d.settle)
    this.#unlisten = this.#d.tail.on(undefined, ({ stream, event }) => {
      if (!event || !WAKING.has(event.type)) return
      this.#wake(stream)
      if (event.type === 'run.cancel-requested/1') this.#wakeLater(stream, CANCEL_GRACE_MS)
    })
    const { store, submit } = this.#d
    const rules = { authorize: this.#o.intake?.human?.authorize }
    const commit = this.commitOutcome.bind(this)
    await this.#join()
    this.#intake = startIntake({
      ...submit,
      commit,
      rules,
      backend: store.backend,
      onError: (error) => this.#problem('intake', error),
    })
    this.#intake.done.catch((error: unknown) => this.#failed.resolve(error))
    this.#sweeping = Promise.all([this.#sweepForEver(), this.#expireForEver()])
  }

  /** Takes part in sharing the work, where it is shared. */
  async #join(): Promise<void> {
    const { assignment } = this.#d.store.backend
    if (!assignment) return
    const unlisten = assignment.onChange(() => this.#reassigned())
    try {
      await assignment.join()
    } catch (error) {
      unlisten()
      throw error
    }
    this.#leave = async () => {
      unlisten()
      await assignment.leave()
    }
  }

  /** Stops what is lost: its attempts settle what is in flight and leave the rest. What is gained is looked for at once. */
  #reassigned(): void {
    for (const [stream, { stop }] of this.#jobs) if (!this.#owns(stream)) stop.abort()
    this.#hurry.abort()
  }

  #wake(stream: StreamKey): void {
    if (this.#stop.signal.aborted || this.#cooling.has(stream) || !this.#owns(stream)) return
    if (this.#jobs.has(stream)) {
      this.#again.add(stream)
      return
    }
    this.#queue.add(stream)
    this.#fill()
  }

  /** Where a log is worked on in partitions, this engine's share of them. */
  #owns(stream: StreamKey): boolean {
    return this.#d.store.backend.assignment?.owns(stream) ?? true
  }

  #wakeLater(stream: StreamKey, ms: number): void {
    void this.#d.store.clock.sleep(ms, this.#stop.signal).then(() => this.#wake(stream))
  }

  #fill(): void {
    for (const stream of this.#queue) {
      if (this.#jobs.size >= this.#concurrency) return
      this.#queue.delete(stream)
      if (this.#owns(stream)) this.#launch(stream, (signal) => this.#step(stream, signal))
    }
  }

  #launch(stream: StreamKey, first: (signal: AbortSignal) => Promise<AttemptEnd | undefined>): void {
    const stop = new AbortController()
    const done = this.#work(stream, first, stop.signal).finally(() => {
      this.#jobs.delete(stream)
      if (this.#again.delete(stream)) this.#queue.add(stream)
      if (!this.#stop.signal.aborted) this.#fill()
    })
    this.#jobs.set(stream, { done, stop })
  }

  /**
   * Appends the outcome of a wait. If it is the last of its batch and this engine is the one to run the thread and can do so now, the run
   * resumes in the same commit (R11); otherwise the append wakes whoever is. Resolves when the fate of that commit is known.
   * @param judged a recent state: tells whether that is worth trying, and decides nothing
   */
  async commitOutcome(
    stream: StreamKey,
    decide: (state: ThreadState) => Decision | undefined,
    { run }: ThreadState,
  ): Promise<void> {
    const { store, runner, agents } = this.#d
    const agent = agents.get(run?.agent.name ?? '')
    const fits = agent && run?.status === 'suspended' && run.blocked?.revision !== agent.revision && this.#owns(stream)
    if (!fits || this.#stop.signal.aborted || this.#jobs.has(stream) || this.#jobs.size >= this.#concurrency) {
      await store.commit(stream, decide, Number.POSITIVE_INFINITY)
      return
    }
    const begun = Promise.withResolvers<boolean>()
    this.#launch(stream, async (signal) => {
      try {
        return await runner.answer(stream, agent, decide, { ...this.#drive(stream, signal), onBegun: () => begun.resolve(true) })
      } catch (error) {
        // What hinders the resume is no fault of the result: then it is recorded alone.
        if (isThreadlogError(error) && error.disposition === 'retry') begun.reject(error)
        else begun.resolve(false)
        throw error
      }
    })
    if (!(await begun.promise)) await store.commit(stream, decide, Number.POSITIVE_INFINITY)
  }

  /** Drives one thread as far as it goes now. */
  async #work(
    stream: StreamKey,
    first: (signal: AbortSignal) => Promise<AttemptEnd | undefined>,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      let end = await first(signal)
      while (end?.is === 'ended' && !signal.aborted) end = await this.#step(stream, signal)
    } catch (error) {
      // A thread in quarantine moves again with its repair.
      if (isThreadlogError(error, 'thread_quarantined')) return
      this.#problem(`thread ${stream}`, error)
      this.#coolDown(stream)
    }
  }

  #coolDown(stream: StreamKey): void {
    this.#cooling.add(stream)
    void this.#d.store.clock.sleep(COOL_DOWN_MS, this.#stop.signal).then(() => {
      this.#cooling.delete(stream)
      this.#wake(stream)
    })
  }

  async #step(stream: StreamKey, signal: AbortSignal): Promise<AttemptEnd | undefined> {
    const { store, runner, agents } = this.#d
    // Whatever woke this thread until now is in the state that is loaded next.
    this.#again.delete(stream)
    const state = await store.load(stream)
    // Applications may share a log: an engine does what is asked for in its own.
    if (state.identity?.application !== this.#d.submit.application) return undefined
    const drive = this.#drive(stream, signal)
    const status = threadStatus(state)
    if (await isUncut(store, runner, state)) return void (await cut(store, stream))
    const agent = agents.get(state.run?.agent.name ?? '')
    if (status === 'running')
      return agent && (await this.#isAbandoned(state)) ? runner.recover(state, agent, 'owner-gone', drive) : undefined
    if (status === 'resolved' && agent && state.run?.blocked?.revision !== agent.revision) {
      const end = await runner.resume(stream, agent, drive)
      if (end.is !== 'ended' || end.end.status !== 'failed' || state.requested.length === 0) return end
    }
    const next = state.requested[0]
    const wanted = next && agents.get(next.agent)
    return next && wanted ? runner.start(stream, next.runId, wanted, drive) : undefined
  }

  #drive(stream: StreamKey, signal: AbortSignal): DriveOptions {
    return { signal, onWaiting: (error) => this.#problem(`thread ${stream}`, error) }
  }

  /**
   * A run nobody drives: its engine is dead, or it is ours and no attempt of this process knows of it, or it stands in a partition that
   * came to us. There the engine that had it before stops by itself; calls it has begun get the time they have to settle.
   */
  async #isAbandoned(state: ThreadState): Promise<boolean> {
    const run = state.run
    if (run?.owner.kind !== 'engine') return false
    if (await this.#d.runner.isUndriven(run)) return true
    const { assignment, owners } = this.#d.store.backend
    const stream = state.identity?.stream
    if (!assignment || stream === undefined || run.owner.id === owners.self) return false
    return assignment.owns(stream, openDispatches(state).length > 0 ? HANDOVER_MS : 0)
  }

  async #sweepForEver(): Promise<void> {
    const { store, agents } = this.#d
    while (!this.#stop.signal.aborted) {
      this.#hurry = new AbortController()
      try {
        const wanted = { backend: store.backend, agents: [...agents.values()], active: this.#d.active }
        for await (const stream of sweep(wanted)) if (!this.#jobs.has(stream)) this.#wake(stream)
      } catch (error) {
        this.#problem('sweep', error)
      }
      const { signal, release } = eitherSignal(this.#stop.signal, this.#hurry.signal)
      await store.clock.sleep(this.#o.sweepMs ?? 1_000, signal)
      release()
    }
  }

  /** Beside the other sweeps: many deadlines that come at once keep nobody from being resumed. */
  async #expireForEver(): Promise<void> {
    const { store, submit } = this.#d
    const { signal } = this.#stop
    const onError = (error: unknown, stream: StreamKey) => this.#problem(`thread ${stream}`, error)
    const due = { application: submit.application, owns: this.#owns.bind(this), signal, onError }
    const held: HeldSweep = { after: 0 }
    const watchdog = this.#watchdog()
    while (!signal.aborted) {
      await expireDue(store, due).catch((error: unknown) => this.#problem('deadlines', error))
      await sweepHeld(submit, held, due).catch((error: unknown) => this.#problem('early results', error))
      watchdog?.look(store.clock.now())
      await store.clock.sleep(this.#o.sweepMs ?? 1_000, signal)
    }
  }

  #watchdog(): Watchdog | undefined {
    const { store, submit } = this.#d
    const { unansweredMs: afterMs } = this.#o
    if (afterMs === undefined) return undefined
    return new Watchdog({
      ...{ tables: store.backend.tables, application: submit.application, afterMs },
      owns: this.#owns.bind(this),
      onUnanswered: ({ stream, continuationId, provider, ageMs }) =>
        this.#problem(
          `thread ${stream}`,
          retryLater('wait_unanswered', `The wait ${continuationId} of ${provider} is open for ${Math.floor(ageMs / 1000)} s.`, {
            hint: 'See whether its provider runs. Answer it, cancel the thread, or give its tool a deadline.',
          }),
        ),
    })
  }

  #problem(where: string, error: unknown): void {
    const { code, message } = isThreadlogError(error) ? error : unexpected(error)
    try {
      this.#o.onProblem?.({ where, code, message })
    } catch {
      // Whoever listens must not stop what is listened to.
    }
  }

  /** Stops taking work, lets what is in flight settle, and leaves the rest to others. */
  async close(): Promise<void> {
    this.#closed.resolve()
    this.#unlisten()
    this.#stop.abort()
    for (const { stop } of this.#jobs.values()) stop.abort()
    await this.#http?.close()
    const settled = Promise.allSettled([
      this.#sweeping,
      ...[...this.#jobs.values()].map(({ done }) => done),
      this.#intake?.close(),
    ])
    const enough = new AbortController()
    await Promise.race([settled, this.#d.store.clock.sleep(CLOSE_MS, enough.signal)])
    enough.abort()
    await this.#leave()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

const WAKING = new Set([
  'run.requested/1',
  'run.cancel-requested/1',
  'continuation.completed/1',
  'continuation.failed/1',
  'continuation.expired/1',
  'run.completed/1',
  'run.failed/1',
  'run.cancelled/1',
  'run.suspended/1',
  'thread.repaired/1',
])

const unexpected = (error: unknown): Pick<ThreadlogError, 'code' | 'message'> => ({
  code: 'unexpected',
  message: errorClass(error) ?? 'unknown',
})
