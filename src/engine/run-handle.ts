import { reject } from '../base/index.ts'
import { type ThreadKey, threadStream } from '../events/index.ts'
import type { RunEnd, Tail, ThreadState, ThreadStore } from '../projections/index.ts'
import { resultOf } from './results.ts'
import type { RunHandle, RunResult } from './types.ts'

/** A run that was asked for, wherever it will be done. */
export class RunHandleImpl implements RunHandle {
  readonly runId: string
  readonly invocationId: string
  readonly key: ThreadKey
  readonly #store: ThreadStore
  readonly #tail: Tail

  constructor(store: ThreadStore, tail: Tail, key: ThreadKey, runId: string) {
    this.#store = store
    this.#tail = tail
    this.key = key
    this.runId = runId
    this.invocationId = runId
  }

  get thread(): string {
    return this.key.thread
  }

  async result(o: { signal?: AbortSignal } = {}): Promise<RunResult> {
    const stream = threadStream(this.key)
    const ended = (state: ThreadState): RunEnd | undefined => state.invocations.get(this.invocationId)
    const { state, end } = await untilState(this.#store, this.#tail, stream, ended, o.signal)
    return resultOf(this.#store, state, end)
  }
}

/** Waits until `find` sees what it looks for in the thread's state. @throws ThreadlogError `aborted` */
export async function untilState<T>(
  store: ThreadStore,
  tail: Tail,
  stream: string,
  find: (state: ThreadState) => T | undefined,
  signal?: AbortSignal,
): Promise<{ state: ThreadState; end: T }> {
  let wake = () => {}
  let changed = false
  const stop = tail.on(stream, () => {
    changed = true
    wake()
  })
  const look = () => wake()
  const unlisten = tail.onEnd(look)
  signal?.addEventListener('abort', look, { once: true })
  try {
    for (;;) {
      changed = false
      const state = await store.load(stream)
      const end = find(state)
      if (end !== undefined) return { state, end }
      if (signal?.aborted) throw reject('aborted', 'The wait was aborted by its caller.')
      if (tail.closed) throw reject('closed', 'The log was closed while waiting.')
      if (!changed) await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    stop()
    unlisten()
    signal?.removeEventListener('abort', look)
  }
}
