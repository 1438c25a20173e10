import type { JsonValue } from '../../src/base/index.ts'
import type { EventDraft, ThreadKey } from '../../src/events/index.ts'
import type { Settlement, WaitStatus } from '../../src/projections/index.ts'
import * as draft from './thread-drafts.ts'

/** One commit of a legal thread, and what must hold behind it. */
export interface LegalCommit {
  readonly what: string
  readonly drafts: readonly EventDraft[]
  readonly runId: string | null
  readonly attempt: number | null
  readonly time: number
  readonly expect: Expected
}

export interface Expected {
  readonly status: 'idle' | 'requested' | 'running' | 'waiting' | 'resolved'
  readonly messages: number
  readonly requestedAgent: string | null
  readonly blockedRevision: string | null
  readonly lastEnd: 'completed' | 'failed' | 'cancelled' | null
  readonly waits: ReadonlyMap<string, WaitStatus>
}

interface ModelRun {
  readonly runId: string
  readonly invocationId: string
  readonly attempt: number
  readonly agent: string
  readonly revision: string
  readonly step: number
  readonly suspended: boolean
  /** What may follow: a request message, or a response. */
  readonly turn: 'request' | 'response'
  readonly waitIds: readonly string[]
  readonly blocked: string | null
}

interface ModelCall {
  dispatches: number
  settled: boolean
  composed: boolean
}

interface ModelWait {
  status: WaitStatus
  revision: number
  readonly callId: string
  readonly kind: 'external' | 'approval' | 'question'
}

/** How often, what, and how; the answer is the run the commit belongs to. */
type Action = [weight: number, what: string, act: () => ModelRun | undefined]

const AGENTS = ['alpha', 'beta']
const SETTLEMENTS: Settlement[] = ['returned', 'failed', 'denied', 'retried', 'unknown']

/** Knows what may happen next to a thread, without looking at any fold. Choices are numbers, taken modulo what is possible. */
export class ThreadModel {
  readonly #key: ThreadKey
  #ids = 0
  #opened = false
  #messages = 0
  #queue: { runId: string; agent: string }[] = []
  #run: ModelRun | undefined
  #calls = new Map<string, ModelCall>()
  #waits = new Map<string, ModelWait>()
  #lastEnd: Expected['lastEnd'] = null
  #detail = 0
  #drafts: EventDraft[] = []

  constructor(key: ThreadKey) {
    this.#key = key
  }

  next(choice: number, detail: number): LegalCommit {
    const actions = this.#possible().flatMap(([weight, what, act]) => Array.from({ length: weight }, () => [what, act] as const))
    const [what, act] = actions[choice % actions.length]!
    this.#detail = detail
    this.#drafts = []
    const context = act()
    const { runId, attempt } = context ?? { runId: null, attempt: null }
    const expect: Expected = {
      status: this.#status(),
      messages: this.#messages,
      requestedAgent: this.#queue[0]?.agent ?? null,
      blockedRevision: this.#run?.blocked ?? null,
      lastEnd: this.#lastEnd,
      waits: new Map([...this.#waits].map(([id, wait]) => [id, wait.status])),
    }
    return { what, drafts: this.#drafts, runId, attempt, time: 1_790_000_000_000 + ++this.#ids, expect }
  }

  #status(): Expected['status'] {
    const run = this.#run
    if (run?.suspended) return run.waitIds.some((id) => this.#wait(id).status === 'pending') ? 'waiting' : 'resolved'
    if (run) return 'running'
    return this.#queue.length > 0 ? 'requested' : 'idle'
  }

  /** What may happen now, the ways forward more often than the ways out. */
  #possible(): Action[] {
    if (!this.#opened) return [[1, 'open', () => this.#open()]]
    const actions: Action[] = [
      [1, 'request', () => this.#request()],
      [1, 'note', () => this.#note()],
    ]
    const run = this.#run
    if (this.#messages > 0) actions.push([1, 'revise', () => this.#revise()])
    if (run) actions.push(...(run.suspended ? this.#whileSuspended(run) : this.#whileRunning(run)))
    else {
      actions.push([4, 'run', () => this.#runAtOnce()])
      if (this.#queue.length > 0)
        actions.push([4, 'start', () => this.#start()], [1, 'refuse request', () => this.#refuseRequest()])
    }
    return actions
  }

  #whileSuspended(run: ModelRun): Action[] {
    const actions: Action[] = [[1, 'cancel suspended', () => this.#cancelSuspended(run)]]
    if (this.#queue.length > 0) actions.push([1, 'abandon and start', () => this.#abandonAndStart(run)])
    if (this.#status() === 'waiting') actions.push([6, 'answer', () => this.#answer()], [1, 'expire', () => this.#expire()])
    else actions.push([6, 'resume', () => this.#resume(run)])
    if (this.#status() === 'resolved' && this.#unclaimed(run).length > 0) actions.push([2, 'refuse', () => this.#refuse(run)])
    return actions
  }

  #whileRunning(run: ModelRun): Action[] {
    const out: Action[] = [
      [1, 'fail', () => this.#end('failed', run)],
      [1, 'cancel', () => this.#cancel(run)],
      [1, 'recover', () => this.#recover(run)],
    ]
    if (run.turn === 'response')
      return [...out, [9, 'respond', () => this.#respond(run)], [1, 'model failed', () => this.#modelFailed(run)]]
    const open = this.#openCalls()
    if (open.length === 0) {
      if (this.#uncomposed().length === 0) out.push([2, 'complete', () => this.#end('completed', run)])
      return [...out, [9, 'compose', () => this.#compose(run)]]
    }
    if (open.some((id) => this.#call(id).dispatches === 0)) out.push([7, 'suspend', () => this.#suspend(run)])
    return [...out, [3, 'settle', () => this.#settleOne(run)], [3, 'dispatch', () => this.#dispatch(run)]]
  }

  #open(): undefined {
    this.#opened = true
    const kinds = ['new', 'new', 'imported', 'forked'] as const
    const kind = kinds[this.#pick(kinds.length)]!
    const calls = kind === 'new' || this.#pick(2) === 0 ? [] : [this.#newCall()]
    if (kind !== 'new') this.#messages = 2
    this.#add(draft.opened(this.#key, kind, kind === 'new' ? null : draft.importedState(this.#key.thread, calls)))
  }

  #request(): undefined {
    const runId = this.#id('run')
    const agent = AGENTS[this.#pick(2)]!
    this.#queue.push({ runId, agent })
    const input = this.#pick(4) === 0 ? null : 'do it'
    this.#add(draft.requested(runId, agent, input, this.#pick(2) === 0 ? null : this.#id('command')))
    return undefined
  }

  #start(): ModelRun {
    const { runId, agent } = this.#queue.shift()!
    return this.#begin({ runId, invocationId: runId, agent, revision: '1' }, 'input', [])
  }

  /** A library run: asked for and started in one commit. Earlier requests stay in the queue. */
  #runAtOnce(): ModelRun {
    this.#request()
    const { runId, agent } = this.#queue.pop()!
    return this.#begin({ runId, invocationId: runId, agent, revision: '1' }, 'input', [])
  }

  #begin(
    start: Pick<ModelRun, 'runId' | 'invocationId' | 'agent' | 'revision'>,
    kind: 'input' | 'batch',
    continuation_ids: readonly string[],
  ): ModelRun {
    const owner = { id: this.#id('owner'), kind: this.#pick(2) === 0 ? ('engine' as const) : ('library' as const) }
    this.#add(draft.started(start, owner, { kind, continuation_ids: [...continuation_ids] }))
    this.#run = { ...start, attempt: 1, step: 0, suspended: false, turn: 'request', waitIds: [], blocked: null }
    return this.#run
  }

  #refuseRequest(): undefined {
    const { runId } = this.#queue.shift()!
    this.#fail(runId)
    this.#lastEnd = 'failed'
    return undefined
  }

  #note(): ModelRun | undefined {
    const capability_id = ['notes', '__proto__'][this.#pick(2)]!
    if (this.#pick(3) === 0) this.#add({ type: 'capability.deleted/1', data: { capability_id } })
    else this.#add({ type: 'capability.written/1', data: { capability_id, version: '2', data: draft.json({ n: this.#ids }) } })
    return this.#run
  }

  #revise(): ModelRun | undefined {
    this.#add(draft.revised(this.#pick(this.#messages)))
    return this.#run
  }

  #compose(run: ModelRun, state: 'complete' | 'interrupted' = 'complete'): ModelRun {
    const ids = this.#uncomposed()
    for (const id of ids) this.#call(id).composed = true
    this.#add(draft.composed(run.step + 1, ids, state))
    this.#messages++
    return this.#now({ ...run, step: run.step + 1, turn: 'response' })
  }

  #modelFailed(run: ModelRun): ModelRun {
    this.#add(draft.modelFailed(run.step))
    if (this.#pick(2) === 0) this.#add(draft.modelRequested(run.step))
    return run
  }

  #respond(run: ModelRun): ModelRun {
    const replaces_previous = this.#pick(5) === 0
    if (replaces_previous) this.#response(run.step, [], false)
    this.#calls = new Map()
    const calls = Array.from({ length: this.#pick(4) }, () => this.#newCall())
    this.#response(run.step, calls, replaces_previous)
    const next = this.#now({ ...run, turn: 'request' })
    if (calls.length === 0 && this.#pick(2) === 0) this.#end('completed', next)
    return run
  }

  #response(step: number, calls: draft.Call[], replacesPrevious: boolean): void {
    this.#add(draft.responded(step, `answer ${this.#ids}`, calls, replacesPrevious))
    if (!replacesPrevious) this.#messages++
  }

  /** Call ids repeat over a thread's life, as models' do. */
  #newCall() {
    const id = `call-${this.#calls.size + 1}`
    this.#calls.set(id, { dispatches: 0, settled: false, composed: false })
    return draft.call(id)
  }

  #dispatch(run: ModelRun, id = this.#choose(this.#openCalls())): ModelRun {
    this.#add(draft.dispatched(id, ++this.#call(id).dispatches))
    return run
  }

  #settleOne(run: ModelRun): ModelRun {
    this.#settle(this.#choose(this.#openCalls()), SETTLEMENTS[this.#pick(SETTLEMENTS.length)]!)
    return run
  }

  #settle(id: string, settlement: Settlement, waitId?: string): void {
    const call = this.#call(id)
    call.settled = true
    this.#add(draft.settled(id, settlement, call.dispatches, waitId))
  }

  /** The calls that have begun are settled, all others wait (R10). */
  #suspend(run: ModelRun): ModelRun {
    const open = this.#openCalls()
    for (const id of open) if (this.#call(id).dispatches > 0) this.#settle(id, 'returned')
    const waiting = open.filter((id) => this.#call(id).dispatches === 0)
    let next = run
    if (this.#uncomposed().length > 0) next = this.#compose(run)
    const batch = waiting.map((id) => this.#item(id))
    this.#add({ type: 'run.suspended/1', data: { run_id: run.runId, batch } })
    this.#add(...batch.flatMap((item) => draft.waiting(item.continuation_id)))
    this.#now({ ...next, suspended: true, waitIds: batch.map((item) => item.continuation_id) })
    return run
  }

  #item(callId: string) {
    const continuation_id = this.#id(`wait-${this.#key.thread}`)
    const kind = (['external', 'approval', 'question'] as const)[this.#pick(3)]!
    this.#waits.set(continuation_id, { status: 'pending', revision: 1, callId, kind })
    return draft.item(callId, kind, continuation_id, this.#pick(2) === 0 ? null : 1_800_000_000_000)
  }

  #answer(): undefined {
    const id = this.#choose(this.#pending())
    const wait = this.#wait(id)
    const revision = ++wait.revision
    wait.status = this.#pick(3) > 0 ? 'completed' : 'failed'
    const value: JsonValue = wait.kind === 'approval' ? { approved: this.#pick(2) === 0, message: 'why' } : { ok: true }
    this.#add(draft.answered(id, revision, this.#id('result'), wait.status === 'completed' ? value : undefined))
    return undefined
  }

  #expire(): undefined {
    this.#close(this.#choose(this.#pending()), 'expired')
  }

  #close(id: string, status: 'expired' | 'cancelled' | 'abandoned'): void {
    const wait = this.#wait(id)
    wait.status = status
    this.#add({ type: `continuation.${status}/1`, data: { continuation_id: id, revision: ++wait.revision, failure: null } })
  }

  #resume(run: ModelRun): ModelRun {
    const ids = this.#unclaimed(run)
    for (const id of ids) {
      this.#wait(id).status = 'claimed'
      this.#add({ type: 'continuation.claimed/1', data: { continuation_id: id, revision: ++this.#wait(id).revision } })
    }
    let next = this.#begin({ ...run, runId: this.#id('run') }, 'batch', ids)
    for (const id of run.waitIds) {
      const { callId, status } = this.#wait(id)
      if (status === 'claimed' && this.#pick(3) === 0) this.#dispatch(next, callId)
      else this.#settle(callId, status === 'claimed' ? 'returned' : 'unknown', status === 'claimed' ? id : undefined)
    }
    if (this.#openCalls().length === 0) next = this.#compose(next)
    return next
  }

  #refuse(run: ModelRun): ModelRun {
    const refused = this.#begin({ ...run, runId: this.#id('run'), revision: this.#id('revision') }, 'batch', run.waitIds)
    this.#fail(refused.runId)
    this.#now({ ...run, blocked: refused.revision })
    return refused
  }

  #abandonAndStart(run: ModelRun): ModelRun {
    for (const id of run.waitIds)
      if (['pending', 'completed', 'failed'].includes(this.#wait(id).status)) this.#close(id, 'abandoned')
    return this.#start()
  }

  #cancelSuspended(run: ModelRun): undefined {
    for (const id of run.waitIds)
      if (this.#wait(id).status === 'pending') this.#close(id, 'cancelled')
      else if (this.#wait(id).status !== 'expired') this.#close(id, 'abandoned')
    this.#end('cancelled', run)
    return undefined
  }

  /** The cut of a running run: what is open becomes unknown, and an interrupted request closes the history. */
  #cancel(run: ModelRun): ModelRun {
    this.#add({ type: 'run.cancel-requested/1', data: { run_id: run.runId, command_id: null, reason: 'stop' } })
    if (this.#pick(3) === 0) return run
    for (const id of this.#openCalls()) this.#settle(id, 'unknown')
    if (this.#uncomposed().length > 0) this.#compose(run, 'interrupted')
    return this.#end('cancelled', run)
  }

  #recover(run: ModelRun): ModelRun {
    const attempt = run.attempt + 1
    const owner = { id: this.#id('owner'), kind: 'engine' as const }
    this.#add({ type: 'run.recovered/1', data: { run_id: run.runId, attempt, owner, why: 'owner gone' } })
    return this.#now({ ...run, attempt })
  }

  #end(how: 'completed' | 'failed' | 'cancelled', run: ModelRun): ModelRun {
    if (how === 'completed') this.#add({ type: 'run.completed/1', data: { run_id: run.runId, output: draft.json('done') } })
    else if (how === 'cancelled') this.#add({ type: 'run.cancelled/1', data: { run_id: run.runId, reason: 'stop' } })
    else this.#fail(run.runId)
    this.#run = undefined
    this.#lastEnd = how
    return run
  }

  #fail(run_id: string): void {
    this.#add(draft.failed(run_id))
  }

  #now(run: ModelRun): ModelRun {
    this.#run = run
    return run
  }

  #add(...drafts: EventDraft[]): void {
    this.#drafts.push(...drafts)
  }

  /** A number below `below`; each call uses up a part of the detail. */
  #pick(below: number): number {
    const value = this.#detail % below
    this.#detail = Math.floor(this.#detail / below) + this.#detail * 7
    this.#detail %= 1_000_003
    return value
  }

  #choose = (ids: readonly string[]): string => ids[this.#pick(ids.length)]!
  #id = (prefix: string): string => `${prefix}-${++this.#ids}`
  #call = (id: string): ModelCall => this.#calls.get(id)!
  #wait = (id: string): ModelWait => this.#waits.get(id)!
  #openCalls = (): string[] => [...this.#calls].filter(([, call]) => !call.settled).map(([id]) => id)
  #uncomposed = (): string[] => [...this.#calls].filter(([, call]) => call.settled && !call.composed).map(([id]) => id)
  #pending = (): string[] => this.#run?.waitIds.filter((id) => this.#wait(id).status === 'pending') ?? []
  #unclaimed = (run: ModelRun): string[] =>
    run.waitIds.filter((id) => this.#wait(id).status === 'completed' || this.#wait(id).status === 'failed')
}
