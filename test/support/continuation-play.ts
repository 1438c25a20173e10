import { isDeepStrictEqual } from 'node:util'
import { type Clock, isThreadlogError, type JsonValue, systemClock } from '../../src/base/index.ts'
import { ContinuationFailure, ContinuationRecord, type LogContinuationStore } from '../../src/continuations/index.ts'
import {
  type Answer,
  apply,
  type Model,
  type ModelRun,
  type ModelWait,
  type Op,
  type Outcome,
  type Scope,
} from './continuation-model.ts'

// Plays random operations on replicas of a store and on the reference model, one by one and several at a time.

/** What one step is made from: the same numbers, the same step. */
export type Step = readonly number[]
export type Store = LogContinuationStore

const scopeOf = (applicationId: string, userId: string, sessionId: string, runId: string): Scope => ({
  ...{ applicationId, userId, sessionId, runId },
})

/** What operations are about. */
interface Domain {
  scopes: readonly Scope[]
  externalIds: readonly string[]
  ids: readonly string[]
}

/** Two runs of one session, one run id in two sessions, another user, another application. */
const SCOPES = [
  scopeOf('shop', 'ann', 'first', 'run-1'),
  scopeOf('shop', 'ann', 'first', 'run-2'),
  scopeOf('shop', 'ann', 'second', 'run-3'),
  scopeOf('shop', 'ann', 'second', 'run-1'),
  scopeOf('shop', 'bob', 'first', 'run-4'),
  scopeOf('desk', 'ann', 'first', 'run-5'),
]
const PROVIDERS = ['bank', 'post']
const EXTERNAL = ['job-1', 'job-2', 'job-3']
const EVERYTHING: Domain = { scopes: SCOPES, externalIds: EXTERNAL, ids: ['c1', 'c2', 'c3'] }
const SCHEMAS = ['result/v1', 'result/v2']
const OUTCOMES: Outcome[] = [
  { result: { paid: [] } },
  { result: null },
  { failure: { code: 'refused', retryable: false } },
  { failure: { code: 'refused', retryable: true } },
]
const CHECKPOINTS = ['main', 'tool']
const FRAMEWORKS = ['langgraph', 'adk'] as const

/** Reads the numbers of a step one after the other. */
class Choices {
  #at = 0
  readonly #numbers: Step
  constructor(numbers: Step) {
    this.#numbers = numbers
  }
  below(limit: number): number {
    return (this.#numbers[this.#at++ % this.#numbers.length] as number) % limit
  }
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T
  }
  chance(percent: number): boolean {
    return this.below(100) < percent
  }
}

/** An operation that has something to do with what is there, and now and then does not fit. */
function operation(choices: Choices, model: Model, { scopes, externalIds, ids }: Domain, newId: () => string): Op {
  const here = ({ scope: at }: { scope: Scope }) => scopes.some((other) => isDeepStrictEqual(other, at))
  const [runs, waits] = [model.runs.filter(here), model.waits.filter(here)]
  const wait = waits.length > 0 && choices.chance(90) ? choices.pick(waits) : undefined
  const run = runs.length > 0 ? choices.pick(runs) : undefined
  const near = <T>(right: T | undefined, others: readonly T[]): T =>
    right !== undefined && choices.chance(96) ? right : choices.pick(others)
  const kind = choices.chance(50) ? choices.pick(KINDS) : fitting(choices, run, wait)
  const owner = () => (wait && choices.chance(4) ? stranger(choices, wait.scope) : near(wait?.scope, scopes))
  const place = () => near(run?.scope, scopes)
  switch (kind) {
    case 'begin':
      return { op: 'begin', scope: choices.pick(scopes), framework: FRAMEWORKS[choices.chance(90) ? 0 : 1] }
    case 'run':
    case 'delete':
      return { op: kind, scope: choices.pick(scopes) }
    case 'transition':
      return transition(choices, run, place())
    case 'checkpoint': {
      const at = place()
      const checkpointId = choices.pick(CHECKPOINTS)
      const known = runs.find((r) => isDeepStrictEqual(r.scope, at))?.checkpoints[checkpointId]?.revision ?? null
      return {
        op: 'checkpoint',
        scope: at,
        checkpointId,
        expectedRevision: near(known, [null, 0, 1]),
        payload: { n: choices.below(9) },
      }
    }
    case 'readCheckpoint':
      return { op: 'readCheckpoint', scope: place(), checkpointId: choices.pick(CHECKPOINTS) }
    case 'suspend': {
      const running = runs.filter(({ status }) => status === 'running').map((r) => r.scope)
      const fresh = choices.chance(50)
      return {
        op: 'suspend',
        scope: near(running.length > 0 ? choices.pick(running) : undefined, scopes),
        provider: choices.pick(PROVIDERS),
        continuationId: fresh ? newId() : choices.pick(ids),
        externalId: choices.pick(externalIds),
        schemaId: choices.pick(SCHEMAS),
        fresh,
      }
    }
    case 'get':
      return { op: 'get', scope: owner(), continuationId: near(wait?.continuationId, ids) }
    case 'getProvider':
      return { op: 'getProvider', ...named(wait, owner(), near, ids) }
    case 'lookup': {
      const applicationId = near(wait?.scope.applicationId, ['shop', 'desk'])
      return {
        op: 'lookup',
        applicationId,
        provider: near(wait?.provider, PROVIDERS),
        externalId: near(wait?.externalId, externalIds),
      }
    }
    case 'list': {
      const after = choices.chance(50) ? null : near(wait?.continuationId, ids)
      return {
        op: 'list',
        applicationId: choices.pick(['shop', 'desk']),
        provider: choices.pick(PROVIDERS),
        after,
        limit: 1 + choices.below(3),
      }
    }
    case 'resolve':
      return {
        op: 'resolve',
        scope: owner(),
        provider: near(wait?.provider, PROVIDERS),
        externalId: near(wait?.externalId, externalIds),
        schemaId: near(wait?.schemaId, SCHEMAS),
        outcome: choices.pick(OUTCOMES),
      }
    case 'cancel':
      return { op: 'cancel', ...named(wait, owner(), near, ids), failure: { code: 'stopped', retryable: false } }
    default:
      return { op: kind, ...named(wait, owner(), near, ids) }
  }
}

/** What comes next in the life of a run. */
function fitting(choices: Choices, run: ModelRun | undefined, wait: ModelWait | undefined): Op['op'] {
  if (wait && !wait.cancelled && wait.status !== 'claimed') {
    if (wait.status === 'pending') return choices.pick(wait.ready ? ['resolve', 'resolve', 'cancel'] : ['resolve', 'arm'])
    return wait.ready ? 'claim' : 'arm'
  }
  return run?.status === 'running' ? 'suspend' : 'begin'
}

/** Somebody who is nearly the owner. */
const stranger = (choices: Choices, owner: Scope): Scope => ({
  ...owner,
  ...choices.pick([
    { applicationId: 'desk' },
    { userId: owner.userId === 'ann' ? 'bob' : 'ann' },
    { sessionId: 'third' },
    { runId: 'run-9' },
  ]),
})

const KINDS = [
  ...[
    'begin',
    'begin',
    'begin',
    'run',
    'transition',
    'transition',
    'checkpoint',
    'readCheckpoint',
    'delete',
    'get',
    'getProvider',
  ],
  ...[
    'suspend',
    'suspend',
    'suspend',
    'suspend',
    'lookup',
    'list',
    'resolve',
    'resolve',
    'claim',
    'claim',
    'claim',
    'arm',
    'arm',
    'cancel',
  ],
] as Op['op'][]

function transition(choices: Choices, run: ModelRun | undefined, at: Scope): Op {
  const to = choices.pick(['running', 'waiting', 'completed', 'failed', 'cancelled'] as const)
  const pendingAction = to === 'waiting' ? { type: 'human_approval', actionId: 'a', capability: 'ask.person' } : null
  const from = choices.chance(90) && run ? run.status : choices.pick(['running', 'waiting'] as const)
  return { op: 'transition', scope: at, expectedStatus: from, status: to, pendingAction }
}

const named = (
  wait: ModelWait | undefined,
  scope: Scope,
  near: <T>(right: T | undefined, others: readonly T[]) => T,
  ids: readonly string[],
) => ({
  scope,
  provider: near(wait?.provider, PROVIDERS),
  continuationId: near(wait?.continuationId, ids),
  expectedRevision: near(wait?.revision, [0, 1, 2, 3]),
})

/** What a replica makes of an operation, in the form of the model. */
async function perform(store: Store, o: Op): Promise<Answer> {
  try {
    return { value: form(await call(store, o)) }
  } catch (error) {
    if (isThreadlogError(error, 'checkpoint_conflict', 'not_found'))
      return { refused: error.code as 'checkpoint_conflict' | 'not_found' }
    if (!isThreadlogError(error, 'continuation_conflict')) throw error
    const { reason, same } = error.details as { reason: Extract<Answer, { refused: string }>['refused']; same?: boolean }
    return same === undefined ? { refused: reason } : { refused: reason, same }
  }
}

function call(store: Store, o: Op): Promise<unknown> {
  switch (o.op) {
    case 'begin':
      return store.beginRun(o)
    case 'run':
      return store.getRun(o.scope)
    case 'transition':
      return store.transitionRun({
        ...o,
        pendingAction: o.pendingAction as Parameters<Store['transitionRun']>[0]['pendingAction'],
      })
    case 'checkpoint':
      return store.putCheckpoint({ ...o, payload: o.payload as JsonValue })
    case 'readCheckpoint':
      return store.getCheckpoint(o)
    case 'delete':
      return store.deleteRun(o.scope)
    case 'suspend': {
      const { provider, continuationId, schemaId, externalId, fresh } = o
      const record = new ContinuationRecord({ ...o.scope, provider, continuationId, schemaId, capability: 'workflow.run' })
      return store.suspendContinuation({ record, externalId, fresh })
    }
    case 'get':
      return store.getContinuation(o)
    case 'getProvider':
      return store.getProviderContinuation(o)
    case 'lookup':
      return store.getContinuationByExternalId(o)
    case 'list':
      return store.listPendingContinuations(o)
    case 'resolve':
      return store.resolveContinuation({
        ...o,
        ...('result' in o.outcome ? { result: o.outcome.result } : { failure: new ContinuationFailure(o.outcome.failure) }),
      })
    case 'claim':
      return store.claimContinuation(o)
    case 'arm':
      return store.armContinuation(o)
    case 'cancel':
      return store.cancelContinuation({ ...o, failure: new ContinuationFailure(o.failure) })
  }
}

// biome-ignore lint/suspicious/noExplicitAny: records of three kinds
function form(value: any): unknown {
  if (value === undefined || value === null) return null
  if (Array.isArray(value)) return value.map(form)
  if (value.record) return { record: form(value.record), externalId: value.externalId }
  if (!('applicationId' in value)) return value
  const { applicationId, userId, sessionId, runId, createdAt, updatedAt, ...rest } = value
  if (createdAt > updatedAt) throw new Error('changed before it was made')
  if (value instanceof ContinuationRecord) {
    delete rest.resume
    delete rest.principalGrants
  }
  return JSON.parse(JSON.stringify({ scope: { applicationId, userId, sessionId, runId }, ...rest }))
}

/** Time that passes when somebody waits, so that nobody waits; how much at once is a choice. */
export const hastyClock = (ms: () => number): Clock => {
  let late = 0
  return {
    ...systemClock,
    now: () => Date.now() + late,
    async sleep(asked) {
      late += Math.max(asked, ms())
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

const order = <T>(items: readonly T[]): T[][] =>
  items.length < 2 ? [[...items]] : items.flatMap((item, i) => order(items.toSpliced(i, 1)).map((rest) => [item, ...rest]))

/** A store, on replicas, beside the model. What is done at once must come to what some order of it comes to. */
export class Play {
  readonly trace: string[] = []
  readonly seen = new Map<string, number>()
  #models: Model[]
  #made = 0
  readonly #replicas: readonly Store[]

  constructor(replicas: readonly Store[], onlyAwaited: boolean) {
    this.#replicas = replicas
    this.#models = [{ onlyAwaited, runs: [], waits: [] }]
  }

  /** @throws Error with the story, when no order explains the answers */
  async step(numbers: Step): Promise<void> {
    const choices = new Choices(numbers)
    const model = this.#models[0] as Model
    const count = choices.chance(60) ? 1 : 2 + choices.below(2)
    // Races are about the same thing, and now and then the same operation.
    const one = { scopes: [choices.pick(SCOPES)], externalIds: [choices.pick(EXTERNAL)], ids: [choices.pick(EVERYTHING.ids)] }
    const domain = count > 1 && choices.chance(60) ? one : EVERYTHING
    const newId = () => `n${String(++this.#made).padStart(3, '0')}`
    const ops = Array.from({ length: count }, () => operation(choices, model, domain, newId))
    if (count > 1 && choices.chance(20)) ops[1] = ops[0] as Op
    const from = choices.below(this.#replicas.length)
    await this.#perform(ops, from)
  }

  async #perform(ops: readonly Op[], from: number): Promise<void> {
    const replica = (i: number) => (from + i) % this.#replicas.length
    const answers = await Promise.all(ops.map((op, i) => perform(this.#replicas[replica(i)] as Store, op)))
    ops.forEach((op, i) => {
      const answer = answers[i] as Answer
      const came = `${op.op} ${'refused' in answer ? answer.refused : answer.value === null ? 'nothing' : 'done'}`
      this.seen.set(came, (this.seen.get(came) ?? 0) + 1)
      this.trace.push(`${ops.length > 1 ? '| ' : ''}${replica(i)}: ${JSON.stringify(op)} → ${JSON.stringify(answer)}`)
    })
    const ends = this.#models.flatMap((model) =>
      order(ops.map((_, i) => i)).flatMap((turn) => explain(model, turn, ops, answers)),
    )
    if (ends.length === 0) {
      const meant = this.#models.map((model) => `model: ${ops.map((op) => JSON.stringify(apply(model, op).answer)).join(' · ')}`)
      throw new Error([...this.trace, ...meant].join('\n'))
    }
    this.#models = ends.filter((end, i) => ends.findIndex((other) => isDeepStrictEqual(sorted(end), sorted(other))) === i)
  }

  /** Everything there is, asked of every replica. */
  async finish(): Promise<void> {
    const waits = (this.#models[0] as Model).waits
    const reads: Op[] = [
      ...SCOPES.map((at): Op => ({ op: 'run', scope: at })),
      ...SCOPES.flatMap((at) => CHECKPOINTS.map((checkpointId): Op => ({ op: 'readCheckpoint', scope: at, checkpointId }))),
      ...waits.map(
        (wait): Op => ({ op: 'getProvider', scope: wait.scope, provider: wait.provider, continuationId: wait.continuationId }),
      ),
      ...['shop', 'desk'].flatMap((applicationId) =>
        PROVIDERS.flatMap((provider): Op[] => [
          { op: 'list', applicationId, provider, after: null, limit: 1_000 },
          ...EXTERNAL.map((externalId): Op => ({ op: 'lookup', applicationId, provider, externalId })),
        ]),
      ),
    ]
    for (const read of reads) for (const [i] of this.#replicas.entries()) await this.#perform([read], i)
  }
}

function explain(model: Model, turn: number[], ops: readonly Op[], answers: readonly Answer[]): Model[] {
  let state = model
  for (const i of turn) {
    const { after, answer } = apply(state, ops[i] as Op)
    if (!isDeepStrictEqual(answer, answers[i]) && !isRacedSuspend(ops, i, answer, answers)) return []
    state = after
  }
  return [state]
}

/** A suspension that loses a race may say any of the reasons that are true by then; the model knows the first. */
const isRacedSuspend = (ops: readonly Op[], i: number, answer: Answer, answers: readonly Answer[]) =>
  ops.length > 1 && ops[i]?.op === 'suspend' && 'refused' in answer && 'refused' in (answers[i] as Answer)

/** Runs and waits in an order of their own, so that equal states are equal. */
const sorted = ({ onlyAwaited, runs, waits }: Model) => ({
  onlyAwaited,
  runs: runs.map((run) => JSON.stringify(run)).sort(),
  waits: waits.map((wait) => JSON.stringify(wait)).sort(),
})
