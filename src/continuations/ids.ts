import { jsonParse, MAX_JSON_DEPTH, reject, sha256Hex, type ThreadlogError } from '../base/index.ts'
import { checkArgument, externalIdSchema, nameSchema } from './names.ts'

/** The built-in provider of approvals and questions. */
export const HUMAN_PROVIDER = 'human'
/** Schema of an approval's value, `{approved, override_args?, message?}`. */
export const APPROVAL_SCHEMA = 'threadlog.approval/1'
/** Schema of a question's value, `{answers?, response?}`. */
export const ANSWER_SCHEMA = 'threadlog.answer/1'

/** What is waited for: a decision about a tool call, an answer, or the result of a call made elsewhere. */
export const TOOL_APPROVAL = 'tool.approval'
export const USER_QUESTION = 'user.question'
export const TOOL_CALL = 'tool.call'

/**
 * Under what a provider's external id is found without storing it in an index in the clear: lower-case hex SHA-256 of the
 * provider, a zero byte and the external id (continuation spec §7.2). The application is not mixed in.
 * @throws ThreadlogError `invalid_argument`
 */
export function externalIdKey(provider: string, externalId: string): string {
  checkArgument(nameSchema, provider, 'provider')
  checkArgument(externalIdSchema, externalId, 'externalId')
  return sha256Hex(`${provider}\0${externalId}`)
}

/**
 * The id of a result schema: `sha256:` and the digest of its canonical text (continuation spec §7.1), equal for equal content
 * in any key order. Keys are ordered by code point, everything outside U+0020 to U+007E is escaped. A number without a
 * fraction is written as an integer within ±(2^53 − 1), else in the shortest float form: `1` and `1.0` are one number here.
 * @param schema a JSON Schema, or any JSON value; `bigint` stands for an integer of any size
 * @throws ThreadlogError `continuation_invalid` with the path of what is not JSON
 */
export const continuationSchemaId = (schema: unknown): string => `sha256:${sha256Hex(schemaText(schema, '$', 0))}`

/**
 * The same of JSON text, where `1` and `1.0` are two numbers, as they are to the original. For schemas that hold floats without a fraction.
 * @throws ThreadlogError `continuation_invalid`
 */
export function continuationSchemaIdOfText(text: string): string {
  const numbers = (_key: string, value: unknown, { source }: { source?: string }) =>
    typeof value === 'number' && source !== undefined ? new Spelled(source) : value
  let schema: unknown
  try {
    schema = jsonParse(text, numbers)
  } catch {
    throw notJson('$', 'JSON text')
  }
  return continuationSchemaId(schema)
}

/** A number as its text spells it. */
class Spelled {
  readonly isFloat: boolean
  readonly source: string

  constructor(source: string) {
    this.source = source
    this.isFloat = /[.eE]/.test(source)
  }
}

const notJson = (path: string, expected: string): ThreadlogError =>
  reject('continuation_invalid', 'The schema is not JSON.', { path: path.slice(0, 200), expected })

/** The canonical text behind {@link continuationSchemaId}. */
export function schemaText(value: unknown, path = '$', depth = 0): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'number') return numberText(value, path)
  if (value instanceof Spelled) return value.isFloat ? floatText(Number(value.source), path) : String(BigInt(value.source))
  if (typeof value !== 'object') throw notJson(path, 'a JSON value')
  if (depth >= MAX_JSON_DEPTH) throw notJson(path, `no cycle and at most ${MAX_JSON_DEPTH} levels`)
  if (Array.isArray(value)) return `[${Array.from(value, (item, i) => schemaText(item, `${path}[${i}]`, depth + 1)).join(',')}]`
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) throw notJson(path, 'plain objects and arrays')
  const fields = Object.entries(value).filter(([, item]) => item !== undefined)
  fields.sort(([a], [b]) => compareCodePoints(a, b))
  return `{${fields.map(([key, item]) => `${quoted(key)}:${schemaText(item, `${path}.${key}`, depth + 1)}`).join(',')}}`
}

function compareCodePoints(a: string, b: string): number {
  const [left, right] = [a[Symbol.iterator](), b[Symbol.iterator]()]
  for (;;) {
    const [x, y] = [left.next(), right.next()]
    if (x.done || y.done) return (x.done ? 0 : 1) - (y.done ? 0 : 1)
    if (x.value !== y.value) return (x.value.codePointAt(0) as number) - (y.value.codePointAt(0) as number)
  }
}

const quoted = (text: string): string =>
  JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

const numberText = (value: number, path: string): string =>
  Number.isSafeInteger(value) && !Object.is(value, -0) ? String(value) : floatText(value, path)

function floatText(value: number, path: string): string {
  if (!Number.isFinite(value)) throw notJson(path, 'a finite number')
  if (Object.is(value, -0)) return '-0.0'
  const [mantissa, power] = value.toExponential().split('e') as [string, string]
  const exponent = Number(power)
  // ECMAScript has plain digits from 1e-6 to 1e21, so no exponent can appear within these bounds.
  if (exponent >= -4 && exponent < 16) return Number.isInteger(value) ? `${value}.0` : String(value)
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
}
