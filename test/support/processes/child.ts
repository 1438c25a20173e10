import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

/** What a child answers: the value of the handler, or the code of the error it threw. */
export type Answer<T = unknown> = { value: T } | { code: string; message: string }

type Reply = { id: number } & Answer

/** A process of its own that does what it is asked, until it is killed. */
export class Child {
  readonly #process: ChildProcess
  readonly #waiting = new Map<number, (answer: Answer) => void>()
  readonly #exited: Promise<unknown>
  #count = 0

  private constructor(process: ChildProcess) {
    this.#process = process
    this.#exited = once(process, 'exit')
    process.on('message', (reply: Reply) => {
      this.#waiting.get(reply.id)?.(reply)
      this.#waiting.delete(reply.id)
    })
    process.on('exit', () => {
      for (const answer of this.#waiting.values()) answer({ code: 'exited', message: 'The process is gone.' })
      this.#waiting.clear()
    })
  }

  /** Starts `script` of this folder and resolves when it can be asked. `options` reach it as JSON. */
  static async start(script: string, options: object): Promise<Child> {
    const child = new Child(
      fork(new URL(script, import.meta.url), [JSON.stringify(options)], {
        execArgv: [],
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      }),
    )
    await child.must('ready')
    return child
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  get exited(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null
  }

  ask<T = unknown>(call: string, argument: unknown = null): Promise<Answer<T>> {
    const id = ++this.#count
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve as (answer: Answer) => void)
      if (this.exited || !this.#process.connected) resolve({ code: 'exited', message: 'The process is gone.' })
      else this.#process.send({ id, call, argument }, () => {})
    })
  }

  /** As {@link ask}, where only a value will do. */
  async must<T = unknown>(call: string, argument: unknown = null): Promise<T> {
    const answer = await this.ask<T>(call, argument)
    if ('value' in answer) return answer.value
    throw new Error(`${call}: ${answer.code} ${answer.message}`)
  }

  /** SIGKILL: nothing of it runs any more once this resolves. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#exited
  }

  /** Resolves when the process has ended by itself. */
  async end(): Promise<void> {
    await this.#exited
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}

/** In the child: answers what the parent asks. Ends with the parent. */
export function serve(handlers: Record<string, (argument: never) => unknown>): void {
  process.on('disconnect', () => process.exit(0))
  process.on('message', ({ id, call, argument }: { id: number; call: string; argument: never }) => {
    void answer(handlers, call, argument).then((reply) => process.send?.({ id, ...reply }))
  })
}

async function answer(handlers: Record<string, (argument: never) => unknown>, call: string, argument: never): Promise<Answer> {
  try {
    if (call === 'ready') return { value: true }
    return { value: (await handlers[call]?.(argument)) ?? null }
  } catch (error) {
    const { code = 'unexpected', message } = error as Error & { code?: string }
    return { code, message }
  }
}

/** In the child: what {@link Child.start} was given. */
export function options<T>(): T {
  // Also while it is still starting.
  process.once('disconnect', () => process.exit(0))
  return JSON.parse(process.argv[2] ?? '{}') as T
}
