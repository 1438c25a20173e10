import { threadStream } from '../events/index.ts'
import type { Agent } from '../harness/index.ts'
import type { Tail } from '../projections/index.ts'
import { type LibraryDeps, runInProcess } from './library.ts'
import type { RunOptions, RunResult, RunStream, RunStreamEvent } from './types.ts'

/** A run told live. Lazy: begins with the first `next()` or when `result` is awaited. For one consumer. */
export function streamInProcess(deps: LibraryDeps, tail: Tail, agent: Agent, o: RunOptions): RunStream {
  const thread = o.thread ?? deps.store.ids.thread()
  const stream = threadStream({ application: deps.application, user: o.user ?? 'default', thread })
  const queue = new Queue<RunStreamEvent>()
  let running: Promise<RunResult> | undefined
  const begin = (): Promise<RunResult> => {
    if (running) return running
    const stop = tail.on(stream, ({ event }) => {
      if (event) queue.push({ type: 'event', version: event.version, event: event.type, time: event.time })
    })
    running = runInProcess(deps, agent, { ...o, thread }, (delta) => queue.push(delta)).finally(stop)
    running.then(
      (result) => {
        queue.push({ type: 'result', result })
        queue.end()
      },
      () => queue.end(),
    )
    return running
  }
  return {
    get result() {
      return begin()
    },
    async *[Symbol.asyncIterator]() {
      const run = begin()
      yield* queue
      await run
    },
  }
}

class Queue<T> implements AsyncIterable<T> {
  readonly #items: T[] = []
  #ended = false
  #wake = () => {}

  push(item: T): void {
    this.#items.push(item)
    this.#wake()
  }

  end(): void {
    this.#ended = true
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    for (;;) {
      while (this.#items.length > 0) yield this.#items.shift() as T
      if (this.#ended) return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}
