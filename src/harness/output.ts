import { type JsonObject, type JsonValue, toJson } from '../base/index.ts'
import type { ResponseMessage, RetryFeedbackPart } from '../messages/index.ts'
import type { Tool } from './tool.ts'

/** What the last response of a run must be, if not any text. */
export interface OutputType {
  /** JSON Schema, told to the model as its response format. */
  readonly schema: JsonObject
  readonly validate: Tool['validate']
}

/** What a response without calls says: the output of its run, or what the model is to mend. */
export type Said =
  | { is: 'output'; value: JsonValue }
  | { is: 'wrong'; cause: RetryFeedbackPart['retry']['cause']; content: RetryFeedbackPart['content'] }

const NOTHING = 'The response was empty. Answer with text or call a tool.'
const NO_JSON = 'The response is no JSON. Answer with one JSON value that fits the schema, and nothing else.'

/** Pure: a recovered run judges its last response again, and alike (design R12). */
export function outputOf(response: ResponseMessage, type: OutputType | undefined): Said {
  const text = response.parts.flatMap((part) => (part.part_kind === 'text' ? [part.content] : [])).join('')
  if (text === '') return { is: 'wrong', cause: 'no_output', content: NOTHING }
  if (!type) return { is: 'output', value: text }
  const value = jsonOf(text)
  if (value === undefined) return { is: 'wrong', cause: 'validation_error', content: NO_JSON }
  const checked = type.validate(value as JsonObject)
  if (checked.ok) return { is: 'output', value: toJson(checked.value) }
  return { is: 'wrong', cause: 'validation_error', content: checked.issues as unknown as JsonObject[] }
}

function jsonOf(text: string): JsonValue | undefined {
  try {
    return toJson(JSON.parse(text))
  } catch {
    return undefined
  }
}
