import { checkOptions, type JsonValue, reject, retryLater } from '../base/index.ts'
import { type StreamKey, type ThreadKey, threadStream } from '../events/index.ts'
import { type Agent, type Reconciliation, reconcile } from '../harness/index.ts'
import type { RecordedEvent } from '../log/index.ts'
import type { HarnessState } from '../messages/index.ts'
import { harnessState, Proposal, type Tail, type ThreadState, type ThreadStore } from '../projections/index.ts'
import { fork, takePlace } from './branches.ts'
import { cancelThread, cut, isUncut } from './cancel.ts'
import { resultOf } from './results.ts'
import type { Runner } from './runner.ts'
import { steerRun } from './steering.ts'
import type { RunResult } from './types.ts'

export interface ThreadHandleDeps {
  store: ThreadStore
  tail: Tail
  runner: Runner
  agents: ReadonlyMap<string, Agent>
}

const noVersion = () =>
  reject('version_unknown', 'The thread has no such version.', { path: 'at', expected: 'a version from 1 to that of the thread' })

/** One thread: look at it, replay it, cancel what runs on it, recover what was left. */
export class ThreadHandle {
  readonly key: ThreadKey
  readonly stream: StreamKey
  readonly #d: ThreadHandleDeps

  constructor(deps: ThreadHandleDeps, key: ThreadKey) {
    this.#d = deps
    this.key = key
    this.stream = threadStream(key)
  }

  async #existing(at?: number): Promise<ThreadState> {
    const state = at === undefined ? await this.#d.store.load(this.stream) : (await this.#d.store.at(this.stream, at)).state
    if (state.identity) return state
    throw reject('thread_unknown', 'There is no such thread in this log.', { path: 'thread', details: { stream: this.stream } })
  }

  /** The thread as portable HarnessState, now or at a version. @throws ThreadlogError `thread_unknown`, `thread_quarantined` */
  async state(o: { at?: number } = {}): Promise<HarnessState> {
    checkOptions(o)
    return harnessState(await this.#existing(o.at))
  }

  /** The events after version `from` (default 0), in order, as they stand in the log. */
  async *events(o: { from?: number } = {}): AsyncIterable<RecordedEvent> {
    checkOptions(o)
    for await (const records of this.#d.store.backend.events.read(this.stream, o.from ?? 0)) yield* records
  }

  /**
   * Ends what runs or waits on the thread. A running run is asked to stop, and stopped by its owner; a suspended or queued one ends
   * at once, with its waits.
   */
  async cancel(o: { reason?: string; commandId?: string } = {}): Promise<void> {
    checkOptions(o)
    const { reason = 'cancelled', commandId = null } = o
    await this.#existing()
    await cancelThread(this.#d.store, this.stream, reason, commandId)
    if (await isUncut(this.#d.store, this.#d.runner, await this.#existing())) await cut(this.#d.store, this.stream)
  }

  /**
   * Input for the run that is going on, in whatever process; its next request carries it.
   * @param o.id 1 to 256 characters; the same id is accepted once
   * @throws ThreadlogError `thread_unknown`; of kind `RunError`: `run_not_active`, `input_invalid`
   */
  async steer(input: JsonValue, o: { id?: string } = {}): Promise<void> {
    checkOptions(o)
    await this.#existing()
    await steerRun(this.#d.store, this.stream, { input, id: o.id }, 'api')
  }

  /**
   * A new thread of the same user that begins as this one was, now or at a version. Waits that are open here stay here: the fork decides by its
   * own `toolRecovery` about the calls that they would have answered. Input that no request carries yet stays here too.
   * What environments reported stays here too, and retained children get threads of their own.
   * @param o.thread id of the new thread; default: a new one
   * @param o.supersede the new thread takes this one's place: what runs, waits or is queued here ends, and results of its waits that come later get
   *   the verdict `stale-branch`. Repeated with the same `thread` and `at` after a crash, it does what is left to do
   * @throws ThreadlogError `thread_unknown`, `version_unknown`, `thread_exists`, `thread_id_invalid`, `state_fork_same_thread`, `state_too_large`;
   *   `capability_state_version_unsupported`, `capability_state_invalid` for a registry of children that this version does not know
   */
  async fork(o: { at?: number; thread?: string; supersede?: boolean } = {}): Promise<ThreadHandle> {
    checkOptions(o)
    const { store } = this.#d
    const { at } = o
    if (at !== undefined && !(Number.isSafeInteger(at) && at > 0)) throw noVersion()
    const from = await this.#existing(at)
    if (at !== undefined && from.version !== at) throw noVersion()
    const handle = new ThreadHandle(this.#d, { ...this.key, thread: o.thread ?? store.ids.thread() })
    await (o.supersede ? takePlace(store, from, handle.key, at) : fork(store, from, handle.key))
    return handle
  }

  /**
   * Says what became of a call whose outcome was unknown; the model reads it from the next request on.
   * @param o.by who says so; recorded
   * @throws ThreadlogError `thread_unknown`, `outcome_invalid`, `call_not_unknown`, `input_too_large`, `json_invalid`
   */
  async reconcile(
    callId: string,
    outcome: Reconciliation,
    o: { by?: string; reason?: string; commandId?: string } = {},
  ): Promise<void> {
    checkOptions(o)
    await this.#existing()
    const { store } = this.#d
    const { by = '', reason = '', commandId = null } = o
    await store.commit(this.stream, (state) => {
      const actor = { kind: 'api', id: by, source: 'reconcile' }
      const context = { stream: this.stream, now: store.clock.now(), actor, runId: null, attempt: null, commandId }
      return reconcile(Proposal.on(state, context), { callId, outcome, reason })
    })
  }

  /**
   * Takes up a run whose owner is gone, or tries a refused resume again.
   * @throws ThreadlogError `agent_unknown`, `owner_alive` (retry)
   */
  async recover(): Promise<RunResult | undefined> {
    const { store, runner, agents } = this.#d
    const state = await this.#existing()
    const run = state.run
    if (!run) return undefined
    const agent = agents.get(run.agent.name)
    if (!agent) throw reject('agent_unknown', `This process has no agent ${run.agent.name}.`, { path: 'agents' })
    if (run.status === 'running' && !(await runner.isUndriven(run)))
      throw retryLater('owner_alive', 'The owner of the run is alive.', { details: { owner: run.owner.id } })
    const end =
      run.status === 'running' ? await runner.recover(state, agent, 'asked for') : await runner.resume(this.stream, agent)
    return end.is === 'ended' ? resultOf(store, await store.load(this.stream), end.end) : undefined
  }
}
