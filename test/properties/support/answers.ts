import type { JsonObject, JsonValue } from '../../../src/base/index.ts'
import {
  apiSource,
  HUMAN_PROVIDER,
  humanContext,
  outcomeDigest,
  type Submission,
  type SubmitContext,
  topicSource,
} from '../../../src/continuations/index.ts'
import type { Wait } from '../../../src/projections/index.ts'
import type { Pick } from './cast.ts'
import type { Submitted, World } from './world.ts'

export interface Saying {
  readonly what: string
  readonly submitted: Submitted
}

const GOOD: Record<string, readonly JsonObject[]> = {
  external: [{ ok: true }, { ok: false }],
  approval: [{ approved: true }, { approved: true, override_args: { n: 7 } }, { approved: false, message: 'no' }],
  question: [{ answers: { 'Sure?': 'Yes' } }, { response: 'perhaps' }],
}
const BAD: JsonObject = { unheard: 'of' }

/** What would answer this wait. */
export const goodOutcome = (wait: Wait): JsonValue => (GOOD[wait.item.kind] as JsonObject[])[0] as JsonValue

/** A new result for a wait: good ones mostly, of any kind of source. */
export function submission(world: World, wait: Wait, pick: Pick): Saying {
  const good = GOOD[wait.item.kind] as readonly JsonObject[]
  const bad = pick(6) === 0
  const result = bad ? BAD : (good[pick(good.length)] as JsonObject)
  const fails = !bad && wait.item.kind === 'external' && pick(4) === 0
  const outcome = fails ? { failure: { code: 'declined', retryable: false } } : { result }
  const quoted = pick(8)
  const digest = quoted === 0 ? 'f'.repeat(64) : quoted === 1 ? wait.item.proposal_digest : undefined
  const what = `a ${fails ? 'failure' : JSON.stringify(result)} for ${wait.id} (${wait.item.kind})${digest === undefined ? '' : ', quoting'}`
  const made: Submission = {
    provider: wait.provider,
    address: pick(2) === 0 ? { continuation_id: wait.id } : { external_id: wait.externalId },
    result_id: pick(2) === 0 ? undefined : `result-${world.submitted.length}`,
    ...(digest === undefined ? {} : { proposal_digest: digest }),
    outcome,
    digest: outcomeDigest(outcome),
  }
  return record(world, what, wait.id, made, contextOf(world, wait, pick))
}

/** The same record again; or another record with the same result, under the same id or another one, or with the same id and another result. */
export function sayAgain(world: World, earlier: Submitted, pick: Pick): Saying {
  const number = world.submitted.indexOf(earlier)
  const { waitId, submission } = earlier
  const wait = world.state.waits.get(waitId) ?? world.state.closedWaits.get(waitId)
  const kind = pick(4)
  if (kind < 2 || !wait) return { what: `result #${number} again`, submitted: earlier }
  const context = contextOf(world, wait, pick)
  if (kind === 2) {
    const renamed = pick(2) === 0 ? { result_id: `result-${world.submitted.length}` } : {}
    const what = `result #${number} in another record${'result_id' in renamed ? ', with another id' : ''}`
    return record(world, what, waitId, { ...submission, ...renamed }, context)
  }
  const outcome = { result: (GOOD[wait.item.kind] as JsonObject[])[1] as JsonValue }
  const digest = outcomeDigest(outcome)
  return record(world, `another result under the id of #${number}`, waitId, { ...submission, outcome, digest }, context)
}

function record(world: World, what: string, waitId: string, submission: Submission, context: SubmitContext): Saying {
  const submitted: Submitted = { waitId, submission, context, verdicts: [] }
  const number = world.submitted.push(submitted) - 1
  return { what: `result #${number}: ${what}`, submitted }
}

function contextOf(world: World, wait: Wait, pick: Pick): SubmitContext {
  const number = world.submitted.length
  if (wait.provider === HUMAN_PROVIDER) return humanContext('lead', 'api', `command-${number}`)
  const source =
    pick(2) === 0
      ? apiSource('submit', `command-${number}`)
      : topicSource({ cluster: 'c', topic: 'results', partition: 0, offset: number, time: world.clock.now() })
  return { actor: { kind: 'provider', id: wait.provider, source: 'test' }, source, authority: { allows: () => true } }
}
