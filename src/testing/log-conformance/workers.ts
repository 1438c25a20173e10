import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { LogPlace } from './suite.ts'
import type { WorkerOrder, WorkerReport } from './worker.ts'

const program = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url))

/** A child process that appends to the log, and what it has said so far. */
export class Worker {
  readonly acknowledged: { stream: string; commit: string; version: number }[] = []
  owner = ''
  readonly #child: ChildProcess
  readonly #exit: Promise<unknown>
  #done = false
  #changed = Promise.withResolvers<void>()

  constructor(place: LogPlace, streams: readonly string[], commits: number) {
    this.#child = fork(program, { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.#exit = once(this.#child, 'exit')
    this.#child.on('message', (report: WorkerReport) => this.#hear(report))
    this.#child.on('exit', () => this.#wake())
    this.#child.send({ ...place.remote!, streams, commits } satisfies WorkerOrder)
  }

  #hear(report: WorkerReport): void {
    if ('owner' in report) this.owner = report.owner
    else if ('done' in report) this.#done = true
    else this.acknowledged.push(report)
    this.#wake()
  }

  #wake(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  /** Resolves once `test` holds of what was said. @throws Error when the process ends before */
  async until(test: (worker: Worker) => boolean): Promise<void> {
    while (!test(this)) {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) throw new Error('The worker ended early.')
      await this.#changed.promise
    }
  }

  ready = () => this.until((worker) => worker.owner !== '')

  finished = () => this.until((worker) => worker.#done)

  /** Lets it close the log and end. */
  async end(): Promise<void> {
    if (this.#child.connected) this.#child.send('end')
    await this.#exit
  }

  /** SIGKILL, wherever it is. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exit
  }
}
