import { type Ids, isJsonObject, type JsonObject, type JsonValue, reject } from '../base/index.ts'
import type { CapabilityEntry } from './state-shape.ts'
import { isThreadId } from './thread-id.ts'
import { SUBAGENTS, SUBAGENTS_VERSION } from './wire-keys.ts'

/**
 * Capability entries for a fork: each inline child that the registry retains gets a fresh thread; its own state stays as it is and follows when it
 * is next loaded (settled list §1).
 * @throws ThreadlogError of kind `StateError`
 */
export function forkChildren(
  entries: Record<string, CapabilityEntry>,
  ids: Pick<Ids, 'thread'>,
): Record<string, CapabilityEntry> {
  const registry = entries[SUBAGENTS]
  if (!registry) return entries
  if (registry.version !== SUBAGENTS_VERSION)
    throw reject('capability_state_version_unsupported', 'The registry of children has another version.', {
      kind: 'StateError',
      details: { capability_id: SUBAGENTS, expected_version: SUBAGENTS_VERSION, actual_version: registry.version },
    })
  const children = childrenOf(registry.data)
  if (!children)
    throw reject('capability_state_invalid', 'The registry of children cannot be read.', {
      kind: 'StateError',
      details: { capability_id: SUBAGENTS },
    })
  const forked = Object.fromEntries(
    Object.entries(children).map(([id, child]) => [id, { ...child, child_thread_id: ids.thread() }]),
  )
  return { ...entries, [SUBAGENTS]: { ...registry, data: { ...(registry.data as JsonObject), children: forked } } }
}

/** The children of a registry by their ids, if it is one: `<name>-<4 hex>`, keys equal ids, no two on one thread. */
function childrenOf(data: JsonValue): Record<string, JsonObject> | undefined {
  const children = isJsonObject(data) ? data['children'] : undefined
  if (!isJsonObject(children)) return undefined
  const threads = new Set<unknown>()
  for (const [id, child] of Object.entries(children)) {
    if (!isJsonObject(child) || child['child_instance_id'] !== id || !isThreadId(child['child_thread_id'])) return undefined
    const name = child['subagent_name']
    if (typeof name !== 'string' || !/^-[0-9a-f]{4}$/.test(id.slice(name.length)) || !id.startsWith(name)) return undefined
    threads.add(child['child_thread_id'])
  }
  return threads.size === Object.keys(children).length ? (children as Record<string, JsonObject>) : undefined
}
