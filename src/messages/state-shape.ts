import { canonicalJson, type JsonObject, type JsonValue, jsonParse, setOwn } from '../base/index.ts'
import { exactObject, inside, integer, invalid, list, optional, type Reader, required, string, type Where } from './shape.ts'
import { isThreadId, THREAD_ID_FORM } from './thread-id.ts'

/** State of one capability. `data` is kept in canonical form: key order never matters. */
export interface CapabilityEntry {
  version: string
  data: JsonValue
}
/** What an environment reported about one mount: an observation, never applied on resume. */
export interface EnvironmentState {
  provider_key: string
  state_version: string
  state: JsonValue
}
/** Content kept in a store of the host. `digest`: SHA-256 as lower-case hex; `size` in bytes. */
export interface StoredRef {
  key: string
  digest: string
  size: number
}

const matching =
  (pattern: RegExp, expected: string): Reader<string> =>
  (value, at) => {
    if (!pattern.test(string(value, at))) throw invalid(at, expected)
    return value as string
  }

const data: Reader<JsonValue> = (value) => jsonParse(canonicalJson(value)) as JsonValue

const entry = exactObject<CapabilityEntry>({
  version: required(matching(/^[\s\S]/, 'at least one character')),
  data: required(data),
})

/** A map of anything whose keys are checked, too. */
function named<T extends object>(read: Reader<T>, check: (key: string, at: Where) => void = () => {}): Reader<Record<string, T>> {
  return (value, at) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(at, 'an object')
    const out: JsonObject = {}
    for (const [key, item] of Object.entries(value)) {
      check(key, at)
      setOwn(out, key, read(item, inside(at, key)) as JsonValue)
    }
    return out as unknown as Record<string, T>
  }
}

export const agentContextState = exactObject<{ entries: Record<string, CapabilityEntry> }>({
  entries: optional(
    named(entry, (key, at) => {
      if (key.trim() === '') throw invalid(at, 'keys that are not blank')
    }),
    {},
  ),
})

export const ENVIRONMENT_LIMITS = { bytes: 1_048_576, depth: 32, nodes: 10_000 } as const

const bounded: Reader<JsonValue> = (value, at) => {
  let nodes = 0
  const walk = (node: JsonValue, depth: number): void => {
    if (++nodes > ENVIRONMENT_LIMITS.nodes) throw invalid(at, `at most ${ENVIRONMENT_LIMITS.nodes} values`)
    if (node === null || typeof node !== 'object') return
    if (depth >= ENVIRONMENT_LIMITS.depth) throw invalid(at, `at most ${ENVIRONMENT_LIMITS.depth} levels`)
    for (const item of Object.values(node)) walk(item, depth + 1)
  }
  walk(value, 0)
  if (Buffer.byteLength(canonicalJson(value)) > ENVIRONMENT_LIMITS.bytes)
    throw invalid(at, `at most ${ENVIRONMENT_LIMITS.bytes} bytes`)
  return data(value, at)
}

export const environmentStates = named(
  exactObject<EnvironmentState>({
    provider_key: required(
      matching(/^[a-z][a-z0-9_]{0,63}$/, 'a lowercase letter, then at most 63 lowercase letters, digits, _'),
    ),
    state_version: required(
      matching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, '1 to 64 letters, digits, dots, _, -; first a letter or digit'),
    ),
    state: required(bounded),
  }),
)

export const refs = list(
  exactObject<StoredRef>({
    key: required(matching(/^[\s\S]{1,1024}$/u, '1 to 1024 characters')),
    digest: required(matching(/^[0-9a-f]{64}$/, '64 lower-case hex digits')),
    size: required((value, at) => {
      if (integer(value, at) < 0) throw invalid(at, 'at least 0')
      return value as number
    }),
  }),
)

export const schemaVersion: Reader<'1'> = (value, at) => {
  if (value !== '1') throw invalid(at, '"1"')
  return value
}

export const threadId: Reader<string> = (value, at) => {
  if (!isThreadId(string(value, at))) throw invalid(at, THREAD_ID_FORM)
  return value as string
}
