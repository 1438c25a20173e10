import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import type { FromEngine, ToEngine } from './engine-messages.ts'

type Asked<T> = T extends { id: number } ? Omit<T, 'id'> : never

/** An engine in a process of its own, as the producer sees it. */
export class EngineProcess {
  readonly #child: ChildProcess
  readonly #replies = new Map<number, (value: unknown) => void>()
  readonly #ready = Promise.withResolvers<NonNullable<FromEngine['ready']>>()
  readonly #gone = Promise.withResolvers<void>()
  #id = 0
  /** Wait of each order that asked for a result. */
  readonly waits = new Map<number, string>()
  onRequest: (order: number) => void = () => {}
  onAsked: (order: number, at: number) => void = () => {}
  onEnded: (order: number, at: number) => void = () => {}

  /** @param log address of the log; `profiled` names the statements, which costs a little */
  constructor(log: string, profiled = false) {
    const file = join(import.meta.dirname, 'engine-process.ts')
    this.#child = fork(file, profiled ? [log, 'profile'] : [log], { serialization: 'json' })
    this.#child.on('message', (message: FromEngine) => this.#take(message))
    this.#child.on('exit', (code, signal) => {
      this.#gone.resolve()
      this.#ready.reject(new Error(`The engine ended (${code ?? signal}).`))
    })
    this.#ready.promise.catch(() => {})
  }

  get ready(): Promise<NonNullable<FromEngine['ready']>> {
    return this.#ready.promise
  }

  #take({ ready, requests, asked, ended, reply, problem }: FromEngine): void {
    if (ready) this.#ready.resolve(ready)
    for (const [order, id] of requests ?? []) {
      this.waits.set(order, id)
      this.onRequest(order)
    }
    for (const [order, at] of asked ?? []) this.onAsked(order, at)
    for (const [order, at] of ended ?? []) this.onEnded(order, at)
    if (problem !== undefined) console.error(`engine: ${problem}`)
    if (!reply) return
    this.#replies.get(reply.id)?.(reply.value)
    this.#replies.delete(reply.id)
  }

  start(orders: number[]): void {
    this.#child.send({ start: orders } satisfies ToEngine)
  }

  ask<T = void>(message: Asked<ToEngine>): Promise<T> {
    const id = ++this.#id
    return new Promise((resolve) => {
      this.#replies.set(id, resolve as (value: unknown) => void)
      this.#child.send({ ...message, id })
    })
  }

  /** Opens threads 0 … n-1 and resolves when each of them waits for its result. */
  async open(n: number): Promise<void> {
    await this.ready
    const all = new Promise<void>((resolve) => {
      this.onRequest = () => this.waits.size === n && resolve()
    })
    this.start(Array.from({ length: n }, (_, i) => i))
    await all
    await this.ask({ ask: 'idle' })
    this.onRequest = () => {}
  }

  /** `kill -9`. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#gone.promise
  }
}
