import {
  AppendList,
  AppendMap,
  canonicalJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  Payload,
  reject,
  sha256Hex,
} from '../base/index.ts'
import { resolved } from './messages.ts'
import { type CallBatch, FOLD_VERSION, type HistoryEntry, type ThreadState } from './state.ts'

// A snapshot is a cache (design §7): the fold's state as JSON. What JSON does not have is tagged: payloads `$json`, maps `$map`,
// shared lists `$list` and facts `$facts`. Absent fields are left out.

/** The state as JSON. Equal states give equal text, however they were reached. */
export function encodeState(state: ThreadState): JsonValue {
  const { batch, ...rest } = state
  return { ...(encode(rest) as JsonObject), batch: batch ? encodeBatch(batch, state) : null, fold_version: FOLD_VERSION }
}

/** The response of a batch is an entry of the history: only its place is written, unless a revision has replaced it there. */
function encodeBatch(batch: CallBatch, state: ThreadState): JsonObject {
  const { response, ...rest } = batch
  const place = state.history
    .slice()
    .findLastIndex(
      (entry) =>
        entry.role === 'response' && entry.version === response.version && entry.template.digest === response.template.digest,
    )
  return { ...(encode(rest) as JsonObject), response: place < 0 ? encode(response) : place }
}

const isEntry = (value: object): value is HistoryEntry => 'role' in value && 'template' in value

function encode(value: unknown): JsonValue {
  if (value === null || typeof value !== 'object') return (value ?? null) as JsonValue
  if (value instanceof Payload) return { $json: value.value }
  if (value instanceof AppendList) return { $list: [...value].map(encode) }
  if (value instanceof AppendMap) return { $facts: [...value].map(([key, item]) => [key, encode(item)]) }
  if (value instanceof Map) return { $map: [...value].map(([key, item]) => [key, encode(item)]) }
  if (Array.isArray(value)) return value.map(encode)
  if (isEntry(value))
    return { role: value.role, template: { $json: resolved(value) }, version: value.version, runId: value.runId }
  const out: JsonObject = {}
  for (const [key, item] of Object.entries(value)) if (item !== undefined) out[key] = encode(item)
  return out
}

/** Reads {@link encodeState} back. @throws ThreadlogError `snapshot_invalid` when another fold version wrote it */
export function decodeState(value: JsonValue): ThreadState {
  if (!isJsonObject(value) || value['fold_version'] !== FOLD_VERSION)
    throw reject('snapshot_invalid', 'The snapshot is of another fold version.', { hint: 'Fold the thread again.' })
  const { fold_version: _, batch, ...rest } = value
  const state = decode(rest) as ThreadState
  if (!isJsonObject(batch)) return { ...state, batch: undefined }
  const { response, ...calls } = batch
  const entry = typeof response === 'number' ? state.history.at(response) : decode(response as JsonValue)
  return { ...state, batch: { ...(decode(calls) as CallBatch), response: entry as HistoryEntry } }
}

function decode(value: JsonValue): unknown {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(decode)
  if ('$json' in value) return Payload.of(value['$json'] as JsonValue)
  if ('$list' in value) return AppendList.of((value['$list'] as JsonValue[]).map(decode))
  if ('$facts' in value) return AppendMap.of(pairs(value['$facts']))
  if ('$map' in value) return new Map(pairs(value['$map']))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, decode(item)]))
}

const pairs = (value: JsonValue | undefined): [string, unknown][] =>
  (value as [string, JsonValue][]).map(([key, item]) => [key, decode(item)])

/** SHA-256 of the state's canonical text: two folds agree exactly if these do. */
export const stateHash = (state: ThreadState): string => sha256Hex(canonicalJson(encodeState(state)))
