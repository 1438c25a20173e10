import { type Ids, isJsonObject, type JsonObject, reject } from '../base/index.ts'
import type { CapabilityEntry } from './state-shape.ts'
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
  const children = isJsonObject(registry.data) ? registry.data['children'] : undefined
  if (!isJsonObject(children) || !Object.values(children).every(isJsonObject))
    throw reject('capability_state_invalid', 'The registry of children cannot be read.', {
      kind: 'StateError',
      details: { capability_id: SUBAGENTS },
    })
  const forked = Object.fromEntries(
    Object.entries(children as Record<string, JsonObject>).map(([id, child]) => [
      id,
      { ...child, child_thread_id: ids.thread() },
    ]),
  )
  return { ...entries, [SUBAGENTS]: { ...registry, data: { ...(registry.data as JsonObject), children: forked } } }
}
