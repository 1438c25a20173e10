import { isJsonObject, type JsonObject, type JsonValue, reject, setOwn } from '../base/index.ts'
import { readTimestamp } from './timestamp.ts'

/** Where a reader stands. `now`: the written timestamp that fills in for a missing one. */
export interface Where {
  path: string
  now: string
}
/** Checks a value and returns its written form. @throws ThreadlogError `message_history_invalid` */
export type Reader<T> = (value: JsonValue, at: Where) => T

/** One key of an object: how to read it, under which older names too, and what a missing key means (nothing = required). */
export interface Field<T> {
  read: Reader<T>
  otherwise?: (at: Where) => T
  alias?: string
  /** Left out of the written form when equal to this. */
  hideIf?: T
}
/** The keys of `T` in written order; the compiler checks that none is missing or of another type. */
export type Fields<T> = { [K in keyof T]-?: Field<Exclude<T[K], undefined>> }

export const invalid = (at: Where, expected: string, message = 'The message history is not valid.') =>
  reject('message_history_invalid', message, { path: at.path, expected, hint: 'See the part table of the message format.' })

export const inside = (at: Where, key: string | number): Where => ({
  path: typeof key === 'number' ? `${at.path}[${key}]` : `${at.path}.${key}`,
  now: at.now,
})

export const required = <T>(read: Reader<T>): Field<T> => ({ read })
export const optional = <T, D extends T = T>(read: Reader<T>, otherwise: D, more: Partial<Field<T>> = {}): Field<T> => ({
  read,
  otherwise: () => otherwise,
  ...more,
})
/** An optional key that may be null and is null when missing. */
export const orNull = <T>(read: Reader<T>, more: Partial<Field<T | null>> = {}): Field<T | null> => ({
  read: nullable(read),
  otherwise: () => null,
  ...more,
})
/** A key that always holds this text; also accepted when missing. */
export const constant = <T extends string>(text: T): Field<T> => optional(oneOf(text), text)

/** Reads an object by its keys. Unknown keys are dropped. */
export function object<T extends object>(fields: Fields<T>): Reader<T> {
  const entries = Object.entries(fields) as [string, Field<JsonValue>][]
  return (value, at) => {
    if (!isJsonObject(value)) throw invalid(at, 'an object')
    const out: JsonObject = {}
    for (const [key, field] of entries) {
      const given = readField(value, key, field, at)
      if (field.hideIf === undefined || given !== field.hideIf) out[key] = given
    }
    return out as T
  }
}

function readField(source: JsonObject, key: string, field: Field<JsonValue>, at: Where): JsonValue {
  const name = isGiven(source, key) || field.alias === undefined || !isGiven(source, field.alias) ? key : field.alias
  if (isGiven(source, name)) return field.read(source[name]!, inside(at, name))
  if (field.otherwise === undefined) throw invalid(inside(at, key), 'a value: this key is required')
  return field.otherwise(at)
}

const isGiven = (source: JsonObject, key: string): boolean => Object.hasOwn(source, key) && source[key] !== undefined

/** As {@link object}, but an unknown key is an error. */
export function exactObject<T extends object>(fields: Fields<T>): Reader<T> {
  const read = object(fields)
  return (value, at) => {
    const out = read(value, at)
    for (const key of Object.keys(value as JsonObject))
      if (!Object.hasOwn(fields, key)) throw invalid(inside(at, key), 'no such key')
    return out
  }
}

export const nullable =
  <T>(read: Reader<T>): Reader<T | null> =>
  (value, at) =>
    value === null ? null : read(value, at)

export const list =
  <T>(read: Reader<T>): Reader<T[]> =>
  (value, at) => {
    if (!Array.isArray(value)) throw invalid(at, 'a list')
    return value.map((item, i) => read(item, inside(at, i)))
  }

/** An object used as a map: any key, values by `read`. */
export const mapOf =
  <T extends JsonValue>(read: Reader<T>): Reader<{ [key: string]: T }> =>
  (value, at) => {
    if (!isJsonObject(value)) throw invalid(at, 'an object')
    const out: { [key: string]: T } = {}
    for (const [key, item] of Object.entries(value)) setOwn(out, key, read(item, inside(at, key)))
    return out
  }

export const json: Reader<JsonValue> = (value) => value
export const string: Reader<string> = (value, at) => {
  if (typeof value !== 'string') throw invalid(at, 'a string')
  return value
}
export const boolean: Reader<boolean> = (value, at) => {
  if (typeof value !== 'boolean') throw invalid(at, 'true or false')
  return value
}
export const number: Reader<number> = (value, at) => {
  if (typeof value !== 'number') throw invalid(at, 'a number')
  return value
}
export const integer: Reader<number> = (value, at) => {
  if (!Number.isSafeInteger(value)) throw invalid(at, 'an integer')
  return value as number
}
export const jsonObject: Reader<JsonObject> = (value, at) => {
  if (!isJsonObject(value)) throw invalid(at, 'an object')
  return value
}
export const oneOf = <T extends string | boolean>(...allowed: T[]): Reader<T> => {
  const expected = `one of ${allowed.map((item) => JSON.stringify(item)).join(', ')}`
  return (value, at) => {
    if (!allowed.includes(value as T)) throw invalid(at, expected)
    return value as T
  }
}
export const timestamp: Reader<string> = (value, at) => {
  const written = readTimestamp(value)
  if (written === undefined) throw invalid(at, 'an ISO 8601 timestamp')
  return written
}
/** A timestamp that is the time of reading when missing. */
export const timestampOrNow: Field<string> = { read: timestamp, otherwise: (at) => at.now }

/** Chooses the reader by the text under `key`. */
export function byKind<T>(key: string, readers: { [kind: string]: Reader<T> }): Reader<T> {
  const expected = `one of ${Object.keys(readers).join(', ')}`
  return (value, at) => {
    if (!isJsonObject(value)) throw invalid(at, 'an object')
    const kind = value[key]
    if (typeof kind !== 'string' || !Object.hasOwn(readers, kind)) throw invalid(inside(at, key), expected)
    return readers[kind]!(value, at)
  }
}
