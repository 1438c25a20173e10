import type { JsonValue } from '../base/index.ts'
import { type DeferredToolResume, remaining, runError, stateError, storeMissing, usesStore } from '../harness/index.ts'
import { HarnessState } from '../messages/index.ts'
import { harnessState, messageHistory, type Tail } from '../projections/index.ts'
import { cancelOwn } from './cancel.ts'
import { type LibraryDeps, runPrepared } from './library.ts'
import type { PreparedRun } from './prepare-run.ts'
import { Queue } from './queue.ts'
import { steerRun } from './steering.ts'
import type { RunResult, RunStreamEvent } from './types.ts'

type Untold<T> = T extends { sequence: number } ? Omit<T, 'sequence'> : never

/**
 * A run told live (state spec §2.4). Lazy: entering prepares, the first `next` begins; for one consumer. The terminal event comes last, once
 * everything the run held has been given back.
 *
 * `for await (const event of stream)` enters and closes by itself; `await stream.result` runs it without looking.
 */
export class RunStream implements AsyncIterable<RunStreamEvent>, AsyncDisposable {
  readonly #deps: LibraryDeps
  readonly #tail: Tail
  readonly #run: PreparedRun
  readonly #queue = new Queue<RunStreamEvent>()
  #phase: 'new' | 'entered' | 'iterated' | 'closed' = 'new'
  #sequence = 0
  #running: Promise<RunResult> | undefined
  #cancelled = false
  #runId: string | undefined
  #begun = false
  #asking = false
  #delivered: RunResult | null = null
  #outcome: RunResult | null = null
  #error: unknown
  #lost: unknown

  /** @internal Use `threads.stream(…)`. */
  constructor(deps: LibraryDeps, tail: Tail, run: PreparedRun) {
    this.#deps = deps
    this.#tail = tail
    this.#run = run
  }

  /** Prepares the run. @throws ThreadlogError of kind `RunError` `run_stream_reused`; of kind `StateError` `state_store_missing` */
  async enter(): Promise<this> {
    if (this.#phase !== 'new') throw runError('run_stream_reused', 'A stream is entered once.')
    const { previous, options } = this.#run
    if (previous && !options.bindings?.stateStore && usesStore(previous).namespaces) {
      this.#phase = 'closed'
      this.#lost = storeMissing()
      throw this.#lost
    }
    this.#phase = 'entered'
    return this
  }

  /**
   * The events, for one consumer.
   * @throws ThreadlogError of kind `RunError`: `run_not_active` before entry and after close, `run_stream_reused`
   */
  events(): AsyncIterator<RunStreamEvent> & AsyncIterable<RunStreamEvent> {
    if (this.#phase === 'new' || this.#phase === 'closed') throw notActive()
    if (this.#phase === 'iterated') throw runError('run_stream_reused', 'A stream has one consumer.')
    this.#phase = 'iterated'
    const iterator = { next: () => this.#next(), [Symbol.asyncIterator]: () => iterator }
    return iterator
  }

  async #next(): Promise<IteratorResult<RunStreamEvent>> {
    if (this.#asking) throw runError('run_stream_concurrent_next', 'The event before has not come yet.')
    this.#asking = true
    try {
      if (this.#phase === 'closed') return { done: true, value: undefined }
      if (!this.#running) {
        this.#tell({ type: 'lifecycle', event: 'run_started' })
        void this.#begin().catch(() => {})
      }
      const next = await this.#queue.next()
      if (next === undefined) {
        if (this.#error !== undefined) throw this.#error
        return { done: true, value: undefined }
      }
      if (next.type === 'result') this.#delivered = next.result
      return { done: false, value: next }
    } finally {
      this.#asking = false
    }
  }

  /** Enters, tells everything, closes. */
  async *[Symbol.asyncIterator](): AsyncIterator<RunStreamEvent> {
    await this.enter()
    try {
      yield* this.events()
    } finally {
      await this.close()
    }
  }

  #begin(): Promise<RunResult> {
    this.#running ??= this.#go()
    return this.#running
  }

  async #go(): Promise<RunResult> {
    const { stream } = this.#run
    const stop = this.#tail.on(stream, ({ event }) => {
      this.#begun = true
      if (event) this.#tell({ type: 'event', version: event.version, event: event.type, time: event.time })
    })
    try {
      const result = await runPrepared(this.#deps, this.#run, {
        onDelta: (delta) => this.#tell(delta),
        cancelled: () => this.#cancelled,
        onRun: (runId) => {
          this.#runId = runId
        },
      })
      stop()
      this.#outcome = result
      this.#tell({ type: 'result', result })
      return result
    } catch (error) {
      this.#error = error
      throw error
    } finally {
      stop()
      this.#queue.end()
    }
  }

  #tell(event: Untold<RunStreamEvent>): void {
    this.#queue.push({ sequence: this.#sequence++, ...event } as RunStreamEvent)
  }

  /** Ends the run as cancelled; before it began, so that its model is never asked. Does nothing once it has ended. */
  cancel(): void {
    if (this.#outcome || this.#phase === 'closed') return
    this.#cancelled = true
    const { store } = this.#deps
    if (this.#runId !== undefined) void cancelOwn(store, this.#run.stream, this.#runId, 'cancelled').catch(() => {})
  }

  /**
   * Input for the run as it goes on; its next request carries it.
   * @param o.id 1 to 256 characters; the same id is accepted once
   * @throws ThreadlogError of kind `RunError`: `run_not_active`, `input_invalid`
   */
  async steer(input: JsonValue, o: { id?: string } = {}): Promise<void> {
    if (this.#phase === 'closed' || this.#outcome || this.#runId === undefined) throw notActive()
    await steerRun(this.#deps.store, this.#run.stream, { input, id: o.id, runId: this.#runId }, 'library')
  }

  /** The result of the run, which begins if it has not. Rejects as `run` does. */
  get result(): Promise<RunResult> {
    if (this.#phase === 'closed' && !this.#running) return Promise.reject(notActive())
    if (this.#phase === 'new') this.#phase = 'iterated'
    return this.#begin()
  }

  /** The result that the terminal event delivered; null before. */
  get delivered(): RunResult | null {
    return this.#delivered
  }

  /** Once the terminal event was delivered, or after close: the last valid result; null before, and for a run that had none. */
  get outcome(): RunResult | null {
    return this.#phase === 'closed' || this.#delivered ? this.#outcome : null
  }

  /** What the caller's answers still hold that the history does not; null for nothing. */
  async pendingDeferredInput(): Promise<DeferredToolResume | null> {
    const { resume, stream, previous } = this.#run
    if (!resume) return null
    const state = await this.#deps.store.load(stream)
    if (state.batch?.runId != null && this.#begun) return null
    const history = state.identity ? messageHistory(state) : (previous?.messageHistory ?? [])
    return remaining(resume, history) ?? null
  }

  /** The exception behind a failed stream, for the host's eyes. */
  get diagnosticError(): unknown {
    return this.#error
  }

  /**
   * The thread at its last safe boundary (state spec §5.1): what another run can go on from.
   * @throws ThreadlogError of kind `StateError`: `run_not_active` before entry; `run_state_unavailable`
   */
  async exportState(): Promise<HarnessState> {
    if (this.#phase === 'new') throw stateError('run_not_active', 'The stream has not been entered.')
    if (this.#lost !== undefined) throw stateError('run_state_unavailable', 'The run never had a state.', { cause: this.#lost })
    const { previous, key } = this.#run
    const state = await this.#deps.store.load(this.#run.stream)
    if (state.identity && (this.#begun || this.#running || !previous)) return harnessState(state)
    return previous ?? HarnessState.of({ threadId: key.thread })
  }

  /** Stops the run if it is going on, and waits until it has. */
  async close(): Promise<void> {
    if (this.#phase === 'closed') return
    const ended = this.#outcome !== null || this.#error !== undefined
    if (this.#running && !ended) this.cancel()
    await this.#running?.catch(() => {})
    this.#phase = 'closed'
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

const notActive = () => runError('run_not_active', 'The stream is not going on.')
