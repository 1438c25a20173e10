import type { JSONSchema7 } from '@ai-sdk/provider'
import { eitherSignal, isThreadlogError, whenAborted } from '../base/index.ts'
import type { EventDraft } from '../events/index.ts'
import { isoTimestamp } from '../messages/index.ts'
import { type ModelOutcome, streamResponse } from '../models/index.ts'
import { type DecisionContext, messageHistory, Proposal, type ThreadState } from '../projections/index.ts'
import { type Agent, type ModelRecovery, seenBy } from './agent.ts'
import type { AttemptEnd, AttemptOptions } from './attempt-options.ts'
import { RunCapabilities } from './capabilities/index.ts'
import { execute } from './execute.ts'
import type { Executed, Start } from './executed.ts'
import { giveUp, isHopeless } from './give-up.ts'
import { asShown } from './history/index.ts'
import { type HookFailure, hookFailing, isHookFailure } from './hook-failure.ts'
import {
  continued,
  type Failed,
  failedEvent,
  limited,
  modelFailed,
  type Outcome,
  RECOVERY_DELAY_MS,
  responded,
} from './model-outcomes.ts'
import { advance, cancel, fail, isPaused, NO_SETTINGS, type Plan } from './plan.ts'
import { openBatchCalls, type PlanEnvironment } from './plan-calls.ts'
import { compact, INTERRUPTED_BEFORE_RESULT } from './prepare.ts'
import { grantsOf, restoredPrincipal } from './principal.ts'
import { type Finished, fitting, hookFailure, idTaken, outcomeOf, record } from './record-calls.ts'
import { BatchReservations, type SubmittedCall } from './reserve.ts'

/** Milliseconds after its event in which an effect may still start (R20). */
export const START_BY_MS = 5_000
/** A provider that asks for a longer pause, in milliseconds, ends the run as retryable instead of holding it. */
const LONGEST_PAUSE_MS = 60_000
const BACKOFF_MS = 500
const DRAIN_MS = 5_000
/** Milliseconds between two tries of a log that takes nothing, after it has refused by itself. */
const WAIT_MS = 250

/**
 * The only loop that runs agents (design §7): begins, resumes or recovers a run with `begin`, then acts until the run has ended.
 * @param begin decides the first events on the current state; undefined when the run is not there to be taken
 */
export function runAttempt(options: AttemptOptions, begin: (proposal: Proposal) => Proposal | undefined): Promise<AttemptEnd> {
  return new Attempt(options).run(begin)
}

type Next = Plan['next'] | 'superseded' | 'not-taken' | 'stopped'

class Attempt {
  readonly #o: AttemptOptions
  readonly #inFlight = new Map<string, Promise<void>>()
  readonly #finished: Finished[] = []
  readonly #missed = new Set<string>()
  readonly #deferrals = new Map<string, Extract<Executed, { is: 'deferred' }>>()
  readonly #reservations: BatchReservations
  readonly #agent: Agent
  readonly #capabilities: RunCapabilities
  /** Aborts model and tools: cancelled, superseded, or drained. */
  readonly #cut = new AbortController()
  /** Follows the caller's signal; its listeners go with this attempt. */
  readonly #closing = new AbortController()
  /** Aborts with the first of the two. */
  readonly #either = eitherSignal(this.#closing.signal, this.#cut.signal).signal
  #state: ThreadState | undefined
  /** As the caller says; else as the run had it when it suspended. */
  #principal: unknown
  #thrown: unknown

  constructor(options: AttemptOptions) {
    this.#o = options
    this.#agent = seenBy(options.bindings, options.agent)
    this.#principal = options.bindings?.principal
    grantsOf(this.#principal)
    this.#reservations = new BatchReservations(options.store, options.actor)
    const { runId, bindings, store } = options
    const now = () => isoTimestamp(store.clock.now())
    const about = { runId, deps: bindings?.deps, signal: this.#either, now }
    this.#capabilities = new RunCapabilities({ capabilities: this.#agent.capabilities, ...about })
  }

  async run(begin: (proposal: Proposal) => Proposal | undefined): Promise<AttemptEnd> {
    const { signal } = this.#o
    const stop = this.#o.tail.on(this.#o.stream, ({ event }) => {
      if (event?.type === 'run.cancel-requested/1' && event.data.run_id === this.#o.runId) this.#cut.abort()
      if (event?.type === 'run.recovered/1' && event.data.run_id === this.#o.runId && event.data.attempt > this.#o.attempt)
        this.#cut.abort()
    })
    const close = () => this.#closing.abort(signal?.reason)
    if (signal?.aborted) close()
    else signal?.addEventListener('abort', close)
    try {
      let next = await this.#commit(begin, true)
      this.#o.onBegun?.()
      while (next === 'model' || next === 'calls' || next === 'reserve' || next === 'pause') next = await this.#go(next)
      // Whoever wants one that is not given back takes it over.
      if (next === 'ended') await this.#reservations.release(this.#state).catch(() => {})
      return this.#result(next)
    } finally {
      stop()
      signal?.removeEventListener('abort', close)
      if (this.#inFlight.size > 0) this.#cut.abort()
    }
  }

  #go(next: 'model' | 'calls' | 'reserve' | 'pause'): Promise<Next> {
    if (next === 'model') return this.#askModel()
    if (next === 'pause') return this.#pause()
    return next === 'calls' ? this.#awaitCalls() : this.#reserve()
  }

  #result(next: Next): AttemptEnd {
    if (next === 'superseded' || next === 'not-taken' || next === 'stopped') return { is: next }
    const end = this.#state?.runs.get(this.#o.runId)
    if (!end) return { is: 'superseded' }
    const threw = this.#thrown !== undefined && ['tool_threw', 'capability_failed'].includes(end.failure?.code ?? '')
    return { is: 'ended', end, ...(threw ? { thrown: this.#thrown } : {}) }
  }

  /** Commits what `build` adds and everything that follows from it, then starts the effects that were dispatched. */
  async #commit(build: (proposal: Proposal) => Proposal | undefined, beginning = false): Promise<Next> {
    const { store, stream, runId, attempt } = this.#o
    let sentAt = store.clock.monotonic()
    const continuationIds = new Map<number, string>()
    let plan: Plan | undefined
    let written: EventDraft[] = []
    let refused: Next = 'superseded'
    const decide = (state: ThreadState) => {
      plan = undefined
      sentAt = store.clock.monotonic()
      if (!beginning && !this.#isCurrent(state)) return undefined
      written = this.#capabilities.drafts()
      const built = build(Proposal.on(state, this.#context()).add(...written))
      if (!built) {
        refused = 'not-taken'
        return undefined
      }
      plan = this.#follow(built, continuationIds)
      return plan.proposal
    }
    const commit = () => store.commit(stream, decide, Number.POSITIVE_INFINITY)
    try {
      this.#state = (await (beginning ? commit() : this.#patiently(commit))).state
    } catch (error) {
      if (isHopeless(error) && (await this.#giveUp(error))) return 'ended'
      throw error
    }
    const state = this.#state
    if (!plan) return refused
    if (beginning) this.#capabilities.load(state)
    this.#capabilities.accepted(written)
    for (const start of (plan as Plan).starts) this.#begin(start, sentAt)
    const { next, until } = plan as Plan
    this.#until = until ?? 0
    if (
      next !== 'ended' &&
      state.run?.runId === runId &&
      state.run.attempt === attempt &&
      this.#closing.signal.aborted &&
      this.#inFlight.size === 0
    )
      return 'stopped'
    return next
  }

  /** True once the thread says that the run ended so, or cannot be resumed by this agent. */
  async #giveUp(error: unknown): Promise<boolean> {
    const { store, stream } = this.#o
    const decide = (state: ThreadState) => giveUp(Proposal.on(state, this.#context()), this.#o, error)
    const { state, commit } = await store.commit(stream, decide)
    this.#state = state
    return commit !== undefined
  }

  /**
   * What was done must be recorded, and a response was paid for: a log that passes through a condition in which it writes nothing is
   * asked again as long as this process goes on.
   */
  async #patiently<T>(commit: () => Promise<T>): Promise<T> {
    for (;;)
      try {
        return await commit()
      } catch (error) {
        const { onWaiting, store } = this.#o
        if (this.#closing.signal.aborted || !isThreadlogError(error, 'log_busy', 'log_full')) throw error
        onWaiting?.(error)
        await store.clock.sleep(WAIT_MS, this.#closing.signal)
      }
  }

  #context(): DecisionContext {
    const { store, stream, actor, runId, attempt } = this.#o
    return { stream, now: store.clock.now(), actor, runId, attempt }
  }

  #isCurrent(state: ThreadState): boolean {
    return state.run?.runId === this.#o.runId && state.run.attempt === this.#o.attempt && state.run.status === 'running'
  }

  #follow(built: Proposal, ids: Map<number, string>): Plan {
    const none = { starts: [], next: 'ended' } as const
    if (!this.#isCurrent(built.state)) return { proposal: built, ...none }
    const cancelled = built.state.run?.cancel
    if (cancelled) return { proposal: cancel(built, cancelled.reason), ...none }
    if (this.#closing.signal.aborted) return { proposal: built, starts: [], next: 'calls' }
    this.#principal ??= restoredPrincipal(built.state)
    return advance(built, this.#environment(ids))
  }

  #environment(ids: Map<number, string>): PlanEnvironment {
    return {
      agent: this.#agent,
      deferrals: this.#deferrals,
      reserved: this.#reservations.held,
      inFlight: new Set(this.#inFlight.keys()),
      missed: this.#missed,
      continuationId: (index) => ids.get(index) ?? (ids.set(index, this.#o.store.ids.continuation()).get(index) as string),
      startByMs: START_BY_MS,
      grants: grantsOf(this.#principal),
    }
  }

  #begin(start: Start, sentAt: number): void {
    this.#missed.delete(start.callId)
    const { store, bindings = {} } = this.#o
    const { deps, policy, deferredToolsSupported: deferral = true } = bindings
    const principal = this.#principal
    const about = { start, agent: this.#agent, clock: store.clock, sentAt, startByMs: START_BY_MS, signal: this.#cut.signal }
    const capabilities = this.#capabilities
    const call = { tool: start.tool.name, callId: start.callId, args: start.args }
    const hooked = { capabilities: capabilities.states, before: capabilities.beforeTool(call) }
    const done = execute({ ...about, deps, principal, policy, deferral, ...hooked }).then((executed) => {
      const outcome = outcomeOf(executed)
      this.#finished.push({ start, executed, failure: outcome && capabilities.afterTool(call, outcome) })
    })
    this.#inFlight.set(start.callId, done)
  }

  /** Waits until a call has an outcome, then records every outcome there is, as far as one commit can hold them. */
  async #awaitCalls(): Promise<Next> {
    const outcomes = () => [...this.#inFlight.values(), whenAborted(this.#cut.signal)]
    if (this.#finished.length === 0) await Promise.race([...outcomes(), whenAborted(this.#closing.signal)])
    if (this.#finished.length === 0 && this.#closing.signal.aborted && !this.#cut.signal.aborted) {
      await Promise.race([...outcomes(), this.#o.store.clock.sleep(DRAIN_MS, this.#cut.signal)])
      if (this.#finished.length === 0) return 'stopped'
    }
    const finished = this.#finished.splice(0, fitting(this.#finished))
    for (const { start, executed } of finished) {
      this.#inFlight.delete(start.callId)
      if (executed.is === 'missed') this.#missed.add(start.callId)
      if (executed.is === 'deferred') this.#deferrals.set(start.callId, executed)
    }
    const next = await this.#commit((proposal) => record(proposal, finished))
    const threw = finished.find(({ executed }) => executed.is === 'threw')
    if (threw?.executed.is === 'threw' && next === 'ended') this.#thrown = threw.executed.error
    this.#thrown = hookFailure(finished)?.cause ?? this.#thrown
    return next
  }

  /** Waits until another job may be submitted. */
  async #pause(): Promise<Next> {
    const { clock } = this.#o.store
    await clock.sleep(Math.max(0, this.#until - clock.now()), this.#either)
    if (this.#closing.signal.aborted && !this.#cut.signal.aborted) return 'stopped'
    return this.#commit((proposal) => proposal)
  }
  #until = 0

  /** Reserves the ids of the jobs that were submitted. Who has lost one to another thread is told so, and the batch goes on without it. */
  async #reserve(): Promise<Next> {
    if (this.#closing.signal.aborted) return 'stopped'
    const state = this.#state as ThreadState
    const submitted = openBatchCalls(state).flatMap((call): SubmittedCall[] => {
      const externalId = this.#deferrals.get(call.tool_call_id)?.externalId
      const provider = this.#agent.tools.get(call.tool_name)?.provider
      return externalId === undefined || provider === undefined ? [] : [{ callId: call.tool_call_id, provider, externalId }]
    })
    const lost = await this.#patiently(() => this.#reservations.take(state, submitted))
    return this.#commit((proposal) => lost.reduce(idTaken, proposal))
  }

  async #askModel(): Promise<Next> {
    if (this.#closing.signal.aborted) return 'stopped'
    let outcome: Outcome
    try {
      const next = await this.#shapeRequest(this.#state as ThreadState)
      if (next !== 'model') return next
      outcome = limited(await this.#request(this.#state as ThreadState))
    } catch (error) {
      if (isHookFailure(error)) return this.#failedBy(error, (proposal) => proposal)
      // A message that cannot be loaded now will not be loaded by the next attempt either.
      if (isThreadlogError(error, 'content_missing', 'content_corrupt') && (await this.#giveUp(error))) return 'ended'
      throw error
    }
    if (outcome.kind === 'response') {
      const received = (proposal: Proposal) => proposal.add(responded(proposal, outcome.message, outcome.usage))
      const failure = this.#capabilities.afterModel(outcome.message)
      return failure ? this.#failedBy(failure, received) : this.#commit(received)
    }
    if (outcome.kind === 'cancelled') {
      if (this.#closing.signal.aborted && !this.#cut.signal.aborted) return 'stopped'
      return this.#commit((proposal) => (outcome.partial ? proposal.add(responded(proposal, outcome.partial)) : proposal))
    }
    const failures = this.#state?.run?.modelFailures ?? 0
    const { modelRecovery } = this.#agent
    if (modelRecovery) return this.#recoverModel(outcome, modelRecovery)
    const worthwhile = outcome.retryable && !outcome.partial && (outcome.retryAfterMs ?? 0) <= LONGEST_PAUSE_MS
    if (worthwhile && failures < this.#agent.modelRetries) return this.#retryModel(outcome, failures)
    return this.#commit((proposal) => modelFailed(proposal, outcome))
  }

  /** Shows the capabilities what is about to be sent, and records what they make of it. */
  async #shapeRequest(state: ThreadState): Promise<Next> {
    if (!this.#capabilities.shapesRequests || isPaused(state)) return 'model'
    const hooks = this.#capabilities.beforeModel(messageHistory(state))
    await Promise.race([hooks.catch(() => {}), whenAborted(this.#either)])
    if (this.#either.aborted) return this.#cut.signal.aborted ? this.#commit((proposal) => proposal) : 'stopped'
    const messages = await hooks
    return messages ? this.#commit((proposal) => compact(proposal, messages)) : 'model'
  }

  /** Ends the run because a hook failed, behind what `build` records. */
  #failedBy(failure: HookFailure, build: (proposal: Proposal) => Proposal): Promise<Next> {
    this.#thrown = failure.cause
    return this.#commit((proposal) => fail(build(proposal), hookFailing(failure)))
  }

  /** Goes on after a failed request with what was received of it, as long as the budget lasts (state spec §5.3). */
  async #recoverModel(outcome: Failed, { maxAttempts, delayMs = RECOVERY_DELAY_MS }: ModelRecovery): Promise<Next> {
    const attempt = (this.#modelAttempts += 1)
    if (attempt >= maxAttempts) return this.#commit((proposal) => modelFailed(proposal, outcome, 'model_recovery_exhausted'))
    const next = await this.#commit((proposal) => continued(proposal, outcome))
    if (next === 'model') await this.#o.store.clock.sleep(delayMs(attempt), this.#either)
    return next
  }
  #modelAttempts = 0

  #request(state: ThreadState): Promise<ModelOutcome> {
    const { store, runId, onDelta } = this.#o
    const agent = this.#agent
    return streamResponse({
      model: agent.model,
      messages: asShown(messageHistory(state), {
        content: INTERRUPTED_BEFORE_RESULT,
        timestamp: isoTimestamp(store.clock.now()),
      }),
      tools: [...agent.tools.values()].map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
      ...(agent.output === undefined ? {} : { responseFormat: { type: 'json', schema: agent.output.schema as JSONSchema7 } }),
      signal: this.#either,
      now: () => isoTimestamp(store.clock.now()),
      runId,
      threadId: state.identity?.thread,
      onDelta,
    })
  }

  async #retryModel(outcome: Failed, failures: number): Promise<Next> {
    const { agent, store } = this.#o
    const again: EventDraft = {
      type: 'model.requested/1',
      data: { step: this.#state?.run?.step ?? 0, model: agent.model.modelId, settings_digest: NO_SETTINGS },
    }
    const next = await this.#commit((proposal) => proposal.add(failedEvent(proposal, outcome), again))
    if (next === 'model') await store.clock.sleep(outcome.retryAfterMs ?? BACKOFF_MS * 2 ** failures, this.#either)
    return next
  }
}
