import { z } from 'zod'
import {
  canonicalJson,
  isJsonObject,
  isThreadlogError,
  type JsonObject,
  type JsonValue,
  jsonDigest,
  parseJson,
  sha256Hex,
  toJson,
} from '../base/index.ts'
import type { EdgeCodec, WaitFailure } from '../events/index.ts'
import { isBinary, resultFromAvro } from './avro-result.ts'
import { misfitOf } from './issue.ts'
import type { Refusal } from './judgement.ts'
import { digestSchema, externalIdSchema, idSchema, nameSchema, schemaIdSchema } from './names.ts'

/** Bytes of one submitted record. */
export const MAX_RECORD_BYTES = 1_048_576
/** Bytes of canonical JSON one result value may have: as many as its record. */
export const MAX_RESULT_BYTES = MAX_RECORD_BYTES

/** Which wait is meant: by the provider's own id of the job, or by the wait's id. */
export type Address = { readonly external_id: string } | { readonly continuation_id: string }

/** What the outside world says about a wait. */
export type SubmittedOutcome = { readonly result: JsonValue } | { readonly failure: WaitFailure }

/** One result as submitted, its shape checked. Field names as on the wire. */
export interface Submission {
  readonly application_id?: string
  readonly provider: string
  readonly address: Address
  readonly result_id?: string
  readonly schema_id?: string
  readonly proposal_digest?: string
  readonly outcome: SubmittedOutcome
  /** {@link outcomeDigest} of the outcome. */
  readonly digest: string
}

/** What can be told of a refused record: as much of its address as was usable. */
export interface Unusable {
  readonly refusal: Refusal
  readonly provider?: string
  readonly address?: Address
  readonly result_id?: string
}

export type Parsed = { readonly submission: Submission } | Unusable

export interface ResultLimits {
  /** Bytes of the whole record. Default {@link MAX_RECORD_BYTES}. */
  recordBytes?: number
  /** Bytes of the result's canonical JSON. Default {@link MAX_RESULT_BYTES}. */
  resultBytes?: number
}

/**
 * What two results must share to count as the same: lower-case hex SHA-256 of the canonical JSON of `{"result": value}` or
 * `{"failure": {"code", "retryable"}}`, before any validator. Ids, schema, address and quoted digest are not part of it.
 */
export const outcomeDigest = (outcome: SubmittedOutcome): string =>
  'failure' in outcome
    ? jsonDigest({ failure: { code: outcome.failure.code, retryable: outcome.failure.retryable } })
    : jsonDigest({ result: outcome.result })

/** `{code, retryable}` (continuation spec §1.3). */
export const failureSchema = z.strictObject({ code: nameSchema, retryable: z.boolean().default(false) })

// A null stands for an absent field, since many languages and SQL cannot leave one out. `result` is the exception: null is a value.
/** The JSON form of a submitted result; what it cannot say (address and outcome are one of two) is checked behind it. */
export const resultRecordSchema = z.strictObject({
  application_id: idSchema.nullish(),
  provider: nameSchema,
  external_id: externalIdSchema.nullish(),
  continuation_id: idSchema.nullish(),
  result_id: idSchema.nullish(),
  schema_id: schemaIdSchema.nullish(),
  proposal_digest: digestSchema.nullish(),
  result: z.custom<JsonValue>(() => true).optional(),
  failure: failureSchema.nullish(),
})

/**
 * Reads one submitted result: the bytes or text of a JSON object, the object itself, or Avro behind its schema id. Never throws for the
 * record's sake: what is wrong with it comes back as the verdict `unreadable`, `too-large` or `invalid` with code, path and what was
 * expected (design §6, rows 1 to 3).
 * @param codec with the schemas that records in Avro may be written with. Default: those of this package
 */
export function parseResult(input: Uint8Array | string | object, limits: ResultLimits = {}, codec?: EdgeCodec): Parsed {
  const recordBytes = limits.recordBytes ?? MAX_RECORD_BYTES
  const tooLarge: Unusable = {
    refusal: { verdict: 'too-large', code: 'record_too_large', path: '$', expected: `a record of at most ${recordBytes} bytes` },
  }
  if (sizeOf(input) > recordBytes) return tooLarge
  const json = read(input, codec)
  if ('refusal' in json) return json
  if (!isRaw(input) && Buffer.byteLength(canonicalJson(json.value)) > recordBytes) return tooLarge
  return check(json.value, limits.resultBytes ?? MAX_RESULT_BYTES)
}

const isRaw = (input: unknown): input is Uint8Array | string => typeof input === 'string' || input instanceof Uint8Array

const sizeOf = (input: Uint8Array | string | object): number =>
  typeof input === 'string' ? Buffer.byteLength(input) : input instanceof Uint8Array ? input.length : 0

function read(input: Uint8Array | string | object, codec: EdgeCodec | undefined): { value: JsonValue } | Unusable {
  if (input instanceof Uint8Array && isBinary(input)) {
    const read = resultFromAvro(input, codec)
    return 'value' in read ? read : unreadable(read.code, read.path, read.expected)
  }
  try {
    return { value: isRaw(input) ? parseJson(input) : toJson(input) }
  } catch (error) {
    if (isThreadlogError(error)) return unreadable(error.code, error.path ?? '$', error.expected ?? 'JSON')
    // A getter or toJSON of the caller's object threw.
    return unreadable('json_invalid', '$', 'JSON')
  }
}

// A key of the payload may stand in the parser's path; only the place of well-known fields is told.
const unreadable = (code: string, path: string, expected: string): Unusable => ({
  refusal: { verdict: 'unreadable', code, path: /^\$(\.(result|failure))?/.exec(path)?.[0] ?? '$', expected },
})

function check(value: JsonValue, resultBytes: number): Parsed {
  const parsed = resultRecordSchema.safeParse(value)
  if (!parsed.success) return invalid(value, 'result_shape_invalid', misfitOf(parsed.error))
  const { application_id, provider, external_id, continuation_id, result_id, schema_id, proposal_digest } = parsed.data
  if ((external_id ?? undefined) !== undefined && (continuation_id ?? undefined) !== undefined)
    return invalid(value, 'address_ambiguous', {
      path: '$.continuation_id',
      expected: 'external_id or continuation_id, not both',
    })
  const address = external_id != null ? { external_id } : continuation_id != null ? { continuation_id } : undefined
  if (!address) return invalid(value, 'address_missing', { path: '$', expected: 'external_id or continuation_id' })
  const outcome = outcomeOf(value as JsonObject, parsed.data.failure ?? undefined)
  if (typeof outcome === 'string')
    return invalid(value, outcome, {
      path: outcome === 'outcome_missing' ? '$' : '$.failure',
      expected: 'either result or failure',
    })
  const text = 'result' in outcome ? canonicalJson(outcome.result) : ''
  if (Buffer.byteLength(text) > resultBytes)
    return {
      ...echo(value),
      refusal: {
        verdict: 'too-large',
        code: 'result_too_large',
        path: '$.result',
        expected: `at most ${resultBytes} bytes of JSON; store the value elsewhere and send a reference`,
      },
    }
  const optional = {
    ...(application_id == null ? {} : { application_id }),
    ...(result_id == null ? {} : { result_id }),
    ...(schema_id == null ? {} : { schema_id }),
    ...(proposal_digest == null ? {} : { proposal_digest }),
  }
  // The digest of a result by the text that is there already; see {@link outcomeDigest}.
  const digest = 'result' in outcome ? sha256Hex(`{"result":${text}}`) : outcomeDigest(outcome)
  return { submission: { ...optional, provider, address, outcome, digest } }
}

function outcomeOf(
  value: JsonObject,
  failed: WaitFailure | undefined,
): SubmittedOutcome | 'outcome_ambiguous' | 'outcome_missing' {
  const result = value['result']
  if (failed) return (result ?? null) === null ? { failure: failed } : 'outcome_ambiguous'
  // Both written out as null: a record whose writer filled in neither.
  if (result === undefined || (result === null && Object.hasOwn(value, 'failure'))) return 'outcome_missing'
  return { result }
}

const invalid = (value: JsonValue, code: string, misfit: { path: string; expected: string }): Unusable => ({
  ...echo(value),
  refusal: { verdict: 'invalid', code, ...misfit },
})

/** The usable identifying fields of a record that is not usable as a whole, for its receipt. */
function echo(value: JsonValue): Omit<Unusable, 'refusal'> {
  if (!isJsonObject(value)) return {}
  const provider = nameSchema.safeParse(value['provider']).data
  const externalId = externalIdSchema.safeParse(value['external_id']).data
  const continuationId = idSchema.safeParse(value['continuation_id']).data
  const resultId = idSchema.safeParse(value['result_id']).data
  const address =
    continuationId !== undefined
      ? { continuation_id: continuationId }
      : externalId !== undefined
        ? { external_id: externalId }
        : undefined
  return {
    ...(provider === undefined ? {} : { provider }),
    ...(address === undefined ? {} : { address }),
    ...(resultId === undefined ? {} : { result_id: resultId }),
  }
}
