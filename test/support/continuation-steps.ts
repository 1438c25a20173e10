import { isDeepStrictEqual } from 'node:util'
import type { Model, ModelRun, ModelWait, Op, Outcome, Scope } from './continuation-model.ts'

// Random operations on a store of continuations that have something to do with what is there.

/** What one step is made from: the same numbers, the same step. */
export type Step = readonly number[]

const scopeOf = (applicationId: string, userId: string, sessionId: string, runId: string): Scope => ({
  ...{ applicationId, userId, sessionId, runId },
})

/** What operations are about. */
export interface Domain {
  scopes: readonly Scope[]
  externalIds: readonly string[]
  ids: readonly string[]
}

/** Two runs of one session, one run id in two sessions, another user, another application. */
export const SCOPES = [
  scopeOf('shop', 'ann', 'first', 'run-1'),
  scopeOf('shop', 'ann', 'first', 'run-2'),
  scopeOf('shop', 'ann', 'second', 'run-3'),
  scopeOf('shop', 'ann', 'second', 'run-1'),
  scopeOf('shop', 'bob', 'first', 'run-4'),
  scopeOf('desk', 'ann', 'first', 'run-5'),
]
export const PROVIDERS = ['bank', 'post']
export const EXTERNAL = ['job-1', 'job-2', 'job-3']
export const EVERYTHING: Domain = { scopes: SCOPES, externalIds: EXTERNAL, ids: ['c1', 'c2', 'c3'] }
const SCHEMAS = ['result/v1', 'result/v2']
const OUTCOMES: Outcome[] = [
  { result: { paid: [] } },
  { result: null },
  { failure: { code: 'refused', retryable: false } },
  { failure: { code: 'refused', retryable: true } },
]
export const CHECKPOINTS = ['main', 'tool']
const FRAMEWORKS = ['langgraph', 'adk'] as const

/** Reads the numbers of a step one after the other. */
export class Choices {
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
export function operation(choices: Choices, model: Model, { scopes, externalIds, ids }: Domain, newId: () => string): Op {
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
