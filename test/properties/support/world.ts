import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { extend } from '../../../src/continuations/extend.ts'
import {
  expireThread,
  type Submission,
  type SubmitContext,
  settleResult,
  type Verdict,
  validatorsOf,
} from '../../../src/continuations/index.ts'
import { cancelThread, cut, isUncut } from '../../../src/engine/cancel.ts'
import { RunHandleImpl } from '../../../src/engine/run-handle.ts'
import { resultValidators } from '../../../src/engine/validators.ts'
import { type Owner, type ThreadKey, threadStream } from '../../../src/events/index.ts'
import { type AttemptEnd, open, type RunRecordOptions, request } from '../../../src/harness/index.ts'
import {
  type Decision,
  emptyFold,
  type Folded,
  findWait,
  foldRecord,
  Proposal,
  type ThreadState,
  threadStatus,
} from '../../../src/projections/index.ts'
import { REVISIONS } from './cast.ts'
import { sameDecision } from './decisions.ts'
import { ManualClock, SharedLog } from './log.ts'
import { type Execution, Process, type Surroundings } from './process.ts'

/** One record of a result, and every verdict it was given. */
export interface Submitted {
  readonly waitId: string
  readonly submission: Submission
  readonly context: SubmitContext
  readonly verdicts: Verdict[]
}

const KEY: ThreadKey = { application: 'app', user: 'u-1', thread: 'thread_1' }
const FULL = REVISIONS[0] as (typeof REVISIONS)[0]
const KINDS: readonly Owner['kind'][] = ['engine', 'engine', 'library']

/** Decisions that one thing may lead to before nobody believes that they end. */
const MOST = 1_000

/** Everything in flight comes to where it waits for the world. */
export const flush = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A thread, the processes that work on it, and all that happened. Nothing moves but by its methods. */
export class World implements Surroundings {
  readonly log = new SharedLog()
  readonly clock = new ManualClock()
  readonly stream = threadStream(KEY)
  readonly killed = new Set<string>()
  readonly suspected = new Set<string>()
  readonly liveness = this
  readonly processes: Process[] = []
  readonly executions: Execution[] = []
  readonly prompts: LanguageModelV4Prompt[] = []
  readonly deaths: string[] = []
  readonly submitted: Submitted[] = []
  readonly commands: string[] = []
  /** Ids of commits of which a crash left only a part. */
  readonly torn: string[] = []
  /** Run ids asked for through a handle, and those whose handle gave a result. */
  readonly asks: { readonly runId: string; readonly by: Process }[] = []
  readonly results = new Set<string>()
  /** Decisions that were not the same twice, or changed what they were given. */
  readonly impure: string[] = []
  /** Some of the states that were decided on, as their writers had them. */
  readonly lived: { readonly state: ThreadState }[] = []
  /** Processes that are gone from their places, and still wait for somebody. */
  readonly retired: Process[] = []
  /** What happened, one line each. */
  readonly trace: string[] = []
  /** Inputs so far: no two are the same. */
  inputs = 0
  #incarnations = 0
  #folded: Folded = emptyFold
  /** Decisions since something happened last. */
  #decisions = 0

  static async open(): Promise<World> {
    const world = new World()
    for (let place = 0; place < KINDS.length; place++) await world.start(place)
    return world
  }

  note(line: string): void {
    this.#decisions = 0
    this.trace.push(line)
  }

  /** The fold of the log as it is, by nobody's cache. */
  get folded(): Folded {
    for (const record of this.log.records.slice(this.#folded.head.version)) this.#folded = foldRecord(this.#folded, record)
    return this.#folded
  }

  get state(): ThreadState {
    return this.folded.state
  }

  // What processes tell.

  began(execution: Execution): void {
    this.executions.push(execution)
  }

  asked(prompt: LanguageModelV4Prompt): void {
    this.prompts.push(prompt)
  }

  died(what: string, error: unknown): void {
    const { code, message } = error as { code?: string; message: string }
    this.deaths.push(`${what}: ${code ?? 'error'} ${message}`)
  }

  decided(state: ThreadState, decide: (state: ThreadState) => Decision | undefined): Decision | undefined {
    if (++this.#decisions > MOST) throw new Error(`a process decides for ever at version ${state.version}`)
    if (this.trace.length % 8 === 0) this.lived.push({ state })
    const { decision, fault } = sameDecision(state, decide)
    if (fault !== undefined) this.impure.push(fault)
    return decision
  }

  // What happens to processes.

  async start(place: number, agent = FULL): Promise<void> {
    const kind = KINDS[place] as Owner['kind']
    this.processes[place] = await Process.start(this, `${kind}${place}`, kind, ++this.#incarnations, agent)
  }

  async kill(place: number, agent = FULL): Promise<void> {
    const process = this.processes[place] as Process
    process.kill()
    this.killed.add(process.owner.id)
    await this.start(place, agent)
  }

  /** Gone without a crash: nobody proves it dead, but it renews its claims no more. */
  retire(process: Process): void {
    this.retired.push(process)
    this.suspected.add(process.owner.id)
  }

  // What processes do.

  /** One step for the thread, as an engine decides it; a library process takes over its own kind of runs only. */
  look(p: Process): void {
    p.begin('looks', async () => {
      const { store, runner, agent } = p
      const state = await store.load(this.stream)
      const status = threadStatus(state)
      if (await isUncut(store, runner, state)) return cut(store, this.stream)
      if (status === 'running') return this.#takeOver(p, state)
      if (status === 'resolved' && state.run?.blocked?.revision !== agent.revision) {
        const end = await runner.resume(this.stream, agent, p.drive)
        if (end.is !== 'ended' || end.end.status !== 'failed' || state.requested.length === 0) return end
      }
      const next = state.requested[0]
      return next && runner.start(this.stream, next.runId, agent, p.drive)
    })
  }

  async #takeOver(p: Process, state: ThreadState): Promise<AttemptEnd | undefined> {
    const { run } = state
    if (!run || run.owner.kind !== p.owner.kind || !(await p.runner.isUndriven(run))) return undefined
    return p.runner.recover(state, p.agent, 'owner-gone', p.drive)
  }

  /** A library call: asked for and started in one commit. */
  runHere(p: Process, input: string, options: RunRecordOptions): void {
    const runId = p.ids.run()
    const wanted = { runId, agent: 'agent', input, options, commandId: null }
    p.begin('runs', () =>
      p.runner.start(this.stream, runId, p.agent, p.drive, (proposal) => request(open(proposal, KEY), wanted)),
    )
  }

  /** Asks for a run and waits for its result from then on. */
  async ask(p: Process, input: string | null, options: RunRecordOptions, commandId: string | null): Promise<void> {
    const { store, stream } = { store: p.store, stream: this.stream }
    const wanted = { runId: p.ids.run(), agent: 'agent', input, options, commandId }
    const context = { stream, now: this.clock.now(), actor: ACTOR, runId: null, attempt: null, commandId }
    await this.#detached(p, 'asks', async () => {
      const { state } = await store.commit(stream, (before) => {
        const proposal = request(open(Proposal.on(before, context), KEY), wanted)
        return { drafts: proposal.drafts, context }
      })
      const runId = (commandId === null ? undefined : state.commands.get(commandId)) ?? wanted.runId
      this.asks.push({ runId, by: p })
      const handle = new RunHandleImpl(store, p.tail, KEY, runId)
      void handle.result().then(
        () => this.results.add(runId),
        (error) => this.died(`handle of ${runId}`, error),
      )
    })
  }

  async cancel(p: Process): Promise<void> {
    await this.#detached(p, 'cancels', () => cancelThread(p.store, this.stream, 'no longer wanted', p.ids.token()))
  }

  /** Ends what is overdue, as an engine's watch over deadlines does. */
  async expire(p: Process): Promise<void> {
    await this.#detached(p, 'watches deadlines', () => expireThread(p.store, this.stream))
  }

  /** A sign of life of the job behind a wait. */
  async beat(p: Process, waitId: string): Promise<void> {
    await this.#detached(p, 'hears a heartbeat', () =>
      p.store.commit(this.stream, (state) => {
        const wait = findWait(state, waitId)
        const context = { stream: this.stream, now: this.clock.now(), actor: ACTOR, runId: null, attempt: null }
        return wait?.status === 'pending' ? extend(Proposal.on(state, context), wait) : undefined
      }),
    )
  }

  /** Submits a result. Its verdict comes when the process gets to it, or never if it is killed before. */
  async submit(p: Process, result: Submitted, fused: boolean): Promise<void> {
    const { store, view } = p
    const found = (id: string) =>
      this.log.records
        .slice(0, view.indexed)
        .some((r) => r.event?.type === 'continuation.suspended/1' && r.event.data.continuation_id === id)
    const located = (id: string) => (found(id) ? { stream: this.stream, continuationId: id } : undefined)
    const lookup = { byContinuationId: located, byExternalId: (_: string, __: string, id: string) => located(id) }
    const validators = resultValidators(() => REVISIONS, validatorsOf())
    const commit = fused && !p.job ? { commit: this.#commitAndResume(p) } : {}
    await this.#detached(p, 'submits', async () => {
      const deps = { store, lookup, validators, application: KEY.application, ...commit }
      result.verdicts.push((await settleResult(deps, result.submission, result.context)).verdict)
    })
  }

  /** As an engine does it: the last answer of a batch joins the commit that resumes the run (R11). */
  #commitAndResume(p: Process) {
    return async (stream: string, decide: (state: ThreadState) => Decision | undefined): Promise<void> => {
      const { run } = await p.store.load(stream)
      if (p.job || run?.status !== 'suspended' || run.blocked?.revision === p.agent.revision) {
        await p.store.commit(stream, decide, Number.POSITIVE_INFINITY)
        return
      }
      const begun = Promise.withResolvers<void>()
      begun.promise.catch(() => {})
      p.begin('answers', () =>
        p.runner.answer(stream, p.agent, decide, { ...p.drive, onBegun: begun.resolve }).catch((error) => {
          begun.reject(error)
          throw error
        }),
      )
      await begun.promise
    }
  }

  async #detached(p: Process, what: string, work: () => Promise<unknown>): Promise<void> {
    void work().catch((error) => this.died(`${p.name} ${what}`, error))
    await flush()
  }
}

const ACTOR = { kind: 'api', id: '', source: 'start' }
