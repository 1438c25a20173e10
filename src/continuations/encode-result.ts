import { type JsonValue, reject } from '../base/index.ts'
import type { EdgeCodec } from '../events/index.ts'
import { resultToAvro } from './avro-result.ts'
import { parseResult, type ResultLimits } from './result.ts'

/** A result as its producer writes it: the JSON record of topic `results`. */
export interface ResultRecord {
  readonly application_id?: string
  readonly provider: string
  /** One of the two. */
  readonly external_id?: string
  readonly continuation_id?: string
  readonly result_id?: string
  readonly schema_id?: string
  readonly proposal_digest?: string
  /** One of the two. */
  readonly result?: JsonValue
  readonly failure?: { readonly code: string; readonly retryable?: boolean }
}

/**
 * A result in Avro, with its schema id in front: the bytes of a record for topic `results`, or a BLOB for `threadlog_results`. The same
 * result in JSON has the same digest.
 * @throws ThreadlogError `result_shape_invalid`, `address_missing`, `result_too_large` and what else the intake would refuse without
 *   looking at a wait, with the path
 */
export function encodeResult(result: ResultRecord, limits: ResultLimits = {}, codec?: EdgeCodec): Uint8Array {
  const parsed = parseResult(result, limits)
  if ('refusal' in parsed) {
    const { code, path, expected } = parsed.refusal
    throw reject(code, 'The record is not a result.', { path, expected })
  }
  const { address, outcome, provider, ...optional } = parsed.submission
  return resultToAvro(
    {
      application_id: optional.application_id ?? null,
      provider,
      external_id: 'external_id' in address ? address.external_id : null,
      continuation_id: 'continuation_id' in address ? address.continuation_id : null,
      result_id: optional.result_id ?? null,
      schema_id: optional.schema_id ?? null,
      proposal_digest: optional.proposal_digest ?? null,
      result: 'result' in outcome ? outcome.result : undefined,
      failure: 'failure' in outcome ? outcome.failure : null,
    },
    codec,
  )
}
