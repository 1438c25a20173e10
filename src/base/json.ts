import { reject, type ThreadlogError } from './errors.ts'
import { jsonParse, type Reviver } from './json-parse.ts'

/** A value JSON can hold. Numbers are finite; integers beyond ±(2^53 − 1) never occur. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue }
export type JsonObject = { [key: string]: JsonValue }

/** Deepest nesting of a value that others send (design §5). */
export const MAX_JSON_DEPTH = 256
/** Deepest nesting of what is built around such values: states, published records. */
export const MAX_DOCUMENT_DEPTH = 288

const refuse = (message: string, path: string, expected: string): ThreadlogError =>
  reject('json_invalid', message, { path, expected, hint: 'Send strict JSON (RFC 8259) within these limits.' })

/**
 * Parses untrusted JSON text exactly: integers that would be rounded are refused, and what is accepted is also accepted after
 * {@link canonicalJson}. Fractions become the nearest 64-bit float, −0 becomes 0.
 * Refused: syntax errors, bytes that are not UTF-8, nesting deeper than `maxDepth`, whole numbers beyond ±(2^53 − 1) in any spelling
 * but the one canonical JSON gives them from 1e21 on (with an exponent), numbers that overflow to infinity, a name that stands twice in
 * one object (readers differ in which one counts: SQL takes the first, JavaScript the last).
 * @throws ThreadlogError `json_invalid`
 */
export function parseJson(input: string | Uint8Array, options: { maxDepth?: number } = {}): JsonValue {
  const text = typeof input === 'string' ? input : decodeUtf8(input)
  const { members, exact } = look(text, options.maxDepth ?? MAX_JSON_DEPTH)
  const value = exact ? parseText(text) : parseText(text, exactly)
  if (countMembers(value) !== members) throw refuse('An object has two members of one name.', '$', 'each name once in an object')
  return value
}

const exactly: Reviver = (key, item, context) => (typeof item === 'number' ? exactNumber(key, item, context?.source) : item)

function parseText(text: string, reviver?: Reviver): JsonValue {
  try {
    return jsonParse(text, reviver) as JsonValue
  } catch (error) {
    if (error instanceof SyntaxError) throw refuse('The text is not JSON.', '$', 'one JSON value')
    throw error
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw refuse('The bytes are not UTF-8.', '$', 'UTF-8 text')
  }
}

function exactNumber(key: string, value: number, source = ''): number {
  const path = `$..${key}`
  if (!Number.isFinite(value)) throw refuse('A number is too large for a 64-bit float.', path, 'a finite number')
  if (value === 0) return 0
  if (Number.isInteger(value) && !Number.isSafeInteger(value) && (Math.abs(value) < 1e21 || !/[eE]/.test(source)))
    throw refuse('An integer lies beyond 2^53 and would be rounded.', path, 'an integer within ±(2^53 − 1), or a string')
  return value
}

/** What a look at the text shows, before anything is made of it. */
interface Look {
  /** How many members its objects have. */
  members: number
  /** Every number is one that `JSON.parse` reads exactly, as far as its spelling tells; others must be looked at one by one. */
  exact: boolean
}

/** Counts brackets outside strings before `JSON.parse` recurses; an attacker's depth must not reach the stack. */
function look(text: string, maxDepth: number): Look {
  const escapes = text.includes('\\')
  let depth = 0
  let members = 0
  let exact = true
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 0x22) i = escapes ? endOfString(text, i) : endOfPlainString(text, i)
    else if (c === 0x5b || c === 0x7b) {
      if (++depth > maxDepth) throw refuse(`Nesting is deeper than ${maxDepth}.`, '$', `at most ${maxDepth} levels`)
    } else if (c === 0x5d || c === 0x7d) depth--
    else if (c === 0x3a) members++
    else if (c === 0x2d || isDigit(c)) {
      const end = endOfNumber(text, i)
      exact &&= !isNegativeZero(text, i) && end - i <= EXACT_LENGTH && !isExponent(text.charCodeAt(end))
      i = end - 1
    }
  }
  return { members, exact }
}

/** As many digits every whole number can have. */
const EXACT_LENGTH = 15
const isDigit = (c: number): boolean => c >= 0x30 && c <= 0x39
const isExponent = (c: number): boolean => c === 0x45 || c === 0x65

const isNegativeZero = (text: string, start: number): boolean => text.startsWith('-0', start)

/** Behind the digits and the point. */
function endOfNumber(text: string, start: number): number {
  let i = start + 1
  while (i < text.length && (isDigit(text.charCodeAt(i)) || text.charCodeAt(i) === 0x2e)) i++
  return i
}

function endOfPlainString(text: string, start: number): number {
  const end = text.indexOf('"', start + 1)
  return end === -1 ? text.length : end
}

function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 0x5c) i++
    else if (c === 0x22) return i
  }
  return text.length
}

function countMembers(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) for (const item of value) count += countMembers(item)
  else for (const key of Object.keys(value)) count += 1 + countMembers(value[key] as JsonValue)
  return count
}

/**
 * Checks that a live value is JSON and returns it detached: finite numbers, string keys, no cycles, no `undefined` in arrays,
 * plain objects only. Properties that are `undefined` are left out, as `JSON.stringify` does.
 * @throws ThreadlogError `json_invalid` with the path
 */
export function toJson(value: unknown, path = '$', depth = 0): JsonValue {
  try {
    return detached(value, depth)
  } catch (unfit) {
    if (!(unfit instanceof Unfit)) throw unfit
    const at = path + unfit.path
    throw refuse(unfit.message, unfit.deep ? at.slice(0, 80) : at, unfit.expected)
  }
}

/** What is no JSON. Its path grows outwards while it is thrown, so good values cost no path. */
class Unfit {
  readonly message: string
  readonly expected: string
  readonly deep: boolean
  path = ''
  constructor(message: string, expected: string, deep = false) {
    this.message = message
    this.expected = expected
    this.deep = deep
  }
}

function detached(value: unknown, depth: number): JsonValue {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new Unfit('NaN and infinities are not JSON.', 'a finite number')
    if (Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21)
      throw new Unfit('An integer lies beyond 2^53.', 'an integer within ±(2^53 − 1)')
    return value + 0 // −0 has no canonical form
  }
  if (typeof value !== 'object') throw new Unfit(`A ${typeof value} is not JSON.`, 'a JSON value')
  if (depth >= MAX_JSON_DEPTH)
    throw new Unfit(`Nesting is deeper than ${MAX_JSON_DEPTH} (or cyclic).`, `at most ${MAX_JSON_DEPTH} levels`, true)
  if (Array.isArray(value)) return Array.from(value, (item, i) => member(item, i, depth))
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function')
    return detached((value as { toJSON(): unknown }).toJSON(), depth + 1)
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype && Object.getPrototypeOf(prototype) !== null)
    throw new Unfit(`A ${value.constructor?.name ?? 'foreign object'} is not JSON.`, 'a plain object')
  const out: JsonObject = {}
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key]
    if (item !== undefined) setOwn(out, key, member(item, key, depth))
  }
  return out
}

function member(item: unknown, step: string | number, depth: number): JsonValue {
  try {
    return detached(item, depth + 1)
  } catch (unfit) {
    if (unfit instanceof Unfit) unfit.path = (typeof step === 'number' ? `[${step}]` : `.${step}`) + unfit.path
    throw unfit
  }
}

/** Assigns an own property even for `__proto__`. */
export function setOwn(target: JsonObject, key: string, value: JsonValue): void {
  if (key === '__proto__') Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
  else target[key] = value
}

/**
 * Canonical JSON text: RFC 8785 (JCS). Keys sorted by UTF-16 code unit, no spaces, ECMAScript number form.
 * The same value gives the same text in every process and version.
 */
export function canonicalJson(value: JsonValue): string {
  if (isOrdered(value)) return JSON.stringify(value)
  const ordered = inOrder(value)
  return ordered === undefined ? writeSorted(value) : JSON.stringify(ordered)
}

/** The canonical text, and a detached copy of the value as reading that text would give it; undefined where only reading it can tell. */
export function canonicalForm(value: JsonValue): { text: string; copy: JsonValue | undefined } {
  const copy = inOrder(value)
  return { text: copy === undefined ? canonicalJson(value) : JSON.stringify(copy), copy }
}

function isOrdered(value: JsonValue): boolean {
  if (value === null || typeof value !== 'object') return true
  if (Array.isArray(value)) return value.every(isOrdered)
  let previous = ''
  for (const key of Object.keys(value)) {
    // Engines enumerate integer-like keys first and by number ("9" before "10"), so order is compared as text.
    if (key < previous) return false
    previous = key
    if (!isOrdered(value[key] as JsonValue)) return false
  }
  return true
}

/** A copy that the engine enumerates in canonical order; undefined where it would not, where a name is none to assign, and of what is no JSON. */
function inOrder(value: JsonValue): JsonValue | undefined {
  if (typeof value === 'string' || value === null) return value
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : undefined // −0 has no canonical form
  if (typeof value !== 'object') return typeof value === 'boolean' ? value : undefined
  if (Array.isArray(value)) {
    const list: JsonValue[] = []
    for (const item of value) {
      const ordered = inOrder(item)
      if (ordered === undefined) return undefined
      list.push(ordered)
    }
    return list
  }
  if (typeof value['toJSON'] === 'function') return undefined
  const out: JsonObject = {}
  for (const key of sortedKeys(value)) {
    const item = value[key]
    if (item === undefined) continue
    const ordered = isAssignable(key) ? inOrder(item) : undefined
    if (ordered === undefined) return undefined
    out[key] = ordered
  }
  return out
}

/** Not the name of a prototype, and not like a number: those come first in every object. */
const isAssignable = (key: string): boolean => key !== '__proto__' && !(key.charCodeAt(0) <= 0x39 && key.charCodeAt(0) >= 0x30)

function writeSorted(value: JsonValue): string {
  if (typeof value === 'string') return quoted(value)
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  let text = ''
  if (Array.isArray(value)) {
    for (const item of value) text += text === '' ? writeSorted(item) : `,${writeSorted(item)}`
    return `[${text}]`
  }
  for (const key of sortedKeys(value)) {
    const item = value[key]
    if (item !== undefined) text += `${text === '' ? '' : ','}${quoted(key)}:${writeSorted(item)}`
  }
  return `{${text}}`
}

/** Insertion sort: objects are small, and mostly in order already. */
function sortedKeys(value: JsonObject): string[] {
  const keys = Object.keys(value)
  if (keys.length > 32) return keys.sort()
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i] as string
    let j = i
    while (j > 0 && (keys[j - 1] as string) > key) keys[j] = keys[--j] as string
    keys[j] = key
  }
  return keys
}

/** Anything that a JSON string escapes, or that only the engine writes right (lone surrogates). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/

const quoted = (text: string): string => (text.length > 64 || ESCAPED.test(text) ? JSON.stringify(text) : `"${text}"`)

/** Equality of JSON values: by canonical text, so key order does not matter and `true` differs from `1`. */
export const jsonEqual = (a: JsonValue, b: JsonValue): boolean => a === b || canonicalJson(a) === canonicalJson(b)

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
