import { reject, retryLater } from '../base/index.ts'
import { type StreamKey, type ThreadKey, threadStream } from '../events/index.ts'
import type { Agent } from '../harness/index.ts'
import type { RecordedEvent } from '../log/index.ts'
import type { HarnessState } from '../messages/index.ts'
import { harnessState, type Tail, type ThreadState, type ThreadStore } from '../projections/index.ts'
import { cancelThread, cut, isUncut } from './cancel.ts'
import { resultOf } from './results.ts'
import type { Runner } from './runner.ts'
import type { RunResult } from './types.ts'

export interface ThreadHandleDeps {
  store: ThreadStore
  tail: Tail
  runner: Runner
  agents: ReadonlyMap<string, Agent>
}

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
    return harnessState(await this.#existing(o.at))
  }

  /** The events after version `from` (default 0), in order, as they stand in the log. */
  async *events(o: { from?: number } = {}): AsyncIterable<RecordedEvent> {
    for await (const records of this.#d.store.backend.events.read(this.stream, o.from ?? 0)) yield* records
  }

  /**
   * Ends what runs or waits on the thread. A running run is asked to stop, and stopped by its owner; a suspended or queued one ends
   * at once, with its waits.
   */
  async cancel(o: { reason?: string; commandId?: string } = {}): Promise<void> {
    const { reason = 'cancelled', commandId = null } = o
    await this.#existing()
    await cancelThread(this.#d.store, this.stream, reason, commandId)
    if (await isUncut(this.#d.store, this.#d.runner, await this.#existing())) await cut(this.#d.store, this.stream)
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
