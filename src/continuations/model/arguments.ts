import { isJsonObject, isThreadlogError, type JsonValue, MAX_JSON_DEPTH, reject, toJson } from '../../base/index.ts'
import { isBlank } from '../names.ts'

/** One error for every argument that cannot be meant. @returns ThreadlogError `invalid_argument` */
export const invalidArgument = (path: string, expected: string) =>
  reject('invalid_argument', `The argument ${path} is not usable.`, { path, expected })

/** A string with a visible character, of any length, kept as it is (continuation spec §1.1). */
export function nonBlank(value: unknown, path: string): string {
  if (typeof value !== 'string' || isBlank(value)) throw invalidArgument(path, 'a string that is not blank')
  return value
}

/** A string that matches as a whole. */
export function matching(pattern: RegExp, expected: string): (value: unknown, path: string) => string {
  return (value, path) => {
    if (typeof value !== 'string' || !pattern.test(value)) throw invalidArgument(path, expected)
    return value
  }
}

/** Exactly these keys, as a persisted record has them. */
export function exactKeys(value: unknown, keys: readonly string[], path: string): Record<string, unknown> {
  const fits = isJsonObject(value) && Object.keys(value).length === keys.length && keys.every((key) => Object.hasOwn(value, key))
  if (!fits) throw invalidArgument(path, `an object with exactly ${keys.join(', ')}`)
  return value
}

/** Where a page begins, and how many it holds. @throws ThreadlogError `invalid_argument` */
export function page({ after = null, limit = 100 }: { after?: string | null; limit?: number }): {
  after: string | null
  limit: number
} {
  if (after !== null) nonBlank(after, 'after')
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > 1000) throw invalidArgument('limit', 'a whole number from 1 to 1000')
  return { after, limit }
}

/** The last instant that a time can name, in epoch milliseconds. */
const LAST_INSTANT = 8.64e15

/** Epoch milliseconds, or null for never. @throws ThreadlogError `invalid_argument` */
export function instantOrNull(value: number | null | undefined, path: string): number | null {
  if (value === undefined || value === null) return null
  if (Number.isSafeInteger(value) && value >= 0 && value <= LAST_INSTANT) return value
  throw invalidArgument(path, 'epoch milliseconds, or null')
}

/** Milliseconds above 0, or none. @throws ThreadlogError `invalid_argument` */
export function durationOrNone(value: number | undefined, path: string): number | undefined {
  if (value === undefined || (Number.isSafeInteger(value) && value > 0 && value <= LAST_INSTANT)) return value
  throw invalidArgument(path, 'a whole number of milliseconds above 0')
}

/** Deepest nesting of a value that is only looked at; a stored one is as deep as every value of the log may be. */
const MAX_DEPTH = 448

/**
 * A live value as JSON, detached (continuation spec §1.8). Dates and everything with `toJSON` become what that returns; sets, maps, bytes,
 * functions, other classes, cycles, NaN and infinities are refused, and so are integers beyond 2^53, which would be rounded.
 * @throws ThreadlogError `invalid_argument` with the path
 */
export function jsonValue(value: unknown): JsonValue {
  try {
    return toJson(value, '$', MAX_JSON_DEPTH - MAX_DEPTH)
  } catch (error) {
    if (!isThreadlogError(error, 'json_invalid')) throw error
    throw invalidArgument(error.path ?? '$', error.expected ?? 'a JSON value')
  }
}
