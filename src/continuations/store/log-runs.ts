import { isThreadlogError, type JsonValue } from '../../base/index.ts'
import { type Actor, type StreamKey, type ThreadKey, threadStream } from '../../events/index.ts'
import { Proposal, type ThreadState, type ThreadStore, type Wait } from '../../projections/index.ts'
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
import { Reservations, type Taking, type Unique } from './reservations.ts'

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
    const known = (await this.store.load(stream)).foreign?.runs.get(scope.runId)
    if (known?.framework === o.framework) return runRecord(scope, known)
    const reserved = await this.reservations.take({ kind: 'run_id', id: scope.runId }, holderOf(scope, scope.runId))
    if (!reserved) throw new CheckpointConflictError('The run id is taken.', { hint: 'Use another run id.' })
    const state = await this.orRelease([reserved], () =>
      this.commit(stream, (proposal) => beginRun(proposal, scope, o.framework, reserved)),
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
    const written = ownRun(state, scope.runId).checkpoints.get(`${o.namespace ?? ''}\0${o.checkpointId}`)
    return { checkpointId: o.checkpointId, revision: written?.revision ?? 0 }
  }

  async getCheckpoint(o: {
    scope: RunScope | RunScopeFields
    checkpointId: string
    namespace?: string
  }): Promise<{ revision: number; payload: JsonValue } | null> {
    const scope = new RunScope(o.scope)
    const state = await this.look(streamOf(scope), (s) => s.foreign?.runs.has(scope.runId) === true)
    const found = state.foreign?.runs.get(scope.runId)?.checkpoints.get(`${o.namespace ?? ''}\0${o.checkpointId}`)
    return found ? { revision: found.revision, payload: structuredClone(found.payload.value) } : null
  }

  /** Removes a run, its checkpoints and its waits; their external ids are free again. One that is not there is gone already. */
  async deleteRun(scope: RunScope | RunScopeFields): Promise<void> {
    const own = new RunScope(scope)
    let gone: Unique[] = []
    await this.commit(streamOf(own), (proposal) => {
      const waits = [...proposal.state.waits.values()].filter((wait) => wait.runId === own.runId)
      gone = proposal.state.foreign?.runs.has(own.runId)
        ? [{ kind: 'run_id', id: own.runId }, ...waits.flatMap((wait) => reservedFor(own.applicationId, wait))]
        : []
      return deleteRun(proposal, own.runId)
    })
    for (const what of gone) await this.reservations.free(what)
  }

  /** Commits what `decide` makes of the session; a refusal stands only behind a read barrier (R15). */
  protected async commit(stream: StreamKey, decide: (proposal: Proposal) => Proposal): Promise<ThreadState> {
    const once = async () => {
      const { state } = await this.store.commit(
        stream,
        (before) => {
          const { drafts, context: decided } = decide(Proposal.on(before, context(this.store, stream, this.actor)))
          return { drafts, context: decided }
        },
        Number.POSITIVE_INFINITY,
      )
      return state
    }
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

  /** Gives back what was taken for something that was then refused. */
  protected async orRelease<T>(taken: readonly Taking[], work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      for (const taking of taken) if (taking.fresh) await this.reservations.release(taking)
      throw error
    }
  }
}

const isRefusal = (error: unknown): boolean =>
  isThreadlogError(error, 'continuation_conflict', 'checkpoint_conflict', 'not_found')

export const context = (store: ThreadStore, stream: StreamKey, actor: Actor) => ({
  stream,
  now: store.clock.now(),
  actor,
  runId: null,
  attempt: null,
})

const sessionOf = (scope: RunScope): ThreadKey => ({
  application: scope.applicationId,
  user: scope.userId,
  thread: scope.sessionId,
})

export const streamOf = (scope: RunScope): StreamKey => threadStream(sessionOf(scope))

export const holderOf = (scope: RunScope, id: string) => ({ ...sessionOf(scope), id })

const reservedFor = (application: string, wait: Wait): Unique[] => [
  { kind: 'external_id', application, provider: wait.provider, key: wait.externalIdKey },
  { kind: 'continuation_id', id: wait.id },
]
