import { eitherSignal, isThreadlogError, type JsonValue, Payload, whenAborted } from '../base/index.ts'
import { type Actor, COMMIT_LIMITS, type EventDraft, type Owner, type StreamKey } from '../events/index.ts'
import { isoTimestamp, type ResponseMessage, toolCalls } from '../messages/index.ts'
import { type Delta, type ModelOutcome, streamResponse } from '../models/index.ts'
import {
  type DecisionContext,
  messageHistory,
  Proposal,
  type RunEnd,
  type Tail,
  type ThreadState,
  type ThreadStore,
} from '../projections/index.ts'
import type { Agent } from './agent.ts'
import { recordedOptions } from './begin.ts'
import { PAYLOAD_LIMIT, settle, settleUnknown } from './drafts.ts'
import { type Executed, execute } from './execute.ts'
import { giveUp, isHopeless } from './give-up.ts'
import { advance, cancel, fail, NO_SETTINGS, type Plan } from './plan.ts'
import type { PlanEnvironment, Start } from './plan-calls.ts'

export interface AttemptOptions {
  store: ThreadStore
  tail: Tail
  agent: Agent
  owner: Owner
  actor: Actor
  stream: StreamKey
  runId: string
  attempt: number
  /** What tools get as `deps`; never in the log. */
  deps?: unknown
  /** Aborting stops the attempt after what is in flight has settled; the run stays for whoever recovers it. */
  signal?: AbortSignal
  onDelta?: (delta: Delta) => void
  /** Called when the fate of the first commit is known, whatever it is. */
  onBegun?: () => void
  /** Given: once the run has begun, a log that is locked or full is waited for, and this is told. Absent: it ends the attempt. */
  onWaiting?: (error: unknown) => void
}

/** How an attempt ended: with its run, without having begun, overtaken by another attempt, or stopped with this process. */
export type AttemptEnd =
  | { is: 'ended'; end: RunEnd; thrown?: unknown }
  | { is: 'not-taken' }
  | { is: 'superseded' }
  | { is: 'stopped' }

/** Milliseconds after its event in which an effect may still start (R20). */
export const START_BY_MS = 5_000
const MODEL_RETRIES = 2
/** A provider that asks for a longer pause, in milliseconds, ends the run as retryable instead of holding it. */
const LONGEST_PAUSE_MS = 60_000
const BACKOFF_MS = 500
const DRAIN_MS = 5_000
/** Milliseconds between two tries of a log that takes nothing, after it has refused by itself. */
const WAIT_MS = 250
/** Calls of one response: suspended, resumed or given up, each is two events of one commit. */
const MAX_CALLS = 200

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
  readonly #finished: { start: Start; executed: Executed }[] = []
  readonly #missed = new Set<string>()
  /** Aborts model and tools: cancelled, superseded, or drained. */
  readonly #cut = new AbortController()
  /** Follows the caller's signal; its listeners go with this attempt. */
  readonly #closing = new AbortController()
  /** Aborts with the first of the two. */
  readonly #either = eitherSignal(this.#closing.signal, this.#cut.signal).signal
  #state: ThreadState | undefined
  #thrown: unknown

  constructor(options: AttemptOptions) {
    this.#o = options
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
      while (next === 'model' || next === 'calls') next = next === 'model' ? await this.#askModel() : await this.#awaitCalls()
      return this.#result(next)
    } finally {
      stop()
      signal?.removeEventListener('abort', close)
      if (this.#inFlight.size > 0) this.#cut.abort()
    }
  }

  #result(next: Next): AttemptEnd {
    if (next === 'superseded' || next === 'not-taken' || next === 'stopped') return { is: next }
    const end = this.#state?.runs.get(this.#o.runId)
    if (!end) return { is: 'superseded' }
    const threw = end.failure?.code === 'tool_threw' && this.#thrown !== undefined
    return { is: 'ended', end, ...(threw ? { thrown: this.#thrown } : {}) }
  }

  /** Commits what `build` adds and everything that follows from it, then starts the effects that were dispatched. */
  async #commit(build: (proposal: Proposal) => Proposal | undefined, beginning = false): Promise<Next> {
    const { store, stream, runId, attempt } = this.#o
    let sentAt = store.clock.monotonic()
    const continuationIds = new Map<number, string>()
    let plan: Plan | undefined
    let refused: Next = 'superseded'
    const decide = (state: ThreadState) => {
      plan = undefined
      sentAt = store.clock.monotonic()
      if (!beginning && !this.#isCurrent(state)) return undefined
      const built = build(Proposal.on(state, this.#context()))
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
    for (const start of (plan as Plan).starts) this.#begin(start, sentAt)
    const next = (plan as Plan).next
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
    return advance(built, this.#environment(ids))
  }

  #environment(ids: Map<number, string>): PlanEnvironment {
    return {
      agent: this.#o.agent,
      inFlight: new Set(this.#inFlight.keys()),
      missed: this.#missed,
      continuationId: (index) => ids.get(index) ?? (ids.set(index, this.#o.store.ids.continuation()).get(index) as string),
      startByMs: START_BY_MS,
    }
  }

  #begin(start: Start, sentAt: number): void {
    this.#missed.delete(start.callId)
    const { store, deps } = this.#o
    const execution = { start, clock: store.clock, sentAt, startByMs: START_BY_MS, signal: this.#cut.signal, deps }
    const done = execute(execution).then((executed) => {
      this.#finished.push({ start, executed })
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
    }
    const next = await this.#commit((proposal) => record(proposal, finished))
    const threw = finished.find(({ executed }) => executed.is === 'threw')
    if (threw?.executed.is === 'threw' && next === 'ended') this.#thrown = threw.executed.error
    return next
  }

  async #askModel(): Promise<Next> {
    const state = this.#state as ThreadState
    if (this.#closing.signal.aborted) return 'stopped'
    let outcome: Outcome
    try {
      outcome = limited(await this.#request(state))
    } catch (error) {
      // A message that cannot be loaded now will not be loaded by the next attempt either.
      if (isThreadlogError(error, 'content_missing', 'content_corrupt') && (await this.#giveUp(error))) return 'ended'
      throw error
    }
    if (outcome.kind === 'response')
      return this.#commit((proposal) => proposal.add(responded(proposal, outcome.message, outcome.usage)))
    if (outcome.kind === 'cancelled') {
      if (this.#closing.signal.aborted && !this.#cut.signal.aborted) return 'stopped'
      return this.#commit((proposal) => (outcome.partial ? proposal.add(responded(proposal, outcome.partial)) : proposal))
    }
    const failures = state.run?.modelFailures ?? 0
    const worthwhile = outcome.retryable && !outcome.partial && (outcome.retryAfterMs ?? 0) <= LONGEST_PAUSE_MS
    if (worthwhile && failures < MODEL_RETRIES) return this.#retryModel(outcome, failures)
    return this.#commit((proposal) => modelFailed(proposal, outcome))
  }

  #request(state: ThreadState): Promise<ModelOutcome> {
    const { agent, store, runId, onDelta } = this.#o
    return streamResponse({
      model: agent.model,
      messages: messageHistory(state),
      tools: [...agent.tools.values()].map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
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

/** How many outcomes one commit can hold, at least one. */
function fitting(finished: readonly { executed: Executed }[]): number {
  let bytes = 0
  const end = finished.findIndex(
    ({ executed }) => (bytes += executed.is === 'returned' ? executed.bytes : 0) > COMMIT_LIMITS.bytes / 2,
  )
  return end < 0 ? finished.length : Math.max(1, end)
}

type Failed = Omit<Extract<ModelOutcome, { kind: 'failed' }>, 'code' | 'partial'> & { code: string; partial?: Payload }
type Outcome = { kind: 'response'; message: Payload; usage: Payload } | Failed | { kind: 'cancelled'; partial?: Payload }

/** A response above the payload limit, or with more calls than a commit can settle, cannot be stored (R17): it is a failed request. */
function limited(outcome: ModelOutcome): Outcome {
  if (outcome.kind !== 'response') {
    const { partial, ...rest } = outcome
    const kept = partial && storable(partial)
    return kept ? { ...rest, partial: kept } : rest
  }
  const message = storable(outcome.message)
  if (message) return { kind: 'response', message, usage: Payload.of(outcome.usage as unknown as JsonValue) }
  return { kind: 'failed', code: 'response_too_large', retryable: false, details: { error_type: 'ResponseTooLarge' } }
}

function storable(message: ResponseMessage): Payload | undefined {
  if (toolCalls(message).length > MAX_CALLS) return undefined
  const payload = Payload.of(message as unknown as JsonValue)
  return payload.bytes.byteLength <= PAYLOAD_LIMIT ? payload : undefined
}

const NO_USAGE = Payload.of({})

const responded = (proposal: Proposal, message: Payload, usage = NO_USAGE): EventDraft => ({
  type: 'model.responded/1',
  data: { step: proposal.state.run?.step ?? 0, message, usage, replaces_previous: false },
})

const failedEvent = (proposal: Proposal, outcome: Failed): EventDraft => ({
  type: 'model.failed/2',
  data: {
    step: proposal.state.run?.step ?? 0,
    code: outcome.code,
    retryable: outcome.retryable,
    error_type: outcome.details.error_type,
    status: outcome.details.status ?? null,
    retry_after_ms: outcome.retryAfterMs ?? null,
  },
})

function modelFailed(proposal: Proposal, outcome: Failed): Proposal {
  let next = proposal.add(failedEvent(proposal, outcome))
  if (outcome.partial) next = next.add(responded(next, outcome.partial))
  const message = `The model request failed (${outcome.code}).`
  return fail(next, {
    code: 'agent_run_failed',
    message,
    retryable: outcome.retryable,
    details: { ...outcome.details, cause: outcome.code },
  })
}

/** The settlements of finished calls; a throw ends the run when its options say so. */
function record(proposal: Proposal, finished: readonly { start: Start; executed: Executed }[]): Proposal {
  let threw: { start: Start; errorName: string } | undefined
  const strict = recordedOptions(proposal.state.run?.options).toolErrors === 'throw'
  for (const { start, executed } of finished) {
    const { context, state } = proposal
    const known = state.batch?.calls.get(start.callId)
    const common = { callId: start.callId, toolName: start.tool.name, number: start.number }
    if (executed.is === 'missed' || known?.settled) continue
    if (executed.is !== 'threw')
      proposal = proposal.add(settle(context, { ...common, settlement: executed.is, content: executed.content }))
    else if (strict) {
      threw = { start, errorName: executed.errorName }
      proposal = proposal.add(settleUnknown(context, start.callId, start.tool.name, known, 'threw'))
    } else {
      const content = { error: { code: 'tool_threw', type: executed.errorName, retryable: false } }
      proposal = proposal.add(settle(context, { ...common, settlement: 'failed', content }))
    }
  }
  if (!threw) return proposal
  const details = { tool: threw.start.tool.name, call_id: threw.start.callId, error_type: threw.errorName }
  return fail(proposal, { code: 'tool_threw', message: 'A tool threw an exception.', details })
}
