import type { Actor, EventDraft, LogEvent, StreamKey } from '../events/index.ts'
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

/** Events decided so far and the state they lead to, so that the next decision of the same commit sees the former ones. */
export class Proposal {
  readonly context: DecisionContext
  readonly drafts: readonly EventDraft[]
  readonly state: ThreadState

  private constructor(context: DecisionContext, drafts: readonly EventDraft[], state: ThreadState) {
    this.context = context
    this.drafts = drafts
    this.state = state
  }

  static on(state: ThreadState, context: DecisionContext): Proposal {
    return new Proposal(context, [], fork(state))
  }

  /** The proposal with these events added. Pure: `this` stays as it is. */
  add(...drafts: readonly EventDraft[]): Proposal {
    let state = this.state
    for (const draft of drafts) state = evolve(state, this.#provisional(draft, state))
    return new Proposal(this.context, [...this.drafts, ...drafts], state)
  }

  /** The same proposal for another run from here on (a resume starts a run within its commit). */
  for(runId: string, attempt: number): Proposal {
    return new Proposal({ ...this.context, runId, attempt }, this.drafts, this.state)
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
