import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { countingIds, type Ids } from '../../../src/base/index.ts'
import { Runner } from '../../../src/engine/runner.ts'
import type { Owner, StreamKey } from '../../../src/events/index.ts'
import type { Agent, AttemptEnd, ToolContext } from '../../../src/harness/index.ts'
import { type Decision, Tail, type ThreadState, ThreadStore } from '../../../src/projections/index.ts'
import { type ModelAnswer, played, type Stage } from './cast.ts'
import { type Liveness, LogView, type ManualClock, type SharedLog } from './log.ts'

/** Something a process waits for, and what ends the wait. */
export type Gate =
  | { readonly kind: 'model'; readonly give: (answer: ModelAnswer) => void }
  | {
      readonly kind: 'tool'
      readonly name: string
      readonly callId: string
      readonly give: (outcome: unknown) => void
      readonly fail: (error: unknown) => void
    }

/** A tool body that began, and what the log said at that moment. */
export interface Execution {
  readonly tool: string
  readonly key: string
  readonly callId: string
  readonly approved: boolean
  readonly owner: string
  readonly agent: Agent
  /** Events accepted when it began. */
  readonly version: number
}

/** What processes share, and whom they tell. */
export interface Surroundings {
  readonly log: SharedLog
  readonly clock: ManualClock
  readonly stream: StreamKey
  readonly liveness: Liveness
  began(execution: Execution): void
  asked(prompt: LanguageModelV4Prompt): void
  /** An attempt, an answer or a cancel ended with an error. */
  died(what: string, error: unknown): void
  /** Stands between the store and a decider. */
  decided(state: ThreadState, decide: (state: ThreadState) => Decision | undefined): Decision | undefined
}

/** One incarnation of an engine or a library process: everything it knows is forgotten with it. */
export class Process implements Stage {
  readonly name: string
  readonly owner: Owner
  readonly agent: Agent
  readonly view: LogView
  readonly ids: Ids
  readonly store: ThreadStore
  readonly tail: Tail
  readonly runner: Runner
  readonly active = new Set<string>()
  readonly closing = new AbortController()
  gates: Gate[] = []
  /** What the process does for the thread, one thing at a time. */
  job: Promise<void> | undefined
  readonly #around: Surroundings

  private constructor(around: Surroundings, name: string, owner: Owner, agent: Agent, view: LogView, store: ThreadStore) {
    this.#around = around
    this.name = name
    this.owner = owner
    this.agent = played(agent, this)
    this.view = view
    this.ids = store.ids
    this.store = store
    this.tail = new Tail(view.backend.events)
    const actor = { kind: owner.kind, id: owner.id, source: owner.kind }
    this.runner = new Runner({ store, tail: this.tail, owner, actor, active: this.active })
  }

  static async start(
    around: Surroundings,
    name: string,
    kind: Owner['kind'],
    incarnation: number,
    agent: Agent,
  ): Promise<Process> {
    const id = `${name}.${incarnation}`
    const view = new LogView(around.log, id, around.liveness)
    const ids = countingIds(incarnation * 100_000)
    const store = await ThreadStore.open({ backend: view.backend, clock: around.clock, ids })
    const commit = store.commit.bind(store)
    store.commit = (stream, decide, tries) => commit(stream, (state) => around.decided(state, decide), tries)
    return new Process(around, id, { id, kind }, agent, view, store)
  }

  get alive(): boolean {
    return this.view.alive
  }

  get drive() {
    return { bindings: { deps: this }, signal: this.closing.signal }
  }

  /** Begins what `work` does, unless something is being done. */
  begin(what: string, work: () => Promise<AttemptEnd | undefined | void>): void {
    if (this.job) return
    this.job = work().then(
      () => {
        this.job = undefined
      },
      (error) => {
        this.job = undefined
        this.#around.died(`${this.name} ${what}`, error)
      },
    )
  }

  /** Nothing of it goes on: no answer reaches it any more. */
  kill(): void {
    this.view.alive = false
    this.gates = []
  }

  ask(options: LanguageModelV4CallOptions): Promise<ModelAnswer> {
    this.#around.asked(options.prompt)
    return new Promise((give) => {
      const gate: Gate = { kind: 'model', give: (answer) => this.#close(gate, () => give(answer)) }
      this.gates.push(gate)
      options.abortSignal?.addEventListener('abort', () => this.#close(gate, () => {}), { once: true })
    })
  }

  perform(tool: string, { idempotencyKey, callId, approved }: ToolContext): Promise<unknown> {
    const { owner, agent } = this
    const version = this.#around.log.records.length
    this.#around.began({ tool, key: idempotencyKey, callId, approved, owner: owner.id, agent, version })
    return new Promise((give, fail) => {
      const gate: Gate = {
        kind: 'tool',
        name: tool,
        callId,
        give: (outcome) => this.#close(gate, () => give(outcome)),
        fail: (error) => this.#close(gate, () => fail(error)),
      }
      this.gates.push(gate)
    })
  }

  #close(gate: Gate, act: () => void): void {
    this.gates = this.gates.filter((other) => other !== gate)
    act()
  }
}
