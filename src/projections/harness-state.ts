import { canonicalJson, isJsonObject, type JsonObject, type JsonValue, setOwn } from '../base/index.ts'
import { checkThreadId, HarnessState, type Message } from '../messages/index.ts'
import { messageHistory } from './messages.ts'
import type { ThreadState } from './state.ts'
import { latestUsage, USAGE_NAMESPACE, usageEntry } from './usage.ts'

/**
 * The thread as a HarnessState (design §8): what another process, or the original library, can go on from.
 * @throws ThreadlogError `thread_id_invalid` for a foreign session whose id no HarnessState can have; `state_invalid`
 */
export function harnessState(state: ThreadState): HarnessState {
  checkThreadId(state.identity?.thread ?? '')
  return HarnessState.parse(harnessStateJson(state))
}

/** What stands before and behind the messages in the canonical JSON text of {@link harnessStateJson}. */
export function aroundMessages(state: ThreadState): { before: string; behind: string } {
  const fields = harnessStateJson(state, [])
  let before = '{'
  let behind = ']'
  for (const name of Object.keys(fields).sort()) {
    if (name === 'message_history') continue
    const field = `${JSON.stringify(name)}:${canonicalJson(fields[name] ?? null)}`
    if (name < 'message_history') before += `${field},`
    else behind += `,${field}`
  }
  return { before: `${before}"message_history":[`, behind: `${behind}}` }
}

/** The same as plain JSON, not checked. Shared: read only. */
export function harnessStateJson(state: ThreadState, messages: readonly Message[] = messageHistory(state)): JsonObject {
  const rest = isJsonObject(state.imported?.value) ? state.imported.value : {}
  const { environment_states, refs, ...unknown } = rest as JsonObject
  const entries: JsonObject = {}
  for (const [id, { version, data }] of state.capabilities) setOwn(entries, id, { version, data: data.value })
  const usage = latestUsage(state)
  if (usage) setOwn(entries, USAGE_NAMESPACE, usageEntry(usage))
  return {
    schema_version: '1',
    thread_id: state.identity?.thread ?? '',
    agent_context_state: { entries },
    refs: refs ?? [],
    ...unknown,
    message_history: messages as unknown as JsonValue,
    environment_states: environment_states ?? {},
  }
}
