import { setTimeout as sleep } from 'node:timers/promises'

/** How a job of the service stands. */
export interface Job {
  id: string
  status: 'queued' | 'running' | 'succeeded' | 'failed'
  result?: unknown
  error?: string
}

const FIRST_RETRY_MS = 1_000
const LONGEST_RETRY_MS = 30_000

/** The HTTP API of the job service: so many requests at a time, and patience while it is away. */
export class JobsClient {
  readonly #url: string
  #free: number
  readonly #queue: (() => void)[] = []

  constructor(url: string, o: { concurrency?: number } = {}) {
    this.#url = url
    this.#free = o.concurrency ?? 16
  }

  /** Begins a job, or finds the one that this key has begun. */
  async begin(kind: string, input: unknown, o: { idempotencyKey: string; signal: AbortSignal }): Promise<Job> {
    const headers = { 'content-type': 'application/json', 'idempotency-key': o.idempotencyKey }
    const body = JSON.stringify({ kind, input })
    const job = await this.#asked('/jobs', { method: 'POST', headers, body }, o.signal)
    if (!job) throw new Error('The job service has no jobs.')
    return job
  }

  /** How a job stands; undefined when the service knows none with this id. */
  status(id: string, signal: AbortSignal): Promise<Job | undefined> {
    return this.#asked(`/jobs/${encodeURIComponent(id)}`, {}, signal)
  }

  /** Asks until there is an answer: a service that is away keeps its jobs. @throws when `signal` aborts, or the service refuses */
  async #asked(path: string, init: RequestInit, signal: AbortSignal): Promise<Job | undefined> {
    for (let wait = FIRST_RETRY_MS; ; wait = Math.min(2 * wait, LONGEST_RETRY_MS)) {
      const response = await this.#one(() => fetch(this.#url + path, { ...init, signal }).catch(() => undefined))
      signal.throwIfAborted()
      if (response?.status === 404) return undefined
      if (response?.ok) return (await response.json()) as Job
      if (response && response.status < 500) throw new Error(`The job service refused: ${response.status}`)
      await sleep(wait, undefined, { signal })
    }
  }

  async #one<T>(request: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#queue.push(resolve))
    try {
      return await request()
    } finally {
      const next = this.#queue.shift()
      if (next) next()
      else this.#free++
    }
  }
}
