import { isThreadlogError, type JsonObject, type JsonValue, MAX_JSON_DEPTH, Payload, parseJson } from '../base/index.ts'
import { type EdgeCodec, type EdgeData, packagedEdges } from '../events/index.ts'

const RESULT = 'result/1'
type Fields = EdgeData<typeof RESULT>

/** Why a binary record cannot be read, in the terms of a verdict. */
export interface Unreadable {
  readonly code: string
  readonly path: string
  readonly expected: string
}

/** True for a record that is no JSON text: Confluent framing begins with a zero byte, which JSON cannot. */
export const isBinary = (record: Uint8Array): boolean => record[0] === 0

/**
 * A result written in Avro as the JSON record it stands for, so that everything after is the same for both: null fields are absent, and
 * the bytes of `result` are read under the same rules as a JSON record, their depth counted as if they stood in one.
 */
export function resultFromAvro(record: Uint8Array, codec: EdgeCodec = packagedEdges()): { value: JsonObject } | Unreadable {
  let fields: Fields
  try {
    fields = codec.decode(RESULT, record)
  } catch (error) {
    if (!isThreadlogError(error, 'message_undecodable')) throw error
    return error.details['reason'] === 'unknown-schema'
      ? { code: 'schema_id_unknown', path: '$', expected: `the id of a schema of ${RESULT}, as in schemas/ids.json` }
      : { code: 'avro_invalid', path: '$', expected: '0x00, the schema id in 4 bytes, big endian, and a body in that schema' }
  }
  const value: JsonObject = {}
  for (const [name, field] of Object.entries(fields)) if (field !== null && name !== 'result') value[name] = field as JsonValue
  if (fields.result === null) return { value }
  try {
    return { value: { ...value, result: parseJson(fields.result.bytes, { maxDepth: MAX_JSON_DEPTH - 1 }) } }
  } catch (error) {
    if (!isThreadlogError(error)) throw error
    return { code: error.code, path: '$.result', expected: error.expected ?? 'JSON' }
  }
}

/** The bytes of a JSON record whose shape has been checked, as a record in Avro. */
export function resultToAvro(
  { result, ...fields }: Omit<Fields, 'result'> & { result: JsonValue | undefined },
  codec: EdgeCodec = packagedEdges(),
): Uint8Array {
  return codec.encode(RESULT, { ...fields, result: result === undefined ? null : Payload.of(result) })
}
