import {
  type Clock,
  checkOptions,
  type Ids,
  type JsonObject,
  type JsonValue,
  reject,
  sha256Hex,
  systemClock,
  systemIds,
} from '../base/index.ts'
import {
  type Answer,
  type AuditSink,
  answer,
  apiSource,
  approval,
  ContinuationProvider,
  denial,
  HUMAN_PROVIDER,
  humanContext,
  LogContinuationStore,
  logProjectors,
  type Receipt,
  receiptRecord,
  receiptSubject,
  type Submission,
  type SubmitContext,
  type SubmitDeps,
  settleHeldOf,
  settleResult,
  submitRecord,
  type Validators,
} from '../continuations/index.ts'
import { type EdgeCodec, edgeCodec, type ThreadKey, threadStream } from '../events/index.ts'
import { type Agent, checkSuspension, open, request } from '../harness/index.ts'
import { type LogBackend, openLog } from '../log/index.ts'
import { Folds, Proposal, Tail, ThreadStore } from '../projections/index.ts'
import type { SettleAnswer } from './answer-waits.ts'
import { hostWaits } from './continuations.ts'
import { earlyResults } from './early-results.ts'
import { Engine, type ServeOptions } from './engine.ts'
import { runInProcess } from './library.ts'
import { waitLookup } from './lookups.ts'
import { prepareRun } from './prepare-run.ts'
import { RunHandleImpl } from './run-handle.ts'
import { RunStream } from './run-stream.ts'
import { Runner } from './runner.ts'
import { ThreadHandle } from './thread-handle.ts'
import type { RunHandle, RunOptions, RunResult, ThreadlogOptions, Wait } from './types.ts'
import { resultValidators, strict } from './validators.ts'
import { followWaits, openWaitCounts, type WaitCount, type WaitFilter } from './waits.ts'

/**
 * Opens a log and everything that runs on it.
 * @param o.log `'memory'` (default), `sqlite:<file>` (created if missing), or an open backend
 * @param o.application application id of the threads; default `default`
 * @param o.content where values above 64 KiB are kept; default: the log itself
 * @throws ThreadlogError `option_invalid`, `log_damaged`, `log_format_newer`, `log_url_invalid`, …
 */
export async function openThreadlog(o: ThreadlogOptions = {}): Promise<Threadlog> {
  checkOptions(o)
  if (typeof o.log === 'object' && o.content)
    throw reject('option_invalid', 'An open log has its content store already.', {
      path: 'content',
      hint: 'Give it to the function that opens the log.',
    })
  const backend = typeof o.log === 'object' ? o.log : await openLog(o.log ?? 'memory', { content: o.content })
  try {
    const folds = new Folds()
    await backend.install(logProjectors(folds))
    const clock = o.clock ?? systemClock
    const ids = o.ids ?? systemIds
    const store = await ThreadStore.open({ backend, clock, ids, folds })
    return new Threadlog(o, backend, store, clock, ids)
  } catch (error) {
    if (typeof o.log !== 'object') await backend.close()
    throw error
  }
}

/** Threads on one log. Close it when done: `await using`, or `close()`. */
export class Threadlog implements AsyncDisposable {
  readonly application: string
  readonly backend: LogBackend
  readonly store: ThreadStore
  readonly #clock: Clock
  readonly #ids: Ids
  readonly #ownsBackend: boolean
  readonly #codec: EdgeCodec | undefined
  readonly #early: ThreadlogOptions['earlyResults']
  readonly #agents = new Map<string, Agent>()
  /** Agents given to `run` or `stream`: their tools' results are checked too. */
  readonly #guests = new Set<Agent>()
  readonly #tail: Tail
  readonly #active: Set<string>
  readonly #library: Runner
  readonly #engines = new Set<Engine>()
  /** What `serve` was given beside the agents' own checks. */
  #validators: Validators | undefined
  #closed = false

  /** @internal Use {@link openThreadlog}. */
  constructor(o: ThreadlogOptions, backend: LogBackend, store: ThreadStore, clock: Clock, ids: Ids) {
    this.application = o.application ?? 'default'
    this.backend = backend
    this.store = store
    this.#clock = clock
    this.#ids = ids
    this.#ownsBackend = typeof o.log !== 'object'
    this.#early = o.earlyResults
    this.#codec = o.resultSchemas && edgeCodec(o.resultSchemas)
    this.#active = activeRuns(backend)
    for (const agent of o.agents ?? []) {
      if (this.#agents.has(agent.name))
        throw reject('agent_duplicate', 'Two agents have the same name.', { path: 'agents', expected: 'a name for each' })
      this.#agents.set(agent.name, agent)
    }
    this.#tail = new Tail(backend.events)
    this.#library = this.#runner('library')
  }

  #runner(kind: 'library' | 'engine'): Runner {
    const id = this.backend.owners.self
    return new Runner({
      store: this.store,
      tail: this.#tail,
      owner: { id, kind },
      actor: { kind, id, source: kind },
      active: this.#active,
      // What is missed here the sweep of an engine finds.
      onSuspended: (state) => settleHeldOf(this.#submitDeps(), state),
    })
  }

  /** Runs an agent here and now (library mode). @throws ThreadlogError as {@link runInProcess} */
  async run(agent: Agent | string, o: RunOptions = {}): Promise<RunResult> {
    checkOptions(o)
    return runInProcess(this.#libraryDeps(), this.#agent(agent), o)
  }

  /** As {@link run}, telling text, calls and events as they come. Starts when it is iterated or its `result` awaited. */
  stream(agent: Agent | string, o: RunOptions = {}): RunStream {
    checkOptions(o)
    const deps = this.#libraryDeps()
    return new RunStream(deps, this.#tail, prepareRun(deps, this.#agent(agent), o))
  }

  #libraryDeps() {
    this.#open()
    const settle: SettleAnswer = async (wait, answer) => {
      const record = { provider: wait.provider, continuation_id: wait.id, ...answer }
      const source = apiSource('deferred_resume', this.#ids.token())
      return this.#settleRecord(record, {
        actor: { kind: 'library', id: '', source: 'api' },
        source,
        authority: { allows: () => true },
      })
    }
    return { store: this.store, runner: this.#library, application: this.application, settle }
  }

  /**
   * Asks for a run: recorded durably when this resolves, and done by any engine that has the agent, in any process.
   * @param o.commandId the same id asks once, however often it is sent
   */
  async start(o: {
    agent: string | Agent
    user?: string
    thread?: string
    input?: JsonValue
    commandId?: string
    toolRecovery?: RunOptions['toolRecovery']
    toolErrors?: RunOptions['toolErrors']
    abandon?: RunOptions['abandon']
  }): Promise<RunHandle> {
    this.#open()
    checkOptions(o)
    const thread = o.thread ?? (o.commandId === undefined ? this.#ids.thread() : threadOf(o.commandId))
    const key: ThreadKey = { application: this.application, user: o.user ?? 'default', thread }
    const stream = threadStream(key)
    const agent = typeof o.agent === 'string' ? o.agent : o.agent.name
    const options = {
      toolRecovery: o.toolRecovery ?? 'declared',
      toolErrors: o.toolErrors ?? 'return',
      ...(o.abandon === true ? { abandon: true } : {}),
    } as const
    const own = typeof o.agent === 'string' ? this.#agents.get(o.agent) : o.agent
    const wanted = { runId: this.#ids.run(), agent, input: o.input ?? null, options, commandId: o.commandId ?? null }
    const { state } = await this.store.commit(stream, (before) => {
      const actor = { kind: 'api', id: '', source: 'start' }
      const context = { stream, now: this.#clock.now(), actor, runId: null, attempt: null, commandId: wanted.commandId }
      const again = wanted.commandId !== null && before.commands.has(wanted.commandId)
      if (own && !again) checkSuspension(before, own, { abandon: o.abandon, answers: null })
      return request(open(Proposal.on(before, context), key), wanted)
    })
    const runId = (wanted.commandId === null ? undefined : state.commands.get(wanted.commandId)) ?? wanted.runId
    return new RunHandleImpl(this.store, this.#tail, key, runId)
  }

  /** Serves this process's agents: runs, results, recovery, until closed or killed. */
  async serve(o: ServeOptions = {}): Promise<Engine> {
    checkOptions(o)
    this.#open()
    this.#validators = o.validators ?? this.#validators
    const engine = new Engine(
      {
        store: this.store,
        tail: this.#tail,
        runner: this.#runner('engine'),
        active: this.#active,
        agents: this.#agents,
        submit: this.#submitDeps(),
        settle: (record, context) => this.#settleRecord(record, context),
      },
      o,
    )
    await engine.start()
    this.#engines.add(engine)
    void engine.closed.then(() => this.#engines.delete(engine))
    return engine
  }

  /** Open waits, oldest first; with `follow`, also those to come. */
  waits(filter: WaitFilter = {}): AsyncIterable<Wait> {
    checkOptions(filter)
    this.#open()
    return followWaits({ store: this.store, tail: this.#tail, application: this.application }, filter)
  }

  /** How many waits are open, by provider and kind, and since when. */
  async waitCounts(filter: Pick<WaitFilter, 'provider' | 'kind'> = {}): Promise<WaitCount[]> {
    checkOptions(filter)
    this.#open()
    await this.backend.events.barrier()
    return openWaitCounts(this.backend.tables, { application: this.application, ...filter })
  }

  /** Submits a result as a provider does (persons use `approve`, `deny` and `answer`); the same record as on the results topic. The receipt says what became of it. */
  async submit(result: JsonObject | string | Uint8Array, o: { by?: string; commandId?: string } = {}): Promise<Receipt> {
    checkOptions(o)
    const actor = { kind: 'provider', id: o.by ?? '', source: 'api' }
    const source = apiSource('submit', o.commandId ?? this.#ids.token())
    return this.#settleRecord(result, { actor, source, authority: { allows: (provider) => provider !== HUMAN_PROVIDER } })
  }

  async #settleRecord(record: JsonObject | string | Uint8Array, context: SubmitContext): Promise<Receipt> {
    this.#open()
    return this.#published((await submitRecord(this.#strictDeps(), record, context)).receipt)
  }

  /** Lets a proposed call run. Quote `digest` (of the wait) so that the approval counts for what was shown. */
  async approve(waitId: string, o: Decision & { overrideArgs?: JsonObject } = {}): Promise<Receipt> {
    checkOptions(o)
    const { digest, overrideArgs, reason: message } = o
    return this.#decide('approve', approval(waitId, { digest, overrideArgs, message }), o)
  }

  /** Refuses a proposed call; the model reads the reason. */
  async deny(waitId: string, o: Decision = {}): Promise<Receipt> {
    checkOptions(o)
    return this.#decide('deny', denial(waitId, { digest: o.digest, reason: o.reason }), o)
  }

  /** Answers a question. */
  async answer(waitId: string, value: Answer, o: Decision = {}): Promise<Receipt> {
    checkOptions(o)
    return this.#decide('answer', answer(waitId, value, { digest: o.digest }), o)
  }

  async #decide(api: string, submission: Submission, o: Decision): Promise<Receipt> {
    this.#open()
    const context = humanContext(o.by ?? '', api, o.commandId ?? this.#ids.token())
    return this.#published((await settleResult(this.#strictDeps(), submission, context)).receipt)
  }

  async #published(receipt: Receipt): Promise<Receipt> {
    const key = receiptSubject(receipt) ?? ''
    await this.backend.topics.publish('receipts', [receiptRecord(key, receipt, this.#clock.now())])
    return receipt
  }

  #submitDeps(): SubmitDeps {
    const { store, application } = this
    const agents = () => [...this.#agents.values(), ...this.#guests]
    const validators = resultValidators(agents, this.#validators)
    const codec = this.#codec
    const early = earlyResults(agents, this.#early)
    return { store, application, lookup: waitLookup(this.backend.tables), validators, early, ...(codec && { codec }) }
  }

  /** For callers of the API: what this process cannot check it does not accept. */
  #strictDeps(): SubmitDeps {
    const deps = this.#submitDeps()
    const [engine] = this.#engines
    return { ...deps, validators: strict(deps.validators), ...(engine ? { commit: engine.commitOutcome.bind(engine) } : {}) }
  }

  /**
   * The waits of one provider, as a job system or an inbox holds them.
   * @param o.deadlineMs milliseconds after which waits that hosts suspend here may expire
   * @throws ThreadlogError `provider_name_invalid`
   */
  continuations(provider: string, o: { audit?: AuditSink; deadlineMs?: number } = {}): ContinuationProvider {
    checkOptions(o)
    if (provider === HUMAN_PROVIDER)
      throw reject('provider_name_invalid', 'Approvals and answers have a way of their own.', {
        path: 'provider',
        expected: 'another name than `human`',
        hint: 'Use approve, deny and answer.',
      })
    return new ContinuationProvider({
      store: this.continuationStore(o),
      applicationId: this.application,
      provider,
      newId: () => this.#ids.continuation(),
      now: () => this.#clock.now(),
      ...(o.deadlineMs === undefined ? {} : { deadlineMs: o.deadlineMs }),
    })
  }

  /** Runs and waits of hosts with a loop of their own (LangGraph, ADK, any other), and all waits by their store's nine operations. */
  continuationStore(o: { audit?: AuditSink; onlyAwaited?: boolean } = {}): LogContinuationStore {
    checkOptions(o)
    this.#open()
    return new LogContinuationStore({ ...o, store: this.store, host: hostWaits(this.#strictDeps(), this.#submitDeps()) })
  }

  /** A thread by its id (of the default user), or by user and id. */
  thread(ref: string | { user?: string; thread: string }): ThreadHandle {
    if (typeof ref !== 'string') checkOptions(ref)
    const { user = 'default', thread } = typeof ref === 'string' ? { thread: ref } : ref
    const key = { application: this.application, user, thread }
    return new ThreadHandle({ store: this.store, tail: this.#tail, runner: this.#library, agents: this.#agents }, key)
  }

  #agent(agent: Agent | string): Agent {
    if (typeof agent !== 'string') {
      this.#guests.add(agent)
      return agent
    }
    const known = this.#agents.get(agent)
    if (known) return known
    throw reject('agent_unknown', 'This process has no agent of that name.', {
      path: 'agent',
      expected: [...this.#agents.keys()].join(', '),
    })
  }

  #open(): void {
    if (this.#closed) throw reject('closed', 'This threadlog is closed.', { hint: 'Open it again.' })
  }

  /** Stops runs and engines, then the tail, then the log; the first error wins. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const engines = [...this.#engines].map((engine) => () => engine.close())
    const steps = [() => this.#library.close(), ...engines, () => this.#tail.close()]
    if (this.#ownsBackend) steps.push(() => this.backend.close())
    let first: unknown
    for (const step of steps) await step().catch((error: unknown) => (first ??= error))
    if (first !== undefined) throw first
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

const actives = new WeakMap<LogBackend, Set<string>>()

/** Runs that this process drives on a log, whoever of it opened the log: all of them are one owner. */
function activeRuns(backend: LogBackend): Set<string> {
  const active = actives.get(backend) ?? new Set()
  actives.set(backend, active)
  return active
}

/** The new thread of a command: the same command, the same thread. */
const threadOf = (commandId: string): string => `thread_${sha256Hex(`threadlog/command/1 ${commandId}`).slice(0, 32)}`

/** Who decides, on what shown proposal, and why. */
export interface Decision {
  digest?: string
  by?: string
  reason?: string
  commandId?: string
}
