import { type Actor, type EventDraft, type EventHash, fitDraft, type LogEvent, type StreamKey } from '../events/index.ts'
import { evolve } from './evolve.ts'
import type { ThreadState } from './state.ts'

/** Who decides, when, and for which run: recorded in every event of the decision. */
export interface DecisionContext {
  readonly stream: StreamKey
  /** Epoch milliseconds. */
  readonly now: number
  readonly actor: Actor
  readonly runId: string | null
  readonly attempt: number | null
  readonly commandId?: string | null
}

/** A proposal may come to nothing: what it adds must not get into the arrays that accepted states share. */
const fork = (state: ThreadState): ThreadState => ({
  ...state,
  history: state.history.fork(),
  runs: state.runs.fork(),
  invocations: state.invocations.fork(),
  commands: state.commands.fork(),
  closedWaits: state.closedWaits.fork(),
})

/** The state of an accepted proposal: what it added is shared from now on. */
export const landed = (state: ThreadState, hash: EventHash): ThreadState => ({
  ...state,
  hash,
  history: state.history.landed(),
  runs: state.runs.landed(),
  invocations: state.invocations.landed(),
  commands: state.commands.landed(),
  closedWaits: state.closedWaits.landed(),
})

/** Events decided so far and the state they lead to, so that the next decision of the same commit sees the former ones. */
export class Proposal {
  readonly context: DecisionContext
  readonly drafts: readonly EventDraft[]
  readonly state: ThreadState
  /** The state behind each draft; undefined if some were decided for another run than they will be recorded for. */
  readonly states: readonly ThreadState[] | undefined

  private constructor(
    context: DecisionContext,
    drafts: readonly EventDraft[],
    state: ThreadState,
    states: readonly ThreadState[] | undefined,
  ) {
    this.context = context
    this.drafts = drafts
    this.state = state
    this.states = states
  }

  static on(state: ThreadState, context: DecisionContext): Proposal {
    return new Proposal(context, [], fork(state), [])
  }

  /** The proposal with these events added. Pure: `this` stays as it is. @throws ThreadlogError `event_invalid`, `event_unfoldable` */
  add(...added: readonly EventDraft[]): Proposal {
    const drafts = [...this.drafts]
    const states = this.states && [...this.states]
    let state = this.state
    for (const draft of added) {
      const fitted = fitDraft(draft, drafts.length)
      state = evolve(state, this.#provisional(fitted, state))
      drafts.push(fitted)
      states?.push(state)
    }
    return new Proposal(this.context, drafts, state, states)
  }

  /** The same proposal for another run from here on (a resume starts a run within its commit). */
  for(runId: string, attempt: number): Proposal {
    const { context, drafts, state, states } = this
    if (context.runId === runId && context.attempt === attempt) return this
    return new Proposal({ ...context, runId, attempt }, drafts, state, drafts.length === 0 ? states : undefined)
  }

  /** The event as it will stand in the log, but for commit, chain and hash, which no fold looks at. */
  #provisional(draft: EventDraft, state: ThreadState): LogEvent {
    const { stream, now } = this.context
    const { type, data, by } = draft
    const { actor, runId, attempt } = by ? { ...by, runId: null, attempt: null } : this.context
    const version = state.version + 1
    return {
      type,
      data,
      stream,
      version,
      commit: { id: '', base: 0, index: 0, size: 0 },
      previous: state.hash,
      time: now,
      actor,
      causation: null,
      run_id: runId,
      attempt,
      sealing: 'none',
      hash: '',
    } as LogEvent
  }
}
