import { retryLater } from '../base/index.ts'
import type { Actor, Owner, StreamKey } from '../events/index.ts'
import { type Agent, type AttemptEnd, type RunBindings, recover, resume, runAttempt, seenBy, start } from '../harness/index.ts'
import type { Delta } from '../models/index.ts'
import {
  type Decision,
  type Proposal,
  type RunState,
  type Tail,
  type ThreadState,
  type ThreadStore,
  threadStatus,
} from '../projections/index.ts'
import { type ResumedMessage, resumption, tellResumed } from './resumed.ts'

export interface RunnerOptions {
  store: ThreadStore
  tail: Tail
  owner: Owner
  actor: Actor
  /** Runs some attempt of this process is driving. */
  active: Set<string>
  /** Called behind a run that has suspended, with the thread. What it throws is not the run's. */
  onSuspended?: ((state: ThreadState) => Promise<void>) | undefined
  /** Longest difference between two hosts' clocks, in milliseconds. Default 5,000 (R20). */
  maxSkewMs?: number
}

export interface DriveOptions {
  bindings?: RunBindings | undefined
  signal?: AbortSignal
  onDelta?: (delta: Delta) => void
  /** Called with the id of the run that is about to be begun, resumed or taken over. */
  onRun?: ((runId: string) => void) | undefined
  onBegun?: () => void
  onWaiting?: (error: unknown) => void
}

/** Calls of the run that were dispatched and have no outcome. */
export const openDispatches = (state: ThreadState) =>
  [...(state.batch?.calls.values() ?? [])].flatMap((call) => (call.settled || !call.dispatch ? [] : [call.dispatch]))

/** Begins, resumes and recovers runs for one owner: the same steps for library and engine. */
export class Runner {
  readonly #o: RunnerOptions
  readonly #stop = new AbortController()
  readonly #driving = new Set<Promise<AttemptEnd>>()

  constructor(options: RunnerOptions) {
    this.#o = options
  }

  /** Takes a requested run, in its turn. `before` and `after` add events to the same commit: opening the thread, the request itself; an end at once. */
  start(
    stream: StreamKey,
    runId: string,
    agent: Agent,
    o: DriveOptions = {},
    before = (p: Proposal) => p,
    after = (p: Proposal) => p,
  ): Promise<AttemptEnd> {
    return this.#drive(stream, runId, 1, agent, o, (proposal) => {
      const asked = before(proposal)
      const next = asked.state.requested[0]
      if (asked.state.run?.status === 'running' || next?.runId !== runId) return undefined
      return after(start(asked, next, seenBy(o.bindings, agent), this.#o.owner))
    })
  }

  /** Resumes a suspended run whose waits are resolved; another process may be faster. */
  resume(stream: StreamKey, agent: Agent, o: DriveOptions = {}): Promise<AttemptEnd> {
    const runId = this.#o.store.ids.run()
    return this.#resume(stream, runId, agent, o, (proposal) =>
      threadStatus(proposal.state) === 'resolved' ? proposal : undefined,
    )
  }

  /** Goes on from what `answered` leads to, if that resolves the suspension; tells how old the answers were. */
  #resume(
    stream: StreamKey,
    runId: string,
    agent: Agent,
    o: DriveOptions,
    answered: (proposal: Proposal) => Proposal | undefined,
  ): Promise<AttemptEnd> {
    let message: ResumedMessage | undefined
    const onBegun = () => {
      tellResumed(message)
      o.onBegun?.()
    }
    return this.#drive(stream, runId, 1, agent, { ...o, onBegun }, (before) => {
      message = undefined
      const proposal = answered(before)
      if (!proposal || threadStatus(proposal.state) !== 'resolved') return proposal
      message = resumption(proposal.state, runId, proposal.context.now)
      return resume(proposal, runId, agent, this.#o.owner)
    })
  }

  /**
   * Records the outcome of a wait and, if no other wait is open, resumes the run in the same commit (R11).
   * @param decide the outcome's event, decided on the current state; undefined when there is nothing to record
   */
  answer(
    stream: StreamKey,
    agent: Agent,
    decide: (state: ThreadState) => Decision | undefined,
    o: DriveOptions,
  ): Promise<AttemptEnd> {
    const runId = this.#o.store.ids.run()
    return this.#resume(stream, runId, agent, o, (proposal) => {
      const decision = decide(proposal.state)
      if (!decision) return undefined
      const { actor, commandId } = decision.context
      const by = { actor, causation: commandId ? { command_id: commandId, source: null } : null }
      return proposal.add(...decision.drafts.map((draft) => ({ ...draft, by })))
    })
  }

  /** Takes over a running run whose owner is gone. Waits first until no effect of the dead owner can still start (R20). */
  async recover(state: ThreadState, agent: Agent, why: string, o: DriveOptions = {}): Promise<AttemptEnd> {
    const run = state.run
    const stream = state.identity?.stream
    if (run?.status !== 'running' || stream === undefined) return { is: 'not-taken' }
    const { clock } = this.#o.store
    await clock.sleep(Math.max(0, (await this.#noStartsFrom(state)) - clock.now()), o.signal)
    if (o.signal?.aborted) return { is: 'stopped' }
    const waitedFor = new Set(openDispatches(state).map(({ time }) => time))
    return this.#drive(stream, run.runId, run.attempt + 1, agent, o, (proposal) => {
      const now = proposal.state.run
      // Its owner may live and have begun other calls meanwhile: those are waited for when this is tried again.
      const same = now?.status === 'running' && now.runId === run.runId && now.attempt === run.attempt
      if (openDispatches(proposal.state).some(({ time }) => !waitedFor.has(time))) return undefined
      // Who may take the run up again does not change: an engine's run stays an engine's.
      return same ? recover(proposal, { id: this.#o.owner.id, kind: run.owner.kind }, why) : undefined
    })
  }

  /** Stops the runs that were begun without a signal of their own, after what is in flight has settled. */
  async close(): Promise<void> {
    this.#stop.abort()
    await Promise.allSettled(this.#driving)
  }

  /** True if nobody drives the run: its owner is gone, or is this process and no attempt of it knows of the run. */
  async isUndriven(run: RunState): Promise<boolean> {
    const { owners } = this.#o.store.backend
    return run.owner.id === owners.self ? !this.#o.active.has(run.runId) : owners.isDead(run.owner.id)
  }

  /** Epoch milliseconds from which no effect of the run's owner can start any more; 0 if none can now (R20). */
  async #noStartsFrom(state: ThreadState): Promise<number> {
    const { store, maxSkewMs = 5_000 } = this.#o
    const open = openDispatches(state)
    const owner = state.run?.owner.id ?? ''
    const { owners } = store.backend
    // An attempt of this process begins no call once it was cut, whatever its policies take their time for.
    if (open.length === 0 || owner === owners.self || (await owners.isProvenDead(owner))) return 0
    return Math.max(...open.map((dispatch) => dispatch.time + dispatch.startByMs)) + maxSkewMs
  }

  async #drive(
    stream: StreamKey,
    runId: string,
    attempt: number,
    agent: Agent,
    o: DriveOptions,
    begin: (proposal: Proposal) => Proposal | undefined,
  ): Promise<AttemptEnd> {
    const { active, store, tail, owner, actor } = this.#o
    if (active.has(runId))
      throw retryLater('run_active', 'This process is already driving that run.', { details: { run_id: runId } })
    active.add(runId)
    o.onRun?.(runId)
    try {
      const signal = o.signal ?? this.#stop.signal
      const driving = runAttempt({ store, tail, agent, owner, actor, stream, runId, attempt, ...o, signal }, begin)
      this.#driving.add(driving)
      const end = await driving.finally(() => this.#driving.delete(driving))
      // A cache: a full or locked disk must not make a failure of a run that has ended.
      await store.snapshot(stream).catch(() => {})
      if (end.is === 'ended' && end.end.status === 'suspended')
        await this.#o.onSuspended?.(await store.load(stream)).catch(() => {})
      return end
    } finally {
      active.delete(runId)
    }
  }
}
