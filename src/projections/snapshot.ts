import {
  AppendList,
  AppendMap,
  type ContentRef,
  canonicalJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type LoadContent,
  Payload,
  reject,
  sha256Hex,
} from '../base/index.ts'
import { resolved } from './messages.ts'
import { type CallBatch, FOLD_VERSION, type HistoryEntry, type ThreadState } from './state.ts'

// A snapshot is a cache (design §7): the fold's state as JSON. What JSON does not have is tagged: payloads `$json`, those that are kept
// `$content` with the version that refers to them, maps `$map`, shared lists `$list` and facts `$facts`. Absent fields are left out.

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

/** True if writing the message down would mean to load what is kept. */
const isKept = ({ template, settled }: HistoryEntry): boolean =>
  template.kept !== undefined ||
  [...(settled?.values() ?? [])].some(({ part, wait }) => (wait ? wait.outcome?.value?.kept : part.kept) !== undefined)

/** True if the history, or a call that is open, has values that stand in a content store. */
export const refersToContent = ({ history, batch }: ThreadState): boolean =>
  history.slice().some(isKept) || [...(batch?.calls.values() ?? [])].some(({ settled }) => settled?.part.kept !== undefined)

const isEntry = (value: object): value is HistoryEntry => 'role' in value && 'template' in value

function encode(value: unknown): JsonValue {
  if (value === null || typeof value !== 'object') return (value ?? null) as JsonValue
  if (value instanceof Payload) return encodePayload(value)
  if (value instanceof AppendList) return { $list: [...value].map(encode) }
  if (value instanceof AppendMap) return { $facts: [...value].map(([key, item]) => [key, encode(item)]) }
  if (value instanceof Map) return { $map: [...value].map(([key, item]) => [key, encode(item)]) }
  if (Array.isArray(value)) return value.map(encode)
  if (isEntry(value) && !isKept(value))
    return { role: value.role, template: { $json: resolved(value) }, version: value.version, runId: value.runId }
  const out: JsonObject = {}
  for (const [key, item] of Object.entries(value)) if (item !== undefined) out[key] = encode(item)
  return out
}

function encodePayload(payload: Payload): JsonValue {
  const { kept } = payload
  return kept ? { $content: { ...kept.ref }, version: kept.at?.version ?? 0 } : { $json: payload.value }
}

/** Where a snapshot's kept values are loaded from, and whose they are. */
export interface SnapshotContent {
  readonly stream: string
  readonly load: LoadContent
}

/** Reads {@link encodeState} back. @throws ThreadlogError `snapshot_invalid` when another fold version wrote it */
export function decodeState(value: JsonValue, content?: SnapshotContent): ThreadState {
  if (!isJsonObject(value) || value['fold_version'] !== FOLD_VERSION)
    throw reject('snapshot_invalid', 'The snapshot is of another fold version.', { hint: 'Fold the thread again.' })
  const { fold_version: _, batch, ...rest } = value
  const state = decode(rest, content) as ThreadState
  if (!isJsonObject(batch)) return { ...state, batch: undefined }
  const { response, ...calls } = batch
  const entry = typeof response === 'number' ? state.history.at(response) : decode(response as JsonValue, content)
  return { ...state, batch: { ...(decode(calls, content) as CallBatch), response: entry as HistoryEntry } }
}

function decode(value: JsonValue, content: SnapshotContent | undefined): unknown {
  if (value === null || typeof value !== 'object') return value
  const each = (item: JsonValue) => decode(item, content)
  if (Array.isArray(value)) return value.map(each)
  if ('$json' in value) return Payload.of(value['$json'] as JsonValue)
  if ('$content' in value) return keptPayload(value, content)
  if ('$list' in value) return AppendList.of((value['$list'] as JsonValue[]).map(each))
  const pairs = (list: JsonValue | undefined) => (list as [string, JsonValue][]).map(([key, item]) => [key, each(item)] as const)
  if ('$facts' in value) return AppendMap.of(pairs(value['$facts']))
  if ('$map' in value) return new Map(pairs(value['$map']))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, each(item)]))
}

function keptPayload({ $content: ref, version }: JsonObject, content: SnapshotContent | undefined): Payload {
  const payload = Payload.fromReference(ref as unknown as ContentRef)
  if (content) payload.loadFrom(content.load, { stream: content.stream, version: version as number })
  return payload
}

/** SHA-256 of the state's canonical text: two folds agree exactly if these do. */
export const stateHash = (state: ThreadState): string => sha256Hex(canonicalJson(encodeState(state)))
