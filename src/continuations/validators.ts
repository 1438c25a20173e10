import { isThreadlogError, type JsonValue, Payload, reject, toJson } from '../base/index.ts'
import type { Wait } from '../projections/index.ts'
import type { Judgement } from './judgement.ts'
import { answerJson, validateAnswer, validateApproval, validateQuestionRequest } from './outcome.ts'
import { MAX_RESULT_BYTES } from './result.ts'

/**
 * Looks at a submitted value and answers with the value to accept, which may be another one (coerced, completed). Gets a copy of its
 * own. May run several times for one result, and for results that are then not accepted. Whatever it throws refuses the value,
 * except a ThreadlogError with disposition `retry`: then the result is judged again later.
 */
export type Validator = (value: JsonValue, wait: Wait) => unknown

/** Validators by provider and schema id. Without one a value is accepted as it is. */
export interface Validators {
  find(provider: string, schemaId: string): Validator | undefined
}

export interface ValidatorEntry {
  provider: string
  schemaId: string
  validate: Validator
}

/** A set of validators. Approvals and questions need none: theirs are built in. */
export function validatorsOf(entries: Iterable<ValidatorEntry> = []): Validators {
  const known = new Map<string, Validator>()
  for (const { provider, schemaId, validate } of entries) known.set(`${provider}\0${schemaId}`, validate)
  return { find: (provider, schemaId) => known.get(`${provider}\0${schemaId}`) }
}

const decideApproval: Validator = (value) => validateApproval(value)
const answerQuestion: Validator = (value, wait) =>
  answerJson(validateAnswer(validateQuestionRequest(wait.item.arguments.value), value))

// By kind, so that no choice of provider or schema lets another kind of value in.
const validatorOf = (validators: Validators, wait: Wait): Validator | undefined =>
  wait.item.kind === 'approval'
    ? decideApproval
    : wait.item.kind === 'question'
      ? answerQuestion
      : validators.find(wait.provider, wait.schemaId)

/** Milliseconds a validator may take. Others' results wait behind it, so it must not take for ever. */
const VALIDATOR_MS = 10_000

async function inTime(checked: unknown): Promise<unknown> {
  if (!(checked instanceof Promise)) return checked
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(tooSlow()), VALIDATOR_MS)
  try {
    return await Promise.race([checked, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

const tooSlow = () =>
  reject('validator_timeout', 'The check of the result took too long.', {
    path: '$.result',
    expected: `a check that answers within ${VALIDATOR_MS} ms; the wait is still open`,
  })

/**
 * Row 16: the value to accept, or the verdict that refuses it.
 * @throws whatever the validator threw with disposition `retry`
 */
export async function validateValue(
  validators: Validators,
  wait: Wait,
  value: JsonValue,
): Promise<{ value: Payload } | Judgement> {
  const validate = validatorOf(validators, wait)
  if (!validate) return { value: Payload.of(value) }
  try {
    const checked = await inTime(validate(toJson(value), wait))
    const accepted = Payload.of(toJson(checked, '$.result'))
    if (accepted.bytes.byteLength > MAX_RESULT_BYTES)
      throw reject('accepted_value_too_large', 'The validator made the value too large.', {
        path: '$.result',
        expected: `at most ${MAX_RESULT_BYTES} bytes of JSON after validation`,
      })
    return { value: accepted }
  } catch (error) {
    if (!isThreadlogError(error))
      return { verdict: 'invalid', code: 'validator_refused', path: '$.result', expected: 'what the schema asks for' }
    if (error.disposition === 'retry') throw error
    const path = error.path?.startsWith('$') ? error.path.replace(/^\$(\.result)?/, '$.result') : '$.result'
    return { verdict: 'invalid', code: error.code, path, expected: error.expected ?? 'what the schema asks for' }
  }
}
