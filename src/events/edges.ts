import type { z } from 'zod'
import { flag, json, optional, record, text } from './fields.ts'

// What other systems write in Avro (design §6). The rules of a field's content are those of its JSON form, checked behind the decoder;
// here stands only what Avro can say. A new optional field is a new schema of the same type; anything else is a new type.

const failure = record('Failure', {
  code: text,
  /** No default: a writer in Avro states it. */
  retryable: flag,
})

/** The zod object of each edge message: the one declaration from which types and Avro records follow. */
export const edges = {
  'result/1': record('Result', {
    application_id: optional(text).describe('The application of the wait; null for the default one.'),
    provider: text.describe('The provider that was asked.'),
    external_id: optional(text).describe('The external_id of the request. This or continuation_id.'),
    continuation_id: optional(text).describe('The continuation_id of the request. This or external_id.'),
    result_id: optional(text).describe('Names this result; sent again under the same id it gets the same verdict.'),
    schema_id: optional(text).describe('The schema_id of the request, to have it compared.'),
    proposal_digest: optional(text).describe(
      'The proposal_digest of the request, to have it compared: 64 lower-case hex digits.',
    ),
    result: optional(json).describe('UTF-8 JSON of the value, without a byte order mark. This or failure.'),
    failure: optional(failure).describe('Why there is no result.'),
  }),
} as const

/** `result/1` */
export type EdgeType = keyof typeof edges

/** The fields of an edge message; absent ones are null. */
export type EdgeData<T extends EdgeType> = z.infer<(typeof edges)[T]>
