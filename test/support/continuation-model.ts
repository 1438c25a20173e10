import { isDeepStrictEqual } from 'node:util'
import type { ConflictReason } from '../../src/continuations/index.ts'

// What a store of continuations and runs has to answer (continuation spec §1.7, §2), in memory and one operation at a time: no log, no
// reservations, no replicas. Written from the specification, not from the store.

export interface Scope {
  applicationId: string
  userId: string
  sessionId: string
  runId: string
}

type RunStatus = 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled'
export type Action = { type: string; actionId: string; capability: string } | null
export type Outcome = { result: unknown } | { failure: { code: string; retryable: boolean } }
export interface WaitRef {
  scope: Scope
  provider: string
  continuationId: string
  expectedRevision: number
}

export type Op =
  | { op: 'begin'; scope: Scope; framework: 'adk' | 'langgraph' }
  | { op: 'run'; scope: Scope }
  | { op: 'transition'; scope: Scope; expectedStatus: RunStatus; status: RunStatus; pendingAction: Action }
  | { op: 'checkpoint'; scope: Scope; checkpointId: string; expectedRevision: number | null; payload: unknown }
  | { op: 'readCheckpoint'; scope: Scope; checkpointId: string }
  | { op: 'delete'; scope: Scope }
  | {
      op: 'suspend'
      scope: Scope
      provider: string
      continuationId: string
      externalId: string
      schemaId: string
      fresh: boolean
    }
  | { op: 'get'; scope: Scope; continuationId: string }
  | { op: 'getProvider'; scope: Scope; provider: string; continuationId: string }
  | { op: 'lookup'; applicationId: string; provider: string; externalId: string }
  | { op: 'list'; applicationId: string; provider: string; after: string | null; limit: number }
  | { op: 'resolve'; scope: Scope; provider: string; externalId: string; schemaId: string; outcome: Outcome }
  | ({ op: 'claim' | 'arm' } & WaitRef)
  | ({ op: 'cancel'; failure: { code: string; retryable: boolean } } & WaitRef)

/** A value, or why there is none; `same`: the outcome that stands is the one that was brought. */
export type Answer = { value: unknown } | { refused: ConflictReason | 'checkpoint_conflict' | 'not_found'; same?: boolean }

export interface ModelRun {
  scope: Scope
  framework: string
  status: RunStatus
  revision: number
  pendingAction: Action
  checkpoints: Record<string, { revision: number; payload: unknown }>
}

export interface ModelWait {
  scope: Scope
  provider: string
  continuationId: string
  externalId: string
  schemaId: string
  status: 'pending' | 'completed' | 'failed' | 'claimed'
  cancelled: boolean
  ready: boolean
  revision: number
  outcome: Outcome | null
}

export interface Model {
  /** Refuse outcomes for runs that do not wait for them (decision 0013). */
  onlyAwaited: boolean
  runs: ModelRun[]
  waits: ModelWait[]
}

const CAPABILITY = 'workflow.run'
const NEXT: Record<RunStatus, RunStatus[]> = {
  running: ['waiting', 'completed', 'failed', 'cancelled'],
  waiting: ['running', 'failed', 'cancelled'],
  completed: [],
  failed: [],
  cancelled: [],
}

class Refusal {
  readonly answer: Answer
  constructor(refused: ConflictReason | 'checkpoint_conflict' | 'not_found', same?: boolean) {
    this.answer = same === undefined ? { refused } : { refused, same }
  }
}

/** One operation: what it answers, and the state behind it. `before` stays as it is. */
export function apply(before: Model, op: Op): { after: Model; answer: Answer } {
  const after = structuredClone(before)
  try {
    return { after, answer: { value: value(after, op) ?? null } }
  } catch (error) {
    if (error instanceof Refusal) return { after: before, answer: error.answer }
    throw error
  }
}

const same = isDeepStrictEqual
const sameSession = (a: Scope, b: Scope) =>
  a.applicationId === b.applicationId && a.userId === b.userId && a.sessionId === b.sessionId
const isActive = ({ status }: ModelRun) => status === 'running' || status === 'waiting'

function value(model: Model, op: Op): unknown {
  const run = 'scope' in op ? model.runs.find(({ scope }) => same(scope, op.scope)) : undefined
  const owned = (): ModelRun => run ?? fail('not_found')
  switch (op.op) {
    case 'begin': {
      if (run) return run.framework === op.framework ? runForm(run) : fail('checkpoint_conflict')
      const taken = (other: ModelRun) =>
        other.scope.runId === op.scope.runId || (sameSession(other.scope, op.scope) && isActive(other))
      if (model.runs.some(taken)) fail('checkpoint_conflict')
      const { scope, framework } = op
      model.runs.push({ scope, framework, status: 'running', revision: 0, pendingAction: null, checkpoints: {} })
      return runForm(model.runs.at(-1) as ModelRun)
    }
    case 'run':
      return run && runForm(run)
    case 'transition': {
      if (!NEXT[op.expectedStatus].includes(op.status)) fail('checkpoint_conflict')
      if (owned().status !== op.expectedStatus) fail('checkpoint_conflict')
      return runForm(move(owned(), op.status, op.pendingAction))
    }
    case 'checkpoint': {
      const { checkpoints } = owned()
      if (!isActive(owned()) || (checkpoints[op.checkpointId]?.revision ?? null) !== op.expectedRevision)
        fail('checkpoint_conflict')
      const revision = Math.max(-1, ...Object.values(checkpoints).map((written) => written.revision)) + 1
      checkpoints[op.checkpointId] = { revision, payload: op.payload }
      return { checkpointId: op.checkpointId, revision }
    }
    case 'readCheckpoint':
      return run?.checkpoints[op.checkpointId]
    case 'delete':
      if (!run) return null
      model.runs = model.runs.filter((other) => other !== run)
      model.waits = model.waits.filter(({ scope }) => !same(scope, op.scope))
      return null
    case 'suspend': {
      if (run?.status !== 'running') return fail('run_not_running')
      const { scope, provider, continuationId, externalId, schemaId } = op
      if (model.waits.some((wait) => wait.continuationId === continuationId)) fail('id_taken')
      const { applicationId } = scope
      if (byExternalId(model, applicationId, provider, externalId)) fail('external_id_taken')
      move(run, 'waiting', { type: 'external_continuation', actionId: continuationId, capability: CAPABILITY })
      const state = { status: 'pending', cancelled: false, ready: false, revision: 0, outcome: null } as const
      model.waits.push({ scope, provider, continuationId, externalId, schemaId, ...state })
      return waitForm(model.waits.at(-1) as ModelWait)
    }
    case 'get':
      return forms(model.waits.filter((wait) => wait.continuationId === op.continuationId && same(wait.scope, op.scope)))[0]
        ?.record
    case 'getProvider':
      return forms(model.waits.filter((wait) => isMeant(wait, op)))[0]
    case 'lookup': {
      const found = byExternalId(model, op.applicationId, op.provider, op.externalId)
      return found && forms([found])[0]
    }
    case 'list': {
      const { applicationId, provider, after } = op
      const listed = model.waits
        .filter((wait) => wait.scope.applicationId === applicationId && wait.provider === provider && wait.status === 'pending')
        .filter((wait) => after === null || wait.continuationId > after)
      return forms(listed.sort((a, b) => (a.continuationId < b.continuationId ? -1 : 1)).slice(0, op.limit))
    }
    case 'resolve': {
      const wait = byExternalId(model, op.scope.applicationId, op.provider, op.externalId)
      if (!wait || !same(wait.scope, op.scope) || wait.schemaId !== op.schemaId) return fail('unknown')
      if (wait.status !== 'pending') ended(wait, op.outcome)
      if (model.onlyAwaited && !isAwaited(run, wait)) fail('run_not_waiting')
      return waitForm(change(wait, { status: 'result' in op.outcome ? 'completed' : 'failed', outcome: op.outcome }))
    }
    case 'arm': {
      const wait = atRevision(model, op)
      if (wait.ready) fail(wait.status === 'claimed' ? 'already_claimed' : 'already_armed')
      return waitForm(change(wait, { ready: true }))
    }
    case 'claim': {
      const wait = atRevision(model, op)
      if (wait.status === 'pending') fail('not_resolved')
      if (wait.cancelled || wait.status === 'claimed') ended(wait)
      if (!wait.ready) fail('not_armed')
      if (!run || !isAwaited(run, wait)) return fail('run_not_waiting')
      move(run, 'running', null)
      return waitForm(change(wait, { status: 'claimed' }))
    }
    case 'cancel': {
      const wait = atRevision(model, op)
      if (wait.status !== 'pending') ended(wait)
      if (!run || !isAwaited(run, wait)) return fail('run_not_waiting')
      move(run, 'cancelled', null)
      return waitForm(change(wait, { status: 'failed', cancelled: true, outcome: { failure: op.failure } }))
    }
  }
}

function fail(...why: ConstructorParameters<typeof Refusal>): never {
  throw new Refusal(...why)
}

const isMeant = (wait: ModelWait, o: { scope: Scope; provider: string; continuationId: string }) =>
  wait.continuationId === o.continuationId && wait.provider === o.provider && same(wait.scope, o.scope)

const byExternalId = (model: Model, applicationId: string, provider: string, externalId: string) =>
  model.waits.find((w) => w.scope.applicationId === applicationId && w.provider === provider && w.externalId === externalId)

function ended(wait: ModelWait, outcome?: Outcome): never {
  const reason = wait.status === 'claimed' ? 'already_claimed' : wait.cancelled ? 'cancelled' : 'already_resolved'
  return fail(reason, outcome === undefined || wait.cancelled ? undefined : same(wait.outcome, outcome))
}

function atRevision(model: Model, ref: WaitRef): ModelWait {
  const wait = model.waits.find((candidate) => isMeant(candidate, ref)) ?? fail('unknown')
  if (wait.revision !== ref.expectedRevision) fail(wait.status === 'claimed' ? 'already_claimed' : 'stale_revision')
  return wait
}

const isAwaited = (run: ModelRun | undefined, wait: ModelWait) =>
  run?.status === 'waiting' && run.pendingAction?.actionId === wait.continuationId

const change = (wait: ModelWait, changes: Partial<ModelWait>): ModelWait =>
  Object.assign(wait, changes, { revision: wait.revision + 1 })

const move = (run: ModelRun, status: RunStatus, pendingAction: Action): ModelRun =>
  Object.assign(run, { status, pendingAction, revision: run.revision + 1 })

const runForm = ({ checkpoints, ...run }: ModelRun) => run

function waitForm({ cancelled, externalId, outcome, ...wait }: ModelWait) {
  const result = outcome && 'result' in outcome ? outcome.result : null
  return { ...wait, capability: CAPABILITY, result, failure: outcome && 'failure' in outcome ? outcome.failure : null }
}

const forms = (waits: ModelWait[]) => waits.map((wait) => ({ record: waitForm(wait), externalId: wait.externalId }))
