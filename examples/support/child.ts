import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** A line a child prints: one JSON object with its kind in `event`. */
export type Line = { event: string } & Record<string, unknown>

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** A process that speaks in JSON lines. It is killed with this one at the latest; when its standard input ends it should leave. */
export class Child {
  readonly pid: number
  readonly lines: Line[] = []
  readonly #process: ChildProcess
  readonly #name: string
  #errors = ''
  #exited: string | undefined
  readonly #waiting = new Set<() => void>()

  constructor(
    name: string,
    command: string,
    args: readonly string[],
    env: Record<string, string | undefined> = {},
    cwd?: string,
  ) {
    this.#name = name
    this.#process = spawn(command, args, { env: { ...process.env, ...env }, cwd, stdio: ['pipe', 'pipe', 'pipe'] })
    this.pid = this.#process.pid ?? 0
    running.add(this.#process)
    this.#process.stdin?.on('error', () => {})
    this.#process.on('error', (error) => this.#end(error.message))
    this.#process.on('exit', (code, signal) => this.#end(signal ?? `exit code ${code}`))
    this.#process.stderr?.on('data', (data) => {
      this.#errors = `${this.#errors}${data}`.slice(-4000)
    })
    createInterface({ input: this.#process.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      this.lines.push(parse(line))
      this.#wake()
    })
  }

  #end(how: string): void {
    running.delete(this.#process)
    this.#exited = how
    this.#wake()
  }

  get alive(): boolean {
    return this.#exited === undefined
  }

  /** The first line, also among those already said, that `matches`. @throws when the child ends or `ms` pass without it */
  async says<T extends Line = Line>(event: string, matches: (line: T) => boolean = () => true, ms = 20_000): Promise<T> {
    const deadline = Date.now() + ms
    for (;;) {
      const line = this.lines.find((candidate) => candidate.event === event && matches(candidate as T))
      if (line) return line as T
      if (this.#exited !== undefined) throw new Error(`${this.#name} ended (${this.#exited}) before "${event}". ${this.#errors}`)
      const left = deadline - Date.now()
      if (left <= 0) throw new Error(`${this.#name} did not say "${event}" in ${ms} ms. ${this.#errors}`)
      await this.#next(left)
    }
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
  }

  /** Resolves at the next line, at the end, or after `ms`. */
  #next(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        this.#waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      this.#waiting.add(done)
    })
  }

  /** Waits until it has left by itself. */
  async ended(): Promise<void> {
    if (this.alive) await once(this.#process, 'exit')
  }

  /** `kill -9`, and waits until it is gone. */
  async kill(): Promise<void> {
    if (!this.alive) return
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }
}

function parse(line: string): Line {
  try {
    return JSON.parse(line) as Line
  } catch {
    return { event: 'text', text: line }
  }
}
