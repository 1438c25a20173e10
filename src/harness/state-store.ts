import { isJsonObject, type JsonObject, type JsonValue, sha256Hex } from '../base/index.ts'
import type { ContentStore } from '../log/index.ts'
import { decodeBase64, encodeBase64, HarnessState, STORED, type StoredRef, SUBAGENTS } from '../messages/index.ts'
import { stateError } from './run-errors.ts'

/** Where a host keeps large content of states (state spec §1.4). Keys, retention and checks of digests are the host's. */
export interface StateStore {
  save(bytes: Uint8Array, kind: 'content' | 'subagent_state'): Promise<StoredRef>
  load(ref: StoredRef): Promise<Uint8Array>
  /** Bytes above which content is stored. Default 65,536. */
  readonly contentThreshold?: number
}

const CONTENT_THRESHOLD = 65_536

/** The store of states that keeps them where the values of events are kept; a key is `content/<sha256>`. */
export const stateStoreOn = (content: ContentStore): StateStore => ({
  async save(bytes, kind) {
    const mediaType = kind === 'subagent_state' ? 'application/json' : 'application/octet-stream'
    const { digest, size } = await content.put(bytes, mediaType)
    return { key: `content/${digest}`, digest, size }
  },
  async load({ key, digest, size }) {
    const bytes = await content.get({ digest, size, media_type: '' })
    if (bytes) return bytes
    throw stateError('content_missing', 'A content that the state refers to is not in the content store, or is another one.', {
      details: { key, digest, size },
      hint: 'Bring the content back, or bind the store that the state was exported with.',
    })
  },
})

/**
 * The state with binary content above the threshold moved to the store, each content once, and with `refs` that name all it needs. Without a
 * store the content stays where it is.
 */
export async function storeContent(state: HarnessState, store: StateStore | undefined): Promise<HarnessState> {
  const json = state.toJSON()
  const refs = new Map<string, StoredRef>(childRefs(json).map((ref) => [ref.key, ref]))
  if (store) {
    const saved = new Map<string, StoredRef>()
    for (const part of binaryParts(json)) {
      const ref = storedRef(part) ?? (await save(part, store, saved))
      if (ref) refs.set(ref.key, ref)
    }
  }
  return HarnessState.parse({ ...json, refs: [...refs.values()] as unknown as JsonValue })
}

/**
 * The state with its stored content in place again.
 * @throws ThreadlogError of kind `StateError` `state_store_missing` when it has references and there is no store
 */
export async function loadContent(state: HarnessState, store: StateStore | undefined): Promise<HarnessState> {
  const json = state.toJSON()
  const parts = [...binaryParts(json)].flatMap((part) => {
    const ref = storedRef(part)
    return ref ? [{ part, ref }] : []
  })
  if (parts.length === 0) return state
  if (!store) throw storeMissing()
  const loaded = new Map<string, string>()
  for (const { part, ref } of parts) {
    const data = loaded.get(ref.key) ?? encodeBase64(await store.load(ref))
    loaded.set(ref.key, data)
    part['data'] = data
    const { [STORED]: _, ...rest } = part['vendor_metadata'] as JsonObject
    part['vendor_metadata'] = Object.keys(rest).length > 0 ? rest : null
  }
  return HarnessState.parse(json)
}

/** Whether messages, and whether namespaces, keep content in a store. */
export function usesStore(state: HarnessState): { messages: boolean; namespaces: boolean } {
  const { message_history, agent_context_state } = state.toJSON()
  const has = (value: JsonValue | undefined) => [...binaryParts(value ?? null)].some((part) => storedRef(part) !== undefined)
  return { messages: has(message_history), namespaces: has(agent_context_state) }
}

/** A state asks for a store that is not there. */
export const storeMissing = () =>
  stateError('state_store_missing', 'The state keeps content in a store that this run does not have.', {
    hint: 'Bind the store the state was exported with.',
  })

/** Every binary item of a value, wherever it stands: in messages and in namespaces. */
function* binaryParts(value: JsonValue): Generator<JsonObject> {
  if (Array.isArray(value)) for (const item of value) yield* binaryParts(item)
  else if (isJsonObject(value)) {
    if (value['kind'] === 'binary' && typeof value['data'] === 'string' && 'media_type' in value) yield value
    else for (const item of Object.values(value)) yield* binaryParts(item)
  }
}

function storedRef(part: JsonObject): StoredRef | undefined {
  const metadata = part['vendor_metadata']
  const ref = isJsonObject(metadata) ? metadata[STORED] : undefined
  return isJsonObject(ref) ? (ref as unknown as StoredRef) : undefined
}

async function save(part: JsonObject, store: StateStore, saved: Map<string, StoredRef>): Promise<StoredRef | undefined> {
  const bytes = decodeBase64(part['data'] as string)
  if (!bytes || bytes.byteLength <= (store.contentThreshold ?? CONTENT_THRESHOLD)) return undefined
  const digest = sha256Hex(bytes)
  const ref = saved.get(digest) ?? (await store.save(bytes, 'content'))
  saved.set(digest, ref)
  const metadata = isJsonObject(part['vendor_metadata']) ? part['vendor_metadata'] : {}
  part['data'] = ''
  part['vendor_metadata'] = { ...metadata, [STORED]: { ...ref } }
  return ref
}

/** References that only the states of retained children hold. */
export function childRefs(json: JsonObject): StoredRef[] {
  const entries = (json['agent_context_state'] as { entries?: JsonObject } | undefined)?.entries ?? {}
  const registry = entries[SUBAGENTS]
  const data = isJsonObject(registry) ? registry['data'] : undefined
  const children = isJsonObject(data) && isJsonObject(data['children']) ? Object.values(data['children']) : []
  return children.flatMap((child) =>
    isJsonObject(child) && Array.isArray(child['refs']) ? (child['refs'] as unknown as StoredRef[]) : [],
  )
}
