import type { JsonObject, JsonValue } from '../base/index.ts'
import { HUMAN_PROVIDER } from './ids.ts'
import type { Answer, Approval } from './outcome.ts'
import { outcomeDigest, type Submission } from './result.ts'
import { apiSource } from './source.ts'
import type { SubmitContext } from './submit.ts'

interface Quoted {
  /** The proposal digest that was shown; the decision counts for that proposal only. */
  digest?: string
  /** Repeated on a retry, so that it is one decision. */
  resultId?: string
}

/** A submission to the built-in provider, addressed by the wait's id. */
function decision(continuationId: string, result: JsonValue, { digest, resultId }: Quoted): Submission {
  const outcome = { result }
  return {
    provider: HUMAN_PROVIDER,
    address: { continuation_id: continuationId },
    ...(resultId === undefined ? {} : { result_id: resultId }),
    ...(digest === undefined ? {} : { proposal_digest: digest }),
    outcome,
    digest: outcomeDigest(outcome),
  }
}

/** Lets a proposed call run, if wished with other arguments. */
export function approval(continuationId: string, o: Quoted & { message?: string; overrideArgs?: JsonObject } = {}): Submission {
  const value: Approval = {
    approved: true,
    ...(o.overrideArgs === undefined ? {} : { override_args: o.overrideArgs }),
    ...(o.message === undefined ? {} : { message: o.message }),
  }
  return decision(continuationId, value, o)
}

/** Refuses a proposed call; the model reads `reason`. */
export function denial(continuationId: string, o: Quoted & { reason?: string } = {}): Submission {
  return decision(continuationId, { approved: false, ...(o.reason === undefined ? {} : { message: o.reason }) }, o)
}

/** Answers a question. */
export function answer(continuationId: string, value: Answer, o: Quoted = {}): Submission {
  const { answers, response } = value
  return decision(continuationId, { ...(answers ? { answers } : {}), ...(response === undefined ? {} : { response }) }, o)
}

/**
 * The context of a decision made through an API.
 * @param by who decided, as recorded in the event
 * @param api the way in: `cli`, `api`, `http`
 * @param commandId repeated by a caller that is not sure its call arrived
 */
export const humanContext = (by: string, api: string, commandId: string): SubmitContext => ({
  actor: { kind: 'human', id: by, source: api },
  source: apiSource(api, commandId),
  authority: { allows: (provider) => provider === HUMAN_PROVIDER },
})
