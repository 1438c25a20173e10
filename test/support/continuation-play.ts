import { isDeepStrictEqual } from 'node:util'
import { type Clock, isThreadlogError, type JsonValue, systemClock } from '../../src/base/index.ts'
import { ContinuationFailure, ContinuationRecord, type LogContinuationStore } from '../../src/continuations/index.ts'
import { type Answer, apply, type Model, type Op } from './continuation-model.ts'
import { CHECKPOINTS, Choices, EVERYTHING, EXTERNAL, operation, PROVIDERS, SCOPES, type Step } from './continuation-steps.ts'

// Plays random operations on replicas of a store and on the reference model, one by one and several at a time.

export type Store = LogContinuationStore

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
