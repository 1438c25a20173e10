import type { Commit, EventDraft, ThreadKey } from '../../src/events/index.ts'
import { threadStream } from '../../src/events/index.ts'
import type { RunEnd } from '../../src/projections/index.ts'
import { encodeAt } from './legal-threads.ts'
import * as draft from './thread-drafts.ts'

/** Writes a thread commit by commit, by hand. */
export class ThreadScript {
  readonly key: ThreadKey
  readonly stream: string
  readonly commits: Commit[] = []
  #head = { version: 0, hash: '0'.repeat(64) }
  #time: number
  #runs = 0

  constructor(thread: string, o: { application?: string; user?: string; time?: number } = {}) {
    this.key = { application: o.application ?? 'app', user: o.user ?? 'u-1', thread }
    this.stream = threadStream(this.key)
    this.#time = o.time ?? 1_790_000_000_000
  }

  /** One commit. */
  add(...drafts: EventDraft[]): this {
    const commit = encodeAt(this.stream, this.#head, { drafts, time: this.#time++, runId: this.runId, attempt: 1 })
    this.commits.push(commit)
    const last = commit.records[commit.records.length - 1]!
    this.#head = { version: last.version, hash: last.hash }
    return this
  }

  /** Id of the latest run. */
  get runId(): string {
    return `run of ${this.key.thread} ${this.#runs}`
  }

  open(): this {
    return this.add(draft.opened(this.key, 'new', null))
  }

  request(agent = 'alpha', runId = `request of ${this.key.thread}`): this {
    return this.add(draft.requested(runId, agent, 'do it'))
  }

  /** A run of an engine that has made one response with these calls. */
  run(o: { agent?: string; revision?: string; calls?: string[]; owner?: string } = {}): this {
    this.#runs++
    const run = { runId: this.runId, invocationId: this.runId, agent: o.agent ?? 'alpha', revision: o.revision ?? '1' }
    return this.add(
      draft.started(run, { id: o.owner ?? 'owner-1', kind: 'engine' }),
      draft.composed(1),
      draft.responded(1, 'calling', (o.calls ?? []).map(draft.call)),
    )
  }

  /** The suspension of the latest run: one wait a call. */
  suspend(
    waits: {
      call: string
      wait: string
      deadline?: number
      provider?: string
      externalId?: string
      kind?: 'external' | 'approval'
    }[],
  ): this {
    const batch = waits.map(({ call, wait, kind = 'external', deadline = null }) => draft.item(call, kind, wait, deadline))
    const events = waits.flatMap(({ wait, provider, externalId }) => draft.waiting(wait, provider, externalId))
    return this.add({ type: 'run.suspended/1', data: { run_id: this.runId, batch } }, ...events)
  }

  answer(wait: string): this {
    return this.add(draft.answered(wait, 2, `result of ${wait}`, { ok: true }))
  }

  /** A resume that `revision` of the agent refuses. */
  refuse(wait: string, revision: string, agent = 'alpha'): this {
    const run = { runId: `refused by ${revision}`, invocationId: this.runId, agent, revision }
    const trigger = { kind: 'batch' as const, continuation_ids: [wait] }
    return this.add(draft.started(run, { id: 'owner-1', kind: 'engine' }, trigger), draft.failed(run.runId))
  }

  end(how: Exclude<RunEnd['status'], 'suspended'>, run_id = this.runId): this {
    if (how === 'failed') return this.add(draft.failed(run_id))
    if (how === 'cancelled') return this.add({ type: 'run.cancelled/1', data: { run_id, reason: 'stop' } })
    return this.add({ type: 'run.completed/1', data: { run_id, output: draft.json('done') } })
  }
}
