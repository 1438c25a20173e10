import { isThreadlogError, type JsonValue } from '../../base/index.ts'
import { type Actor, type StreamKey, type ThreadKey, threadStream } from '../../events/index.ts'
import { checkpointKey, Proposal, type ThreadState, type ThreadStore, type Wait } from '../../projections/index.ts'
import {
  beginRun,
  type CheckpointWrite,
  checkTransition,
  deleteRun,
  ownRun,
  type Transition,
  transition,
  writeCheckpoint,
} from '../foreign/runs.ts'
import { type RunRecord, runRecord } from '../foreign/views.ts'
import { invalidArgument, jsonValue } from '../model/arguments.ts'
import { CheckpointConflictError } from '../model/errors.ts'
import { FRAMEWORKS, type Framework } from '../model/resume.ts'
import { RunScope, type RunScopeFields } from '../model/scope.ts'
import { contextOf, type Holder, Reservations, type Taking, type Unique } from './reservations.ts'

/** The runs of foreign hosts on the event log, and what every operation on their sessions rests on. */
export class LogRunStore {
  protected readonly store: ThreadStore
  protected readonly actor: Actor = { kind: 'provider', id: '', source: 'continuations' }
  protected readonly reservations: Reservations

  constructor(o: { readonly store: ThreadStore }) {
    this.store = o.store
    this.reservations = new Reservations(o.store, this.actor)
  }

  /** Begins a run; again with the same scope and framework gives the run as it is. @throws CheckpointConflictError */
  async beginRun(o: { scope: RunScope | RunScopeFields; framework: Framework }): Promise<RunRecord> {
    const scope = new RunScope(o.scope)
    if (!FRAMEWORKS.includes(o.framework)) throw invalidArgument('framework', FRAMEWORKS.join(' or '))
    const stream = streamOf(scope)
    const before = await this.check(stream, (proposal) => beginRun(proposal, scope, o.framework, []))
    const known = before.foreign?.runs.get(scope.runId)
    if (known) return runRecord(scope, known)
    const taken = () => new CheckpointConflictError('The run id is taken.', { hint: 'Use another run id.' })
    const state = await this.reserving([{ kind: 'run_id', id: scope.runId }], holderOf(scope, scope.runId), taken, (held) =>
      this.commit(stream, (proposal) => beginRun(proposal, scope, o.framework, held)),
    )
    return runRecord(scope, ownRun(state, scope.runId))
  }

  async getRun(scope: RunScope | RunScopeFields): Promise<RunRecord | null> {
    const own = new RunScope(scope)
    const state = await this.look(streamOf(own), (s) => s.foreign?.runs.has(own.runId) === true)
    const run = state.foreign?.runs.get(own.runId)
    return run ? runRecord(own, run) : null
  }

  /** @throws CheckpointConflictError, ThreadlogError `not_found`, `invalid_argument` */
  async transitionRun(o: { scope: RunScope | RunScopeFields } & Transition): Promise<RunRecord> {
    checkTransition(o)
    const scope = new RunScope(o.scope)
    const state = await this.commit(streamOf(scope), (proposal) => transition(proposal, scope.runId, o))
    return runRecord(scope, ownRun(state, scope.runId))
  }

  /** Writes a checkpoint of the framework; a run may write while it runs and while it waits. @returns its new revision */
  async putCheckpoint(
    o: { scope: RunScope | RunScopeFields } & CheckpointWrite,
  ): Promise<{ checkpointId: string; revision: number }> {
    const scope = new RunScope(o.scope)
    const payload = jsonValue(o.payload)
    const state = await this.commit(streamOf(scope), (proposal) => writeCheckpoint(proposal, scope.runId, { ...o, payload }))
    const written = ownRun(state, scope.runId).checkpoints.get(checkpointKey(o.namespace ?? '', o.checkpointId))
    return { checkpointId: o.checkpointId, revision: written?.revision ?? 0 }
  }

  async getCheckpoint(o: {
    scope: RunScope | RunScopeFields
    checkpointId: string
    namespace?: string
  }): Promise<{ revision: number; payload: JsonValue } | null> {
    const scope = new RunScope(o.scope)
    const find = (state: ThreadState) =>
      state.foreign?.runs.get(scope.runId)?.checkpoints.get(checkpointKey(o.namespace ?? '', o.checkpointId))
    const found = find(await this.look(streamOf(scope), (state) => find(state) !== undefined))
    return found ? { revision: found.revision, payload: structuredClone(found.payload.value) } : null
  }

  /** Removes a run, its checkpoints and its waits; their external ids are free again. One that is not there is gone already. */
  async deleteRun(scope: RunScope | RunScopeFields): Promise<void> {
    const own = new RunScope(scope)
    const stream = streamOf(own)
    let gone: Unique[] = []
    await this.look(stream, (state) => state.foreign?.runs.has(own.runId) === true)
    await this.commit(stream, (proposal) => {
      const waits = [...proposal.state.waits.values()].filter((wait) => wait.runId === own.runId)
      gone = proposal.state.foreign?.runs.has(own.runId)
        ? [{ kind: 'run_id', id: own.runId }, ...waits.flatMap((wait) => reservedFor(own.applicationId, wait))]
        : []
      return deleteRun(proposal, own.runId)
    })
    for (const what of gone) await this.reservations.free(what, sessionOf(own))
  }

  /** Commits what `decide` makes of the session; a refusal stands only behind a read barrier (R15). */
  protected commit(stream: StreamKey, decide: (proposal: Proposal) => Proposal): Promise<ThreadState> {
    return this.#orBehindBarrier(stream, async () => {
      const decided = (before: ThreadState) => decide(Proposal.on(before, contextOf(this.store, stream, this.actor)))
      return (await this.store.commit(stream, decided, Number.POSITIVE_INFINITY)).state
    })
  }

  /** The session, if `decide` has nothing against it as it is: what is refused here takes nothing and writes nothing. */
  protected check(stream: StreamKey, decide: (proposal: Proposal) => Proposal): Promise<ThreadState> {
    return this.#orBehindBarrier(stream, async () => {
      const state = await this.store.load(stream)
      decide(Proposal.on(state, contextOf(this.store, stream, this.actor)))
      return state
    })
  }

  async #orBehindBarrier<T>(stream: StreamKey, once: () => Promise<T>): Promise<T> {
    try {
      return await once()
    } catch (error) {
      if (!isRefusal(error)) throw error
      const { events } = this.store.backend
      const before = await events.head(stream)
      await events.barrier(events.partitionOf(stream))
      if ((await events.head(stream))?.version === before?.version) throw error
      return once()
    }
  }

  /** The session, behind a barrier if it does not show what is looked for. */
  protected async look(stream: StreamKey, shows: (state: ThreadState) => boolean): Promise<ThreadState> {
    const state = await this.store.load(stream)
    if (shows(state)) return state
    const { events } = this.store.backend
    await events.barrier(events.partitionOf(stream))
    return this.store.load(stream)
  }

  /**
   * Takes what only one may have, then does the work that rests on it. What is refused gives back what it took; what others took back in between,
   * because it looked abandoned, is taken once more.
   */
  protected async reserving<T>(
    whats: readonly Unique[],
    holder: Holder,
    refusal: (what: Unique) => Error,
    work: (held: readonly Taking[]) => Promise<T>,
  ): Promise<T> {
    for (;;) {
      const held: Taking[] = []
      try {
        for (const what of whats) {
          const taken = await this.reservations.take(what, holder)
          if (!taken) throw refusal(what)
          held.push(taken)
        }
        return await work(held)
      } catch (error) {
        const lost = await Promise.all(held.map((taking) => this.reservations.isWithdrawn(holder, taking)))
        for (const taking of held) if (taking.fresh) await this.reservations.release(taking)
        if (!isRefusal(error) || !lost.includes(true)) throw error
      }
    }
  }
}

const isRefusal = (error: unknown): boolean =>
  isThreadlogError(error, 'continuation_conflict', 'checkpoint_conflict', 'not_found')

const sessionOf = (scope: RunScope): ThreadKey => ({
  application: scope.applicationId,
  user: scope.userId,
  thread: scope.sessionId,
})

export const streamOf = (scope: RunScope): StreamKey => threadStream(sessionOf(scope))

export const holderOf = (scope: RunScope, id: string): Holder => ({ ...sessionOf(scope), id })

const reservedFor = (application: string, wait: Wait): Unique[] => [
  { kind: 'external_id', application, provider: wait.provider, key: wait.externalIdKey },
  { kind: 'continuation_id', id: wait.id },
]
